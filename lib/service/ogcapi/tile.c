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

/* Where the tileset has <formats>, what is kept of them is served. */
static mc_error *
choose_tile_image(mc_tile_stack *stack, mc_ogcapi_ask *ask)
{
    MC_TRY(mc_ogcapi_choose_image(&stack->exact, ask, false));
    mc_tileset *variant =
        stack->exact == NULL ? NULL
                             : mc_tileset_variant_of_type(ask->tileset, mc_coding_mime(mc_format_coding(stack->exact)));
    if (variant == NULL)
        return MC_OK;
    stack->tiles[0].tileset = variant;
    stack->format = variant->format;
    stack->exact = NULL;
    return MC_OK;
}

mc_error *
mc_ogcapi_tile(mc_ogcapi_ask *ask)
{
    const mc_grid *grid = ask->link->grid;
    const char **values;
    MC_TRY(mc_ogcapi_check_kind(ask));
    MC_TRY(mc_ogcapi_values(&values, ask, ask->tileset));
    mc_tile_request *tile = apr_pcalloc(ask->pool, sizeof(*tile));
    *tile = (mc_tile_request){ .tileset = ask->tileset, .link = ask->link, .values = values };
    mc_tile_stack stack = { .tiles = tile, .count = 1, .format = ask->tileset->format };
    if (ask->z < grid->level_count && ask->column < grid->levels[ask->z].columns)
        ask->column = mc_grid_from_west(grid, ask->z, ask->column);
    MC_TRY(mc_wmts_check_level(tile, ask->z, MC_ERR_TILE_OUT_OF_RANGE, ask->pool));
    MC_TRY(mc_stack_place(&stack, ask->z, ask->column, ask->row, true, ask->pool));
    if (mc_ogcapi_is_vector(ask->tileset))
        MC_TRY(check_vector_accepted(ask));
    else
        MC_TRY(choose_tile_image(&stack, ask));
    if (stack.format == NULL)
        stack.format = ask->call->config->default_format;
    ask->request->kind = MC_REQUEST_TILE;
    ask->request->u.tile = stack;
    return MC_OK;
}
