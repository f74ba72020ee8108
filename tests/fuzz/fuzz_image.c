/* Any bytes as a stored tile or an origin's answer: what they are taken for, and what is drawn of them. */
#include <string.h>

#include "fuzz_support.h"
#include "image/box.h"
#include "mapcache/tile.h"

static uint8_t *
make_room(void *baton, const mc_box_image *image)
{
    return apr_palloc(baton, (size_t)image->box.width * (size_t)image->box.height * 4);
}

/* What is decoded into its box has the box that the whole has. */
static void
check_box(const mc_pixels *pixels, const uint8_t *data, size_t size, mc_ctx *ctx)
{
    mc_box_image found;
    MC_ASSERT(mc_image_decode_box(&found, make_room, ctx->pool, data, size, ctx, ctx->pool) == MC_OK);
    mc_box box = mc_pixels_box(pixels);
    MC_ASSERT(found.width == pixels->width && found.height == pixels->height);
    MC_ASSERT(memcmp(&found.box, &box, sizeof(box)) == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    apr_pool_t *pool;
    apr_pool_create(&pool, NULL);
    mc_ctx ctx = { .pool = pool };
    int width = 0, height = 0;
    mc_pixels *pixels;
    mc_error *sized = mc_image_size(&width, &height, data, size, pool);
    (void)mc_coding_mime(mc_image_sniff(data, size));
    MC_ASSERT(sized != MC_OK || (width > 0 && height > 0));
    if (sized == MC_OK && (int64_t)width * height < 1 << 18 &&
        mc_image_decode(&pixels, data, size, &ctx, pool) == MC_OK) {
        uint8_t bgra[4];
        mc_buf *blank;
        if (mc_pixels_uniform(pixels, bgra))
            MC_ASSERT(mc_image_blank(&blank, width, height, bgra, pool) == MC_OK);
        check_box(pixels, data, size, &ctx);
        mc_pixels_unref(pixels);
    }
    apr_pool_destroy(pool);
    return 0;
}
