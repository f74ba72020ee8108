/* See draw.h: which way an image is drawn, and the simple ways. */
#include "ingest/pyramid/draw.h"

#include <math.h>
#include <string.h>

#ifdef __SSE4_1__
#include <smmintrin.h>
#endif

/* Means of so little more than one pixel are interpolated as well between four. */
#define SHRUNK 1.001

bool
mc_draw_shrinks(double shrink)
{
    return shrink > SHRUNK;
}

/* Whether the image lies pixel on pixel. */
static bool
is_copy(const mc_image_placement_scale *scale)
{
    return scale->scale_x == 1 && scale->scale_y == 1 && scale->x0 == nearbyint(scale->x0) &&
           scale->y0 == nearbyint(scale->y0);
}

/* Which indices of `size` target pixels have their centre on the image. */
static bool
image_meets_tile(double offset, double scale, int size, int image_size)
{
    return offset + scale * (size - 0.5) >= 0 && offset + scale * 0.5 < image_size;
}

mc_error *
mc_draw_tile(bool *changed, mc_pixels *tile, const mc_draw *draw, int x, int y, mc_ctx *ctx)
{
    const mc_raster_strip *window = draw->window;
    if (window->rows.height == 0)
        return MC_OK;
    if (!draw->placement->upright)
        return mc_draw_points(changed, tile, draw, x, y, ctx);
    const mc_raster_info *image = draw->placement->image;
    mc_image_placement_scale scale = mc_image_placement_tile(draw->placement, draw->z, x, y);
    if (!image_meets_tile(scale.x0, scale.scale_x, tile->width, image->width) ||
        !image_meets_tile(scale.y0, scale.scale_y, tile->height, image->height))
        return MC_OK;
    bool copy = is_copy(&scale);
    if (draw->mode == MC_INGEST_AVERAGE && !copy) {
        mc_draw_mean(changed, tile, &window->rows, window->first, image->height, &scale);
        return MC_OK;
    }
    if (window->rows.opacity != MC_OPAQUE)
        return mc_draw_points(changed, tile, draw, x, y, ctx);
    mc_resample mode = copy || draw->mode == MC_INGEST_NEAREST ? MC_NEAREST : MC_BILINEAR;
    mc_pixels_resample(tile, &window->rows, scale.x0, scale.y0 - window->first, scale.scale_x, scale.scale_y, mode);
    *changed = true;
    return MC_OK;
}

void
mc_draw_under(mc_pixels *tile, const mc_pixels *stored)
{
    for (int y = 0; y < tile->height; y++) {
        uint8_t *out = tile->data + (size_t)y * tile->stride;
        const uint8_t *in = stored->data + (size_t)y * stored->stride;
        for (int x = 0; x < tile->width; x++, out += 4, in += 4)
            if (out[3] == 0)
                memcpy(out, in, 4);
    }
    tile->opacity = MC_OPACITY_UNKNOWN;
}

/* Of two rows of opaque pixels, half of `width` pixels. */
static void
halve_opaque(uint8_t *out, const uint8_t *a, const uint8_t *b, int width)
{
    int x = 0;
#ifdef __SSE4_1__
    const __m128i zero = _mm_setzero_si128(), two = _mm_set1_epi16(2);
    for (; x + 4 <= width; x += 4) {
        __m128i upper = _mm_loadu_si128((const __m128i *)(const void *)(a + (size_t)x * 4));
        __m128i lower = _mm_loadu_si128((const __m128i *)(const void *)(b + (size_t)x * 4));
        __m128i left = _mm_add_epi16(_mm_unpacklo_epi8(upper, zero), _mm_unpacklo_epi8(lower, zero));
        __m128i right = _mm_add_epi16(_mm_unpackhi_epi8(upper, zero), _mm_unpackhi_epi8(lower, zero));
        __m128i sum = _mm_add_epi16(_mm_unpacklo_epi64(left, right), _mm_unpackhi_epi64(left, right));
        sum = _mm_srli_epi16(_mm_add_epi16(sum, two), 2);
        _mm_storel_epi64((__m128i *)(void *)(out + (size_t)x * 2), _mm_packus_epi16(sum, sum));
    }
#endif
    for (; x < width; x += 2)
        for (size_t c = 0; c < 4; c++) {
            size_t at = (size_t)x * 4 + c;
            out[(size_t)x * 2 + c] = (uint8_t)((a[at] + a[at + 4] + b[at] + b[at + 4] + 2) / 4);
        }
}

static void
halve_any(uint8_t *out, const uint8_t *a, const uint8_t *b, int width)
{
    for (int x = 0; x < width; x += 2, out += 4, a += 8, b += 8) {
        const uint8_t *const four[4] = { a, a + 4, b, b + 4 };
        unsigned sum[4] = { 0 }, count = 0;
        for (int i = 0; i < 4; i++) {
            if (four[i][3] == 0)
                continue;
            count++;
            for (int c = 0; c < 4; c++)
                sum[c] += four[i][c];
        }
        for (int c = 0; c < 4; c++)
            out[c] = (uint8_t)(count == 0 ? 0 : (sum[c] + count / 2) / count);
    }
}

static void
choose_first(uint8_t *out, const uint8_t *a, const uint8_t *b, int width)
{
    for (int x = 0; x < width; x += 2, out += 4, a += 8, b += 8)
        memcpy(out, a[3] != 0 ? a : a[7] != 0 ? a + 4 : b[3] != 0 ? b : b + 4, 4);
}

void
mc_draw_half(mc_pixels *tile, int left, int top, mc_pixels *below, bool nearest)
{
    bool opaque = mc_pixels_opacity(below) == MC_OPAQUE;
    for (int y = 0; y < below->height / 2; y++) {
        uint8_t *out = tile->data + (size_t)(top + y) * tile->stride + (size_t)left * 4;
        const uint8_t *in = below->data + (size_t)(2 * y) * below->stride;
        (nearest ? choose_first : opaque ? halve_opaque : halve_any)(out, in, in + below->stride, below->width);
    }
}
