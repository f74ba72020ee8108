/* Addresses of tiles that TMS and gmaps share. */
#include "service/tiles/tile_path.h"

#include <string.h>

/* An unknown map of TMS is not found (its specification, 2); gmaps, which has none, answers as MapCache. */
static mc_error *
read_path_layers(mc_param_reader *reader)
{
    mc_tile_path *tile = reader->target;
    bool named = tile->layer[strspn(tile->layer, ";")] != '\0';
    mc_error_kind kind = named && !tile->from_top ? MC_ERR_NOT_FOUND : reader->row->kind;
    return mc_layers_parse(&tile->stack, tile->layer, reader->call, kind, reader->pool);
}

static mc_error *
check_strict_extension(mc_param_reader *reader)
{
    const mc_tile_path *tile = reader->target;
    const mc_tileset *first = tile->stack.tiles[0].tileset;
    if (!reader->call->service->strict || mc_tileset_offers_extension(first, tile->row.extension))
        return MC_OK;
    return mc_error_create(reader->pool, MC_ERR_NOT_FOUND, "the extension \"%s\" is not %s", tile->row.extension,
                           mc_tileset_address_extension(first));
}

const mc_param_row mc_tile_path_params[] = {
    MC_PARAM_TEXT(
        "layer", offsetof(mc_tile_path, layer),
        "Layers with `;` between them, each as name[dimension=value]@grid; values and the grid may be left out. An "
        "unknown layer or grid is 404 of TMS, 400 of gmaps.",
        .flags = MC_PARAM_REQUIRED, .kind = MC_ERR_BAD_REQUEST),
    MC_PARAM_STEP(read_path_layers),
    MC_PARAM_INTEGER("z", offsetof(mc_tile_path, z), "The level, 0 for the coarsest.", .flags = MC_PARAM_REQUIRED,
                     .kind = MC_ERR_NOT_FOUND, .refusal = "z \"{value}\" is not a level"),
    MC_PARAM_INTEGER("x", offsetof(mc_tile_path, x), "The column, 0 on the left.", .flags = MC_PARAM_REQUIRED,
                     .kind = MC_ERR_NOT_FOUND, .refusal = "x \"{value}\" is not a column"),
    MC_PARAM_FILE("y", offsetof(mc_tile_path, row),
                  "The row, 0 at the bottom (TMS) or at the top (gmaps), perhaps `@2x` or what the tileset's <density> "
                  "offers, and an extension: any, of a strict service that of a format of the tileset, or `auto`.",
                  .flags = MC_PARAM_REQUIRED | MC_PARAM_EXTENSION | MC_PARAM_DENSITY, .kind = MC_ERR_NOT_FOUND,
                  .refusal = "y \"{value}\" is not a row with an extension"),
    MC_PARAM_STEP(check_strict_extension),
    MC_PARAM_END,
};

mc_error *
mc_tile_path_parse(mc_request *request, const mc_call *call, const apr_array_header_t *path, bool from_top,
                   apr_pool_t *pool)
{
    mc_tile_path tile = { .from_top = from_top };
    int next = path->nelts - 4;
    request->kind = MC_REQUEST_TILE;
    MC_TRY(mc_params_read_path(&tile, mc_tile_path_params, call, path, &next, pool));
    for (int i = 0; i < tile.stack.count && tile.row.density > 1; i++) {
        mc_tile_request *one = &tile.stack.tiles[i];
        one->link = mc_tileset_dense_link(one->tileset, one->link, tile.row.density);
        if (one->link == NULL)
            return mc_error_create(pool, MC_ERR_NOT_FOUND, "layer %s is not offered at @%dx", one->tileset->name,
                                   tile.row.density);
    }
    MC_TRY(mc_stack_choose(&tile.stack, tile.row.extension, call, pool));
    const mc_format *format = tile.stack.tiles[0].tileset->format; /* of the extension, which a strict service checks */
    if (call->service->strict && tile.stack.exact == NULL && format != NULL &&
        mc_format_coding(format) != MC_CODING_UNKNOWN)
        tile.stack.exact = format;
    request->u.tile = tile.stack;
    return mc_stack_place(&request->u.tile, tile.z, tile.x, tile.row.number, from_top, pool);
}
