/* `mapcache index FILE.shp ...`: writes the spatial index (.qix) of shapefiles. */
#include <apr_pools.h>
#include <stdio.h>

#include "cli/commands.h"
#include "cli/common/help.h"
#include "cli/common/json_line.h"
#include "vector/shapefile/shp.h"

static const mc_cli_option index_rows[] = {
    MC_OPTION_JSON(0, "an object for each file"),
    MC_OPTION_END,
};
const mc_cli_option_table mc_index_option_table = { index_rows, sizeof(bool), NULL };

static void
tell_index(const char *path, uint32_t count, bool json)
{
    if (!json) {
        printf("%s: %u shapes\n", path, count);
        return;
    }
    mc_cli_json_line line = mc_cli_json_line_begin();
    mc_json_string(line.json, "file", path);
    mc_json_integer(line.json, "shapes", count);
    mc_cli_json_line_end(&line);
}

/* Whether it could be done. */
static bool
write_shapefile_index(const char *path, bool json, apr_pool_t *pool)
{
    uint32_t count = 0;
    mc_error *error = mc_shp_write_tree(&count, path, pool);
    if (error == MC_OK)
        tell_index(path, count, json);
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
        failed += !write_shapefile_index(APR_ARRAY_IDX(call->arguments, i, const char *), call->json, pool);
        apr_pool_destroy(pool);
    }
    return failed > 0;
}
