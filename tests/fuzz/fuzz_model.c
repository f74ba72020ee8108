/* Any file as a whole configuration: every section, kind and key of it, and what the complaints quote of it. */
#include <apr_strings.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz_support.h"
#include "mapcache/server.h"
#include "text/text.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);

static int file;
static char path[64];

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    file = memfd_create("mapcache.xml", 0);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
    return file >= 0 ? 0 : 1;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    apr_pool_t *pool;
    mc_config *config;
    /* <env> sets variables of this process, which is no business of a fuzzer */
    if (memmem(data, size, "env", 3) != NULL)
        return 0;
    if (ftruncate(file, 0) != 0 || pwrite(file, data, size, 0) != (ssize_t)size)
        abort();
    apr_pool_create(&pool, NULL);
    mc_diagnostics *diagnostics = mc_diagnostics_create(pool);
    mc_error *error = mc_config_load(&config, path, diagnostics, pool);
    if (error == MC_OK) {
        MC_ASSERT(config->services != NULL && config->default_format != NULL);
        for (int i = 0; i < config->tilesets->nelts; i++)
            MC_ASSERT(APR_ARRAY_IDX(config->tilesets, i, mc_tileset *)->name != NULL);
    } else {
        MC_ASSERT(strpbrk(mc_error_chain(error, pool), "\r\n") == NULL);
    }
    apr_pool_destroy(pool);
    return 0;
}
