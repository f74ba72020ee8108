/* A tile (OGC 20-057, 7): rows count from the top. A stored tile costs as one of WMTS. */
#include <string.h>

#include "service/ogcapi/ogcapi.h"
#include "service/wmts/wmts.h"
#include "text/accept.h"

static mc_error *
check_vector_accepted(mc_ogcapi_ask *ask)
{
    const char *accept = ask->image >= 0 ? NULL : mc_call_header(ask->call, "Accept");
    if (ask->image < 0)
        ask->request->vary = "Accept";
    if (accept == NULL || mc_accept_weight(accept, MC_OGCAPI_MVT) > 0 ||
        mc_accept_weight(accept, "application/x-protobuf") > 0 ||
        mc_accept_weight(accept, "application/octet-stream") > 0)
        return MC_OK;
    return mc_error_create(ask->pool, MC_ERR_NOT_ACCEPTABLE, "tiles of collection %s are " MC_OGCAPI_MVT " only",
                           ask->tileset->name);
}

/* Where the tileset has <formats>, what is kept of them is served. Tiles of several collections are merged, and one of
 * them that is there alone is made what the merged ones would be. */
static mc_error *
choose_tile_image(mc_tile_stack *stack, mc_ogcapi_ask *ask)
{
    if (stack->count > 1) {
        MC_TRY(mc_ogcapi_choose_image(&stack->format, ask, true));
        stack->exact = stack->format;
        return MC_OK;
    }
    MC_TRY(mc_ogcapi_choose_image(&stack->exact, ask, false));
    mc_tileset *variant =
        stack->exact == NULL || ask->style != NULL
            ? NULL
            : mc_tileset_variant_of_type(ask->tileset, mc_coding_mime(mc_format_coding(stack->exact)));
    if (variant == NULL)
        return MC_OK;
    stack->tiles[0].tileset = variant;
    stack->format = variant->format;
    stack->exact = NULL;
    return MC_OK;
}

/* The tiles of the collections at a place that is not yet said, the lowest first. */
static mc_error *
stack_tiles(mc_tile_stack *stack, const mc_ogcapi_ask *ask)
{
    const mc_map_layer own = { .tileset = ask->tileset, .link = ask->link, .style = ask->style };
    int count = ask->layer_count > 0 ? ask->layer_count : 1;
    mc_tile_request *tiles = apr_pcalloc(ask->pool, (size_t)count * sizeof(*tiles));
    for (int i = 0; i < count; i++) {
        const mc_map_layer *layer = ask->layer_count > 0 ? &ask->layers[i] : &own;
        const char **values;
        MC_TRY(mc_ogcapi_values(&values, ask, layer->tileset));
        tiles[i] = (mc_tile_request){
            .tileset = layer->tileset, .link = layer->link, .values = values, .style = layer->style
        };
    }
    *stack = (mc_tile_stack){ .tiles = tiles, .count = count, .format = ask->tileset->format };
    return MC_OK;
}

mc_error *
mc_ogcapi_tile(mc_ogcapi_ask *ask)
{
    const mc_grid *grid = ask->link->grid;
    mc_tile_stack stack;
    MC_TRY(mc_ogcapi_check_kind(ask));
    MC_TRY(stack_tiles(&stack, ask));
    if (ask->z < grid->level_count && ask->column < grid->levels[ask->z].columns)
        ask->column = mc_grid_from_west(grid, ask->z, ask->column);
    if (mc_ogcapi_is_vector(ask->tileset))
        MC_TRY(check_vector_accepted(ask));
    else
        MC_TRY(choose_tile_image(&stack, ask));
    if (stack.count == 1)
        MC_TRY(mc_wmts_check_level(stack.tiles, ask->z, MC_ERR_TILE_OUT_OF_RANGE, ask->pool));
    MC_TRY(mc_stack_place(&stack, ask->z, ask->column, ask->row, true, ask->pool));
    if (stack.format == NULL)
        stack.format = ask->call->config->default_format;
    ask->request->kind = MC_REQUEST_TILE;
    ask->request->u.tile = stack;
    return MC_OK;
}
