/* Pixel buffers: creation, ownership, and what can be said of all pixels at once. */
#include "mapcache/image.h"

#include <stdatomic.h>
#include <string.h>

#ifdef __SSE4_1__
#include <smmintrin.h>
#endif

#include "base/references.h"
#include "memory/scratch.h"

#define PIXELS_MAX ((int64_t)1 << 28)

mc_error *
mc_pixels_create(mc_pixels **result, int width, int height, bool cleared, apr_pool_t *pool)
{
    if (width < 1 || height < 1 || width > mc_pixels_max || height > mc_pixels_max ||
        (int64_t)width * height > PIXELS_MAX)
        return mc_error_create(pool, MC_ERR_LIMIT, "an image of %d x %d pixels is beyond the limit of %d a side", width,
                               height, mc_pixels_max);
    size_t capacity = (size_t)width * (size_t)height * 4;
    mc_pixels *pixels = mc_scratch_acquire(64 + capacity);
    if (pixels == NULL)
        return mc_error_create(pool, MC_ERR_NO_MEMORY, "no memory for an image of %d x %d pixels", width, height);
    _Static_assert(sizeof(mc_pixels) <= 64, "the header fits before the aligned pixels");
    pixels->width = width;
    pixels->height = height;
    pixels->stride = (size_t)width * 4;
    pixels->data = (uint8_t *)pixels + 64;
    pixels->capacity = capacity;
    pixels->opacity = cleared ? MC_EMPTY : MC_OPACITY_UNKNOWN;
    atomic_init(&pixels->references, 1);
    if (cleared)
        memset(pixels->data, 0, capacity);
    *result = pixels;
    return MC_OK;
}

mc_pixels *
mc_pixels_ref(mc_pixels *pixels)
{
    mc_references_take(&pixels->references);
    return pixels;
}

void
mc_pixels_unref(mc_pixels *pixels)
{
    if (pixels != NULL && mc_references_drop(&pixels->references))
        mc_scratch_release(pixels);
}

static apr_status_t
unref_pixels_cleanup(void *data)
{
    mc_pixels_unref(data);
    return APR_SUCCESS;
}

mc_pixels *
mc_pixels_attach(mc_pixels *pixels, apr_pool_t *pool)
{
    apr_pool_cleanup_register(pool, pixels, unref_pixels_cleanup, apr_pool_cleanup_null);
    return pixels;
}

bool
mc_pixels_part(mc_pixels *part, const mc_pixels *source, int x, int y, int width, int height)
{
    if (x < 0 || y < 0 || width < 1 || height < 1 || width > source->width - x || height > source->height - y)
        return false;
    bool same = source->opacity == MC_OPAQUE || source->opacity == MC_EMPTY;
    part->width = width;
    part->height = height;
    part->stride = source->stride;
    part->data = source->data + (size_t)y * source->stride + (size_t)x * 4;
    part->opacity = same ? source->opacity : MC_OPACITY_UNKNOWN;
    part->capacity = 0;
    atomic_init(&part->references, 0);
    return true;
}

static void
row_alphas(const uint8_t *row, int width, uint8_t *all, uint8_t *any)
{
    int x = 0;
#ifdef __SSE4_1__
    __m128i set = _mm_set1_epi8(-1), seen = _mm_setzero_si128();
    for (; x + 4 <= width; x += 4) {
        __m128i four = _mm_loadu_si128((const __m128i *)(const void *)(row + (size_t)x * 4));
        set = _mm_and_si128(set, four);
        seen = _mm_or_si128(seen, four);
    }
    uint8_t lanes[16];
    _mm_storeu_si128((__m128i *)(void *)lanes, set);
    *all &= lanes[3] & lanes[7] & lanes[11] & lanes[15];
    _mm_storeu_si128((__m128i *)(void *)lanes, seen);
    *any |= lanes[3] | lanes[7] | lanes[11] | lanes[15];
#endif
    for (; x < width; x++) {
        *all &= row[(size_t)x * 4 + 3];
        *any |= row[(size_t)x * 4 + 3];
    }
}

mc_opacity
mc_pixels_opacity(mc_pixels *pixels)
{
    if (pixels->opacity != MC_OPACITY_UNKNOWN)
        return pixels->opacity;
    uint8_t all = 255, any = 0;
    /* Once both a hole and something else have been seen, the answer stands. */
    for (int y = 0; y < pixels->height && (all == 255 || any == 0); y++)
        row_alphas(pixels->data + (size_t)y * pixels->stride, pixels->width, &all, &any);
    pixels->opacity = all == 255 ? MC_OPAQUE : any == 0 ? MC_EMPTY : MC_TRANSLUCENT;
    return pixels->opacity;
}

bool
mc_pixels_uniform(const mc_pixels *pixels, uint8_t bgra[4])
{
    const uint8_t *first = pixels->data;
    size_t row_size = (size_t)pixels->width * 4;
    /* A row that equals itself shifted by one pixel holds one colour only. */
    if (memcmp(first, first + 4, row_size - 4) != 0)
        return false;
    for (int y = 1; y < pixels->height; y++)
        if (memcmp(first, first + (size_t)y * pixels->stride, row_size) != 0)
            return false;
    memcpy(bgra, first, 4);
    return true;
}

void
mc_pixels_fill(mc_pixels *pixels, const uint8_t bgra[4])
{
    uint32_t value;
    memcpy(&value, bgra, 4);
    for (int x = 0; x < pixels->width; x++)
        memcpy(pixels->data + (size_t)x * 4, &value, 4);
    for (int y = 1; y < pixels->height; y++)
        memcpy(pixels->data + (size_t)y * pixels->stride, pixels->data, (size_t)pixels->width * 4);
    pixels->opacity = bgra[3] == 255 ? MC_OPAQUE : bgra[3] == 0 ? MC_EMPTY : MC_TRANSLUCENT;
}
