/* `mapcache index FILE.shp ...`: writes the spatial index (.qix) of shapefiles. */
#include <apr_pools.h>
#include <stdio.h>

#include "cli/commands.h"
#include "cli/common/help.h"
#include "vector/shapefile/shp.h"

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
mc_command_index(mc_cli_call *call)
{
    int failed = 0;
    if (call->arguments->nelts == 0) {
        mc_cli_refuse(call, "no FILE.shp is named");
        return 1;
    }
    for (int i = 0; i < call->arguments->nelts; i++) {
        apr_pool_t *pool;
        apr_pool_create(&pool, call->pool);
        failed += !write_shapefile_index(APR_ARRAY_IDX(call->arguments, i, const char *), pool);
        apr_pool_destroy(pool);
    }
    return failed > 0;
}
