/* The tile addresses of web maps, /<layer>/<z>/<x>/<y>.<ext> with rows from the top (spec 6.2). */
#include "service/service_base.h"
#include "text/text.h"

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
    request->kind = MC_REQUEST_TILE;
    mc_tile_stack *stack = &request->u.tile;
    const char *level = APR_ARRAY_IDX(path, 1, const char *);
    const char *column = APR_ARRAY_IDX(path, 2, const char *);
    const char *row = APR_ARRAY_IDX(path, 3, const char *);
    int z, x, y;
    const char *extension;
    MC_TRY(mc_layers_parse(stack, APR_ARRAY_IDX(path, 0, const char *), call, MC_ERR_BAD_REQUEST, pool));
    if (!mc_parse_int(&z, level, 0, INT32_MAX))
        return mc_error_create(pool, MC_ERR_NOT_FOUND, "z \"%s\" is not a level", level);
    if (!mc_parse_int(&x, column, 0, INT32_MAX))
        return mc_error_create(pool, MC_ERR_NOT_FOUND, "x \"%s\" is not a column", column);
    if (!mc_path_number(&y, &extension, row, pool) || extension == NULL)
        return mc_error_create(pool, MC_ERR_NOT_FOUND, "y \"%s\" is not a row with an extension", row);
    return mc_stack_place(stack, z, x, y, true, pool);
}

const mc_service_ops mc_service_gmaps = {
    "gmaps",     "gmaps", mc_service_plain_keys, "Tiles by z/x/y with rows from the top.", gmaps_from_config,
    gmaps_parse, NULL,
};
