/* Feeds any bytes to the splicing of JPEG tiles: no crash, no leak, and what is accepted can be used. */
#include <string.h>

#include "fuzz_support.h"
#include "mapcache/image.h"

/* The tiles of a 2 x 2 mosaic: the input's first byte says which are missing, the middle parts two different ones. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 3)
        return 0;
    apr_pool_t *pool;
    apr_pool_create(&pool, NULL);
    mc_ctx ctx = { .pool = pool };
    uint8_t missing = data[0];
    size_t half = (missing & 16) != 0 ? size - 1 : (size - 1) / 2;
    mc_buf *first = mc_buf_attach(mc_buf_copy(data + 1, half), pool);
    mc_buf *second = half == size - 1 ? first : mc_buf_attach(mc_buf_copy(data + 1 + half, size - 1 - half), pool);
    mc_buf *tiles[4] = { first, second, second, first }, *joined;
    for (int i = 0; i < 4; i++)
        if ((missing & 1 << i) != 0)
            tiles[i] = NULL;
    mc_error *error = mc_jpeg_join(&joined, tiles, 2, 2, (const uint8_t[]){ 250, 100, 7 }, &ctx, pool);
    MC_ASSERT(error == MC_OK);
    if (joined != NULL) {
        int width, height;
        MC_ASSERT(mc_image_sniff(joined->data, joined->size) == MC_CODING_JPEG);
        MC_ASSERT(mc_image_size(&width, &height, joined->data, joined->size, pool) == MC_OK);
        MC_ASSERT(width % 2 == 0 && height % 2 == 0);
    }
    apr_pool_destroy(pool);
    return 0;
}
