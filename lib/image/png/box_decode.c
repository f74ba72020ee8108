/* Decoding what shows of an image, and nothing else, into memory of the caller's. */
#include <string.h>

#include "image/png/png.h"
#include "mapcache/trace.h"

/* Any form: decoded whole, then cut out. */
static mc_error *
decode_and_cut(mc_box_image *image, mc_box_room *room, void *baton, const void *data, size_t size, mc_ctx *ctx,
               apr_pool_t *pool)
{
    mc_pixels *pixels;
    MC_TRY(mc_image_decode(&pixels, data, size, ctx, pool));
    *image = (mc_box_image){ pixels->width, pixels->height, mc_pixels_box(pixels) };
    const mc_box *box = &image->box;
    uint8_t *out = box->width == 0 ? NULL : room(baton, image);
    size_t row = (size_t)box->width * 4;
    for (int y = 0; out != NULL && y < box->height; y++)
        memcpy(out + row * (size_t)y, pixels->data + (size_t)(box->top + y) * pixels->stride + (size_t)box->left * 4,
               row);
    mc_pixels_unref(pixels);
    return box->width > 0 && out == NULL ? mc_error_create(pool, MC_ERR_NO_MEMORY, "no memory for an image's pixels")
                                         : MC_OK;
}

/* A JPEG has no holes: its rows go straight to their place. */
static mc_error *
decode_jpeg(mc_box_image *image, mc_box_room *room, void *baton, const void *data, size_t size, mc_ctx *ctx,
            apr_pool_t *pool)
{
    int width, height;
    MC_TRY(mc_image_size(&width, &height, data, size, pool));
    *image = (mc_box_image){ width, height, { 0, 0, width, height, MC_OPAQUE } };
    mc_pixels pixels = { .width = width, .height = height, .stride = (size_t)width * 4, .data = room(baton, image) };
    if (pixels.data == NULL)
        return mc_error_create(pool, MC_ERR_NO_MEMORY, "no memory for an image's pixels");
    return mc_image_draw(&pixels, 0, 0, data, size, ctx, pool);
}

mc_error *
mc_image_decode_box(mc_box_image *image, mc_box_room *room, void *baton, const void *data, size_t size, mc_ctx *ctx,
                    apr_pool_t *pool)
{
    mc_coding coding = mc_image_sniff(data, size);
    if (coding == MC_CODING_JPEG)
        return decode_jpeg(image, room, baton, data, size, ctx, pool);
    bool done = false;
    if (coding == MC_CODING_PNG) {
        MC_SPAN(ctx, "_mapcache_imageio_png_decode");
        MC_TRY(mc_png_decode_box(&done, image, room, baton, data, size, pool));
    }
    return done ? MC_OK : decode_and_cut(image, room, baton, data, size, ctx, pool);
}
