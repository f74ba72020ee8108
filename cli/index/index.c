/* `mapcache index FILE.shp ...`: writes the spatial index (.qix) of shapefiles. */
#include <apr_pools.h>
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "vector/shapefile/shp.h"

static void
print_index_usage(FILE *out)
{
    fputs("usage: mapcache index FILE.shp ...\n\n"
          "Writes the spatial index of each shapefile (FILE.qix, as MapServer, GDAL and QGIS have it): under another\n"
          "name first, so that whoever reads meanwhile has the old one or the new one.\n"
          "Exit code: 0 all were written, 1 otherwise.\n",
          out);
}

/* Whether it could be done. */
static bool
write_shapefile_index(const char *path, apr_pool_t *pool)
{
    uint32_t count = 0;
    mc_error *error = mc_shp_write_tree(&count, path, pool);
    if (error == MC_OK)
        printf("%s: %u shapes\n", path, count);
    else
        fprintf(stderr, "mapcache index: %s\n", mc_error_chain(error, pool));
    return error == MC_OK;
}

int
mc_command_index(int argc, const char *const *argv)
{
    int failed = 0;
    if (argc < 2 || argv[1][0] == '-') {
        bool asked = argc >= 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0);
        print_index_usage(asked ? stdout : stderr);
        return asked ? 0 : 1;
    }
    for (int i = 1; i < argc; i++) {
        apr_pool_t *pool;
        apr_pool_create(&pool, NULL);
        failed += !write_shapefile_index(argv[i], pool);
        apr_pool_destroy(pool);
    }
    return failed > 0;
}
