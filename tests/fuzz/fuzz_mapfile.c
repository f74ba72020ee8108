/* A map file of MapServer: its words and blocks. */
#include <apr_strings.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "adopt/mapfile_words.h"
#include "fuzz_support.h"
#include "source/mapserver/mapfile_layers.h"

/* The layers are read from a file; what it includes by a relative name is looked for beside it. */
static void
read_layers(const uint8_t *data, size_t size, apr_pool_t *pool)
{
    static int file = -1;
    apr_array_header_t *layers;
    if (file < 0)
        file = memfd_create("mapfile", MFD_CLOEXEC);
    MC_ASSERT(ftruncate(file, 0) == 0 && pwrite(file, data, size, 0) == (ssize_t)size);
    mc_error *error = mc_mapfile_layers(&layers, apr_psprintf(pool, "/proc/self/fd/%d", file), pool);
    MC_ASSERT(error == MC_OK || error->kind == MC_ERR_CONFIG);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    apr_pool_t *pool;
    mc_branch *root;
    int room = MC_BRANCHES_MAX;
    apr_pool_create(&pool, NULL);
    char *exact = malloc(size + 1); /* a block of its own, so that a byte read beyond it is noticed */
    memcpy(exact, data, size);
    exact[size] = '\0';
    mc_error *error = mc_mapfile_parse(&root, "x.map", exact, &room, pool);
    MC_ASSERT(error == MC_OK || error->kind == MC_ERR_CONFIG);
    read_layers(data, size, pool);
    free(exact);
    apr_pool_destroy(pool);
    return 0;
}
