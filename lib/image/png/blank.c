/*
 * The PNG of one colour that stands for a uniform tile. The last few are kept: a map of the sea asks for the same one
 * thousands of times.
 */
#include <pthread.h>
#include <string.h>

#include "image/png/png.h"
#include "memory/scratch.h"

enum { KEPT = 64, KEPT_BYTES_MAX = 65536 };

typedef struct kept_blank {
    int width, height;
    uint8_t bgra[4];
    mc_buf *png;
} kept_blank;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static kept_blank kept[KEPT]; /* under `lock`, as the next one */
static unsigned next_victim;

static mc_buf *
find_blank_png(int width, int height, const uint8_t bgra[4])
{
    mc_buf *found = NULL;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < KEPT && found == NULL; i++) {
        const kept_blank *k = &kept[i];
        if (k->png != NULL && k->width == width && k->height == height && memcmp(k->bgra, bgra, 4) == 0)
            found = mc_buf_ref(k->png);
    }
    pthread_mutex_unlock(&lock);
    return found;
}

static void
keep_blank_png(mc_buf *png, int width, int height, const uint8_t bgra[4])
{
    if (png->size > KEPT_BYTES_MAX)
        return;
    mc_buf *copy = mc_buf_copy(png->data, png->size);
    pthread_mutex_lock(&lock);
    kept_blank *k = &kept[next_victim++ % KEPT];
    mc_buf *old = k->png;
    *k = (kept_blank){ .width = width, .height = height, .png = copy };
    memcpy(k->bgra, bgra, 4);
    pthread_mutex_unlock(&lock);
    mc_buf_unref(old);
}

static mc_error *
write_blank(mc_buf *png, int width, int height, const uint8_t bgra[4], apr_pool_t *pool)
{
    mc_png_header header = {
        .width = (uint32_t)width, .height = (uint32_t)height, .depth = 1, .color = MC_PNG_PALETTE
    };
    mc_palette palette = { .count = 1 };
    memcpy(palette.colors[0], bgra, 4);
    size_t size = (((size_t)width + 7) / 8 + 1) * (size_t)height;
    uint8_t *rows = mc_scratch_acquire(size);
    if (rows == NULL)
        return mc_error_create(pool, MC_ERR_NO_MEMORY, "no memory for an image of %d x %d pixels", width, height);
    memset(rows, 0, size);
    mc_error *error = mc_png_begin(png, &header, pool);
    if (error == MC_OK)
        error = mc_png_palette(png, &palette, true, pool);
    if (error == MC_OK)
        error = mc_png_image_data(png, rows, size, MC_DEFLATE_GOOD, pool);
    mc_scratch_release(rows);
    return error == MC_OK ? mc_png_end(png, pool) : error;
}

mc_error *
mc_image_blank(mc_buf **png, int width, int height, const uint8_t bgra[4], apr_pool_t *pool)
{
    if (width < 1 || height < 1 || width > mc_pixels_max || height > mc_pixels_max)
        return mc_error_create(pool, MC_ERR_LIMIT, "an image of %d x %d pixels is beyond the limit of %d a side", width,
                               height, mc_pixels_max);
    *png = find_blank_png(width, height, bgra);
    if (*png != NULL) {
        mc_buf_attach(*png, pool);
        return MC_OK;
    }
    mc_buf *made = mc_buf_attach(mc_buf_create(256, INT32_MAX), pool);
    MC_TRY(write_blank(made, width, height, bgra, pool));
    keep_blank_png(made, width, height, bgra);
    *png = made;
    return MC_OK;
}
