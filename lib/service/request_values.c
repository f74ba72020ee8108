/*
 * Values of dimensions in a parsed request: "current" becomes a time, and what a source or another server would be
 * asked for without a tile's key is looked at here, so that no way leads around what the dimensions accept.
 */
#include <apr_strings.h>
#include <string.h>
#include <strings.h>

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

/* Tells a WMS client which value was used instead of the one that is not in the request, or not there (WMS 1.3.0 annex
 * C.4.2). */
static void
add_warning(apr_array_header_t *warnings, const char *which, const mc_dimension *dimension, const char *value)
{
    const char *units = mc_dimension_units(dimension), *name = dimension->name;
    bool own = strcasecmp(name, "TIME") == 0 || strcasecmp(name, "ELEVATION") == 0;
    const char *text = apr_psprintf(warnings->pool, "99 %s value used: %s%s=%s%s%s", which, own ? "" : "DIM_", name,
                                    mc_message_text(value, 200, warnings->pool), *units == '\0' ? "" : " ", units);
    for (int i = 0; i < warnings->nelts; i++)
        if (strcmp(APR_ARRAY_IDX(warnings, i, const char *), text) == 0)
            return;
    APR_ARRAY_PUSH(warnings, const char *) = text;
}

/* "current" becomes a time before anything is looked up under the values that a client asks for. warnings: of a WMS
 * request, whose values may become the nearest ones; NULL of another. */
static mc_error *
settle_value(const char **value, mc_dimension *dimension, const mc_tileset *tileset, const mc_grid *grid,
             apr_array_header_t *warnings, mc_ctx *ctx, apr_pool_t *pool)
{
    const char *asked = *value;
    MC_TRY(mc_dimension_settle(value, dimension, tileset->name, ctx, pool));
    if (warnings == NULL)
        return MC_OK;
    if (asked == dimension->default_value) {
        add_warning(warnings, "Default", dimension, *value);
        return MC_OK;
    }
    if (!dimension->nearest)
        return MC_OK;
    MC_SLOW(ctx);
    const char *settled = *value;
    const mc_dimension_query query = { tileset->name, grid, NULL, settled };
    MC_TRY(mc_dimension_nearest(value, dimension, &query, ctx, pool));
    if (*value != settled)
        add_warning(warnings, "Nearest", dimension, *value);
    return MC_OK;
}

static mc_error *
settle_values(const char *const **values, const mc_tileset *tileset, const mc_grid *grid, apr_array_header_t *warnings,
              mc_ctx *ctx, apr_pool_t *pool)
{
    const char **settled = NULL;
    for (int i = 0; *values != NULL && i < tileset->dimension_count; i++) {
        const char *value = (*values)[i];
        MC_TRY(settle_value(&value, tileset->dimensions[i], tileset, grid, warnings, ctx, pool));
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
settle_info(mc_info_question *question, apr_array_header_t *warnings, mc_ctx *ctx, apr_pool_t *pool)
{
    const mc_tileset *tileset = question->tileset;
    mc_render *wanted = &question->info.map;
    int count = wanted->dimension_count;
    const char **named = apr_pcalloc(pool, ((size_t)count + 1) * sizeof(*named));
    mc_dimension_value *settled = apr_pcalloc(pool, ((size_t)count + 1) * sizeof(*settled));
    for (int i = 0; i < count; i++)
        named[i] = wanted->dimensions[i].value;
    const char *const *values = named;
    MC_TRY(settle_values(&values, tileset, wanted->grid, warnings, ctx, pool));
    MC_TRY(mc_values_check(tileset, wanted->grid, values, ctx, pool));
    for (int i = 0; i < count; i++)
        settled[i] = (mc_dimension_value){ wanted->dimensions[i].name, values[i], false };
    wanted->dimensions = settled;
    return MC_OK;
}

static mc_error *
settle_map_layer(mc_map_layer *layer, bool asks_source, apr_array_header_t *warnings, mc_ctx *ctx, apr_pool_t *pool)
{
    MC_TRY(settle_values(&layer->values, layer->tileset, layer->link->grid, warnings, ctx, pool));
    return asks_source ? mc_values_check(layer->tileset, layer->link->grid, layer->values, ctx, pool) : MC_OK;
}

mc_error *
mc_request_settle(mc_request *request, const mc_call *call, mc_ctx *ctx, apr_pool_t *pool)
{
    apr_array_header_t *warnings =
        call->service->ops == &mc_service_wms ? apr_array_make(pool, 2, sizeof(const char *)) : NULL;
    request->warnings = warnings;
    if (request->kind == MC_REQUEST_TILE)
        for (int i = 0; i < request->u.tile.count; i++) {
            mc_tile_request *tile = &request->u.tile.tiles[i];
            MC_TRY(settle_values(&tile->values, tile->tileset, tile->link->grid, warnings, ctx, pool));
        }
    if (request->kind == MC_REQUEST_MAP)
        for (int i = 0; i < request->u.map.count; i++)
            MC_TRY(settle_map_layer(&request->u.map.layers[i], request->u.map.mode == MC_WMS_FORWARD, warnings, ctx,
                                    pool));
    for (int i = 0; request->kind == MC_REQUEST_INFO && i < request->u.info.count; i++)
        MC_TRY(settle_info(&request->u.info.questions[i], warnings, ctx, pool));
    return MC_OK;
}

mc_error *
mc_request_check_values(const mc_request *request, mc_ctx *ctx, apr_pool_t *pool)
{
    for (int i = 0; request->kind == MC_REQUEST_TILE && i < request->u.tile.count; i++) {
        const mc_tile_request *tile = &request->u.tile.tiles[i];
        const char *const *values = tile->values;
        MC_TRY(settle_values(&values, tile->tileset, tile->link->grid, NULL, ctx, pool));
        MC_TRY(mc_values_check(tile->tileset, tile->link->grid, values, ctx, pool));
    }
    for (int i = 0; request->kind == MC_REQUEST_MAP && i < request->u.map.count; i++) {
        mc_map_layer layer = request->u.map.layers[i];
        MC_TRY(settle_map_layer(&layer, true, NULL, ctx, pool));
    }
    return MC_OK;
}
