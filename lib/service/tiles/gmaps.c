/* The tile addresses of web maps, /<layer>/<z>/<x>/<y>.<ext> with rows from the top (docs/reference/services.md 6.2).
 */
#include "service/tiles/tile_path.h"

static mc_service *
gmaps_from_config(const mc_node *node, mc_build *build)
{
    return mc_service_plain(&mc_service_gmaps, node, build);
}

static mc_error *
gmaps_parse(mc_request *request, const mc_call *call, mc_ctx *ctx, apr_pool_t *pool)
{
    const apr_array_header_t *path = mc_path_segments(call->path, pool);
    const char *layer;
    if (path->nelts == 1 && mc_tilejson_layer(&layer, APR_ARRAY_IDX(path, 0, const char *), call, pool))
        return mc_tilejson(request, layer, "gmaps", true, call, ctx, pool);
    if (path->nelts != 4)
        return mc_error_create(pool, MC_ERR_NOT_FOUND, "path \"%s\" is not <layer>/<z>/<x>/<y>.<extension>",
                               call->path);
    return mc_tile_path_parse(request, call, path, true, pool);
}

static const mc_operation gmaps_operations[] = {
    { "tiles", "/gmaps/<layer>/<z>/<x>/<y>.<extension>", { mc_tile_path_params } },
    { 0 },
};

const mc_service_ops mc_service_gmaps = {
    .type = "gmaps",
    .prefix = "gmaps",
    .keys = mc_service_plain_keys,
    .help = "Tiles by z/x/y with rows from the top.",
    .from_config = gmaps_from_config,
    .parse = gmaps_parse,
    .operations = gmaps_operations,
};
