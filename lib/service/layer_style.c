/*
 * A style of one layer, as MapLibre and QGIS read it: vector tiles in a colour for each of their layers, as the map
 * page draws them; images as they are. TileJSON tells where the tiles are.
 */
#include <apr_strings.h>
#include <string.h>

#include "base/hash.h"
#include "service/layer_style.h"

/* --- colours ------------------------------------------------------------------------------------------------------ */

static const char *const layer_colours[] = { "#3b7dd8", "#d9822b", "#2a9d6f", "#b4508e",
                                             "#7a6ad8", "#a08400", "#c94f4f", "#3a9db0" };

enum { LAYER_COLOURS = sizeof(layer_colours) / sizeof(layer_colours[0]) };

int
mc_layer_colour_next(unsigned *taken, const mc_tileset *tileset)
{
    unsigned place = (unsigned)(mc_hash64(tileset->name, strlen(tileset->name), 0) % LAYER_COLOURS);
    if (mc_tileset_is_image(tileset))
        return 0;
    if (*taken == (1U << LAYER_COLOURS) - 1)
        *taken = 0;
    while ((*taken & 1U << place) != 0)
        place = (place + 1) % LAYER_COLOURS;
    *taken |= 1U << place;
    return (int)place;
}

int
mc_layer_colour_first(const mc_call *call, const mc_tileset *tileset)
{
    unsigned taken = 0;
    const apr_array_header_t *tilesets = call->config->tilesets;
    for (int i = 0; i < tilesets->nelts; i++) {
        const mc_tileset *other = APR_ARRAY_IDX(tilesets, i, const mc_tileset *);
        int place = mc_layer_colour_next(&taken, other);
        if (other == tileset)
            return place;
    }
    return mc_layer_colour_next(&taken, tileset); /* one that a client has named */
}

static const char *
colour_of_layer(int first, int layer)
{
    return layer_colours[(first + layer) % LAYER_COLOURS];
}

void
mc_layer_write_colours(mc_json_writer *json, const mc_tileset *tileset, int first)
{
    if (mc_tileset_is_image(tileset))
        return;
    mc_json_open_array(json, "colours");
    for (int i = 0; i < LAYER_COLOURS; i++)
        mc_json_string(json, NULL, colour_of_layer(first, i));
    mc_json_close(json);
}

/* --- styles ------------------------------------------------------------------------------------------------------- */

/* What is drawn of one kind of geometry. */
typedef struct style_part {
    const char *type, *geometry;
    const char *colour_key, *size_key, *opacity_key;
    double size; /* pixels */
    double opacity;
} style_part;

static void
write_style_layer(mc_json_writer *json, const style_part *part, const char *layer, const char *colour, apr_pool_t *pool)
{
    mc_json_open_object(json, NULL);
    mc_json_string(json, "id", apr_pstrcat(pool, layer, " ", part->geometry, " ", part->type, NULL));
    mc_json_string(json, "type", part->type);
    mc_json_string(json, "source", "layer");
    mc_json_string(json, "source-layer", layer);
    mc_json_open_array(json, "filter");
    mc_json_string(json, NULL, "==");
    mc_json_open_array(json, NULL);
    mc_json_string(json, NULL, "geometry-type");
    mc_json_close(json);
    mc_json_string(json, NULL, part->geometry);
    mc_json_close(json);
    mc_json_open_object(json, "paint");
    mc_json_string(json, part->colour_key, colour);
    if (part->size_key != NULL)
        mc_json_decimals(json, part->size_key, part->size, 1);
    mc_json_decimals(json, part->opacity_key, part->opacity, 2);
    mc_json_close(json);
    mc_json_close(json);
}

/* Areas below lines below points, each of all layers. */
static mc_error *
write_vector_style(mc_json_writer *json, const mc_tile_request *tile, int first_colour, mc_ctx *ctx, apr_pool_t *pool)
{
    static const style_part parts[] = {
        { "fill", "Polygon", "fill-color", NULL, "fill-opacity", 0, 0.33 },
        { "line", "Polygon", "line-color", "line-width", "line-opacity", 1.2, 1 },
        { "line", "LineString", "line-color", "line-width", "line-opacity", 2, 1 },
        { "circle", "Point", "circle-color", "circle-radius", "circle-opacity", 4, 1 },
    };
    apr_array_header_t *layers;
    MC_TRY(mc_tileset_layers(&layers, tile->tileset, tile->link->grid, ctx, pool));
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        for (int j = 0; layers != NULL && j < layers->nelts; j++)
            write_style_layer(json, &parts[i], APR_ARRAY_IDX(layers, j, mc_vector_layer_info).name,
                              colour_of_layer(first_colour, j), pool);
    return MC_OK;
}

static void
write_image_style(mc_json_writer *json)
{
    mc_json_open_object(json, NULL);
    mc_json_string(json, "id", "layer");
    mc_json_string(json, "type", "raster");
    mc_json_string(json, "source", "layer");
    mc_json_close(json);
}

mc_error *
mc_layer_style(mc_buf **text, const mc_tile_request *tile, const char *url, const mc_call *call, mc_ctx *ctx,
               apr_pool_t *pool)
{
    bool image = mc_tileset_is_image(tile->tileset);
    mc_json_writer *json = mc_json_create(MC_JSON_DENSE, pool);
    mc_json_open_object(json, NULL);
    mc_json_integer(json, "version", 8);
    mc_json_string(json, "name", mc_tileset_title(tile->tileset));
    mc_json_open_object(json, "sources");
    mc_json_open_object(json, "layer");
    mc_json_string(json, "type", image ? "raster" : "vector");
    mc_json_string(json, "url", url);
    if (image)
        mc_json_integer(json, "tileSize", tile->link->grid->tile_width);
    mc_json_close(json);
    mc_json_close(json);
    mc_json_open_array(json, "layers");
    if (image)
        write_image_style(json);
    else
        MC_TRY(write_vector_style(json, tile, mc_layer_colour_first(call, tile->tileset), ctx, pool));
    mc_json_close(json);
    mc_json_close(json);
    mc_json_space(json, "\n");
    return mc_json_finish(text, json);
}
