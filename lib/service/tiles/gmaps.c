/* The tile addresses of web maps, /<layer>/<z>/<x>/<y>.<ext> with rows from the top (docs/reference/services.md 6.2).
 */
#include "service/tiles/tile_path.h"

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

MC_ONE_OPERATION(gmaps, "tiles", "/gmaps/<layer>/<z>/<x>/<y>.<extension>", mc_tile_path_params);

const mc_service_ops mc_service_gmaps = {
    MC_SERVICE(gmaps, "gmaps", mc_service_plain_keys, mc_service_plain, "Tiles by z/x/y with rows from the top."),
};
