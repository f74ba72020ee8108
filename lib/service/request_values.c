/*
 * Values of dimensions in a parsed request: "current" becomes a time, and what a source or another server would be
 * asked for without a tile's key is looked at here, so that no way leads around what the dimensions accept.
 */
#include <apr_strings.h>

#include "service/service_base.h"
#include "text/text.h"

mc_error *
mc_values_check(const mc_tileset *tileset, const mc_grid *grid, const char *const *values, mc_ctx *ctx,
                apr_pool_t *pool)
{
    for (int i = 0; values != NULL && i < tileset->dimension_count; i++) {
        MC_SLOW(ctx);
        apr_array_header_t *found;
        mc_dimension *dimension = tileset->dimensions[i];
        mc_dimension_query query = { tileset->name, grid, NULL, values[i] };
        MC_TRY(mc_dimension_resolve(&found, dimension, &query, ctx, pool));
        if (found->nelts == 0)
            return mc_error_located(pool, MC_ERR_NOT_FOUND, dimension->name, "dimension %s has nothing for \"%s\"",
                                    dimension->name, mc_message_text(values[i], 100, pool));
    }
    return MC_OK;
}

/* "current" becomes a time before anything is looked up under the values that a client asks for. */
static mc_error *
settle_values(const char *const **values, const mc_tileset *tileset, mc_ctx *ctx, apr_pool_t *pool)
{
    const char **settled = NULL;
    for (int i = 0; *values != NULL && i < tileset->dimension_count; i++) {
        const char *value = (*values)[i];
        MC_TRY(mc_dimension_settle(&value, tileset->dimensions[i], tileset->name, ctx, pool));
        if (value == (*values)[i])
            continue;
        if (settled == NULL)
            settled = apr_pmemdup(pool, *values, sizeof(*settled) * (size_t)tileset->dimension_count);
        settled[i] = value;
    }
    if (settled != NULL)
        *values = settled;
    return MC_OK;
}

static mc_error *
settle_info(mc_info_question *question, mc_ctx *ctx, apr_pool_t *pool)
{
    const mc_tileset *tileset = question->tileset;
    mc_render *wanted = &question->info.map;
    int count = wanted->dimension_count;
    const char **named = apr_pcalloc(pool, ((size_t)count + 1) * sizeof(*named));
    mc_dimension_value *settled = apr_pcalloc(pool, ((size_t)count + 1) * sizeof(*settled));
    for (int i = 0; i < count; i++)
        named[i] = wanted->dimensions[i].value;
    const char *const *values = named;
    MC_TRY(settle_values(&values, tileset, ctx, pool));
    MC_TRY(mc_values_check(tileset, wanted->grid, values, ctx, pool));
    for (int i = 0; i < count; i++)
        settled[i] = (mc_dimension_value){ wanted->dimensions[i].name, values[i], false };
    wanted->dimensions = settled;
    return MC_OK;
}

static mc_error *
settle_map_layer(mc_map_layer *layer, bool asks_source, mc_ctx *ctx, apr_pool_t *pool)
{
    MC_TRY(settle_values(&layer->values, layer->tileset, ctx, pool));
    return asks_source ? mc_values_check(layer->tileset, layer->link->grid, layer->values, ctx, pool) : MC_OK;
}

mc_error *
mc_request_settle(mc_request *request, const mc_call *call, mc_ctx *ctx, apr_pool_t *pool)
{
    (void)call;
    if (request->kind == MC_REQUEST_TILE)
        for (int i = 0; i < request->u.tile.count; i++) {
            mc_tile_request *tile = &request->u.tile.tiles[i];
            MC_TRY(settle_values(&tile->values, tile->tileset, ctx, pool));
        }
    if (request->kind == MC_REQUEST_MAP)
        for (int i = 0; i < request->u.map.count; i++)
            MC_TRY(settle_map_layer(&request->u.map.layers[i], request->u.map.mode == MC_WMS_FORWARD, ctx, pool));
    for (int i = 0; request->kind == MC_REQUEST_INFO && i < request->u.info.count; i++)
        MC_TRY(settle_info(&request->u.info.questions[i], ctx, pool));
    return MC_OK;
}

mc_error *
mc_request_check_values(const mc_request *request, mc_ctx *ctx, apr_pool_t *pool)
{
    for (int i = 0; request->kind == MC_REQUEST_TILE && i < request->u.tile.count; i++) {
        const mc_tile_request *tile = &request->u.tile.tiles[i];
        const char *const *values = tile->values;
        MC_TRY(settle_values(&values, tile->tileset, ctx, pool));
        MC_TRY(mc_values_check(tile->tileset, tile->link->grid, values, ctx, pool));
    }
    for (int i = 0; request->kind == MC_REQUEST_MAP && i < request->u.map.count; i++) {
        mc_map_layer layer = request->u.map.layers[i];
        MC_TRY(settle_map_layer(&layer, true, ctx, pool));
    }
    return MC_OK;
}
