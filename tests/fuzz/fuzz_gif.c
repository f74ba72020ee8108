/* Any bytes as a GIF that a style names. */
#include <string.h>

#include "draw/symbol/picture_private.h"
#include "fuzz_support.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    apr_pool_t *pool;
    apr_pool_create(&pool, NULL);
    mc_ctx ctx = { .pool = pool };
    char *bytes = apr_pcalloc(pool, size + 7);
    memcpy(bytes, size % 2 == 0 ? "GIF89a" : "GIF87a", sizeof("GIF89a"));
    memcpy(bytes + 6, data, size);
    int width, height;
    mc_pixels *pixels;
    bool small = mc_picture_size(&width, &height, bytes, size + 6, pool) == MC_OK && (int64_t)width * height < 1 << 18;
    if (small && mc_picture_decode(&pixels, bytes, size + 6, &ctx, pool) == MC_OK) {
        MC_ASSERT(pixels->width == width && pixels->height == height);
        mc_pixels_unref(pixels);
    }
    apr_pool_destroy(pool);
    return 0;
}
