/* A map file of MapServer: its words and blocks. */
#include <stdlib.h>
#include <string.h>

#include "adopt/mapfile_words.h"
#include "fuzz_support.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    apr_pool_t *pool;
    mc_branch *root;
    apr_pool_create(&pool, NULL);
    char *exact = malloc(size + 1); /* a block of its own, so that a byte read beyond it is noticed */
    memcpy(exact, data, size);
    exact[size] = '\0';
    mc_error *error = mc_mapfile_parse(&root, "x.map", exact, pool);
    MC_ASSERT(error == MC_OK || error->kind == MC_ERR_CONFIG);
    free(exact);
    apr_pool_destroy(pool);
    return 0;
}
