/* Images of at most 256 colours: see indexed.h. */
#include "image/png/indexed.h"

#include <string.h>

#include "memory/scratch.h"

static apr_status_t
release_index_rows(void *rows)
{
    mc_scratch_release(rows);
    return APR_SUCCESS;
}

mc_error *
mc_indexed_create(mc_indexed **image, int width, int height, apr_pool_t *pool)
{
    if (width < 1 || height < 1 || width > mc_pixels_max || height > mc_pixels_max)
        return mc_error_create(pool, MC_ERR_LIMIT, "an image of %d x %d pixels is beyond the limit of %d a side", width,
                               height, mc_pixels_max);
    mc_indexed *made = apr_palloc(pool, sizeof(*made));
    *made = (mc_indexed){ .width = width, .height = height, .stride = (size_t)width + 1, .count = 1 };
    size_t size = made->stride * (size_t)height;
    made->rows = mc_scratch_acquire(size);
    if (made->rows == NULL)
        return mc_error_create(pool, MC_ERR_NO_MEMORY, "no memory for an image of %d x %d pixels", width, height);
    apr_pool_cleanup_register(pool, made->rows, release_index_rows, apr_pool_cleanup_null);
    memset(made->rows, 0, size);
    *image = made;
    return MC_OK;
}

int
mc_indexed_number(mc_indexed *image, const uint8_t bgra[4])
{
    for (int i = 0; i < image->count; i++)
        if (memcmp(image->colors[i], bgra, 4) == 0)
            return i;
    if (image->count == 256)
        return -1;
    memcpy(image->colors[image->count], bgra, 4);
    return image->count++;
}

/* Rows are mostly runs of one colour: eight pixels at a time. */
enum { RUN = 8 };

static inline bool
is_run(const uint8_t *pixels)
{
    uint64_t eight;
    memcpy(&eight, pixels, RUN);
    return eight == pixels[0] * UINT64_C(0x0101010101010101);
}

static void
find_used(bool used[256], const mc_indexed *image)
{
    for (int y = 0; y < image->height; y++) {
        const uint8_t *row = mc_indexed_row(image, y);
        for (int x = 0; x < image->width;) {
            used[row[x]] = true;
            x += x + RUN <= image->width && is_run(row + x) ? RUN : 1;
        }
    }
}

void
mc_indexed_trim(mc_indexed *image)
{
    bool used[256] = { false };
    uint8_t place[256];
    int count = 0;
    find_used(used, image);
    for (int i = 0; i < image->count; i++)
        if (used[i]) {
            place[i] = (uint8_t)count;
            memcpy(image->colors[count++], image->colors[i], 4);
        }
    if (count == image->count)
        return;
    image->count = count;
    for (int y = 0; y < image->height; y++) {
        uint8_t *row = mc_indexed_row(image, y);
        for (int x = 0; x < image->width;) {
            if (x + RUN <= image->width && is_run(row + x)) {
                memset(row + x, place[row[x]], RUN);
                x += RUN;
            } else {
                row[x] = place[row[x]];
                x++;
            }
        }
    }
}

void
mc_indexed_over(mc_indexed *image, const uint8_t bgra[4])
{
    for (int i = 0; i < image->count; i++) {
        unsigned rest = 255U - image->colors[i][3];
        for (int c = 0; c < 4; c++) {
            unsigned product = bgra[c] * rest + 128;
            unsigned sum = image->colors[i][c] + ((product + (product >> 8)) >> 8);
            image->colors[i][c] = (uint8_t)(sum > 255 ? 255 : sum);
        }
    }
}

mc_error *
mc_indexed_pixels(mc_pixels **pixels, const mc_indexed *image, apr_pool_t *pool)
{
    MC_TRY(mc_pixels_create(pixels, image->width, image->height, false, pool));
    uint32_t colors[256];
    memcpy(colors, image->colors, sizeof(colors));
    for (int y = 0; y < image->height; y++) {
        uint32_t *out = (uint32_t *)(void *)((*pixels)->data + (size_t)y * (*pixels)->stride);
        const uint8_t *in = mc_indexed_row(image, y);
        for (int x = 0; x < image->width; x++)
            out[x] = colors[in[x]];
    }
    return MC_OK;
}
