/* Any bytes as a stored tile or an origin's answer: what they are taken for, and what is drawn of them. */
#include <apr_general.h>

#include "mapcache/image.h"
#include "mapcache/tile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool initialized;
    if (!initialized)
        apr_initialize();
    initialized = true;
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
        mc_pixels_unref(pixels);
    }
    apr_pool_destroy(pool);
    return 0;
}
