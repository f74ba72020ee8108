/* A renderd.conf: sections, keys and values. */
#include <stdlib.h>
#include <string.h>

#include "adopt/ini.h"
#include "fuzz_support.h"

static void
pass_odd_line(void *baton, int line)
{
    (void)baton;
    MC_ASSERT(line > 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    apr_pool_t *pool;
    mc_branch *root;
    apr_pool_create(&pool, NULL);
    char *exact = malloc(size + 1); /* a block of its own, so that a byte read beyond it is noticed */
    memcpy(exact, data, size);
    exact[size] = '\0';
    mc_error *error = mc_ini_parse(&root, "x.conf", exact, size, pass_odd_line, NULL, pool);
    MC_ASSERT(error == MC_OK || error->kind == MC_ERR_CONFIG);
    free(exact);
    apr_pool_destroy(pool);
    return 0;
}
