/*
 * TileJSON 3.0.0 of a tileset: where web maps find its tiles, where it has data, and what layers vector tiles have. Its
 * tiles are those of the spherical Mercator's square world, halved from level to level. Of other squares that are
 * halved it says with the keys of GDAL's MVT driver where they lie (3: who does not know a key acts as without it).
 */
#include <apr_strings.h>
#include <math.h>
#include <string.h>

#include "grid/earth.h"
#include "service/service_base.h"
#include "text/json_writer.h"

#define MERCATOR_LATITUDE 85.0511287798 /* degrees: where that square ends */
#define SAME 1e-6

bool
mc_tilejson_layer(const char **layer, const char *text, const mc_call *call, apr_pool_t *pool)
{
    static const char suffix[] = ".json";
    size_t size = strlen(text), tail = sizeof(suffix) - 1;
    if (size <= tail || strcmp(text + size - tail, suffix) != 0 || mc_call_tileset(call, text, pool) != NULL)
        return false;
    *layer = apr_pstrmemdup(pool, text, size - tail);
    return true;
}

/* Whether level z of the grid is level z of web maps, for all levels of the link. */
static bool
is_web_mercator(const mc_grid_link *link)
{
    const mc_grid *grid = link->grid;
    if (!mc_grid_is_mercator(grid) || (grid->origin != MC_BOTTOM_LEFT && grid->origin != MC_TOP_LEFT))
        return false;
    for (int z = link->minzoom; z <= link->maxzoom; z++) {
        double side = 2 * MC_WEB_MERCATOR_EDGE / ldexp(1, z);
        mc_extent first = mc_grid_tile_extent(grid, z, 0, 0);
        double edge =
            grid->origin == MC_BOTTOM_LEFT ? first.miny + MC_WEB_MERCATOR_EDGE : MC_WEB_MERCATOR_EDGE - first.maxy;
        if (fabs(first.maxx - first.minx - side) > side * SAME || fabs(first.maxy - first.miny - side) > side * SAME ||
            fabs(first.minx + MC_WEB_MERCATOR_EDGE) > side * SAME + 1 || fabs(edge) > side * SAME + 1)
            return false;
    }
    return true;
}

/* The tile that level 0 has or would have, in the upper left corner that all levels share. */
typedef struct tilejson_square {
    double left, top, side;
} tilejson_square;

static bool
find_square(tilejson_square *found, const mc_grid_link *link)
{
    const mc_grid *grid = link->grid;
    for (int z = link->minzoom; z <= link->maxzoom; z++) {
        mc_extent box = mc_grid_tile_extent(grid, z, 0, mc_grid_flip_y(grid, z, 0));
        double width = box.maxx - box.minx, height = box.maxy - box.miny, side = ldexp(width, z);
        if (z == link->minzoom)
            *found = (tilejson_square){ box.minx, box.maxy, side };
        if (fabs(height - width) > width * SAME || fabs(side - found->side) > side * SAME ||
            fabs(box.minx - found->left) > width * SAME || fabs(box.maxy - found->top) > width * SAME)
            return false;
    }
    return grid->origin == MC_BOTTOM_LEFT || grid->origin == MC_TOP_LEFT;
}

/* Where the layer has data, within the latitudes that the grid has. Of a grid whose place in the world is not known
 * here, nothing. */
static void
write_tilejson_bounds(mc_json_writer *json, const mc_tileset *tileset, const mc_grid_link *link, bool web)
{
    mc_extent box = mc_tileset_degrees(tileset), own;
    double latitude = web ? MERCATOR_LATITUDE : 90;
    if (!mc_tileset_data_box(&own, tileset) && !tileset->has_wgs84_box &&
        !mc_grid_degrees(&own, link->grid, &link->extent))
        return;
    const double numbers[] = { fmax(box.minx, -180), fmax(box.miny, -latitude), fmin(box.maxx, 180),
                               fmin(box.maxy, latitude) };
    mc_json_open_array(json, "bounds");
    for (int i = 0; i < 4; i++)
        mc_json_decimals(json, NULL, numbers[i], 8);
    mc_json_close(json);
}

/* The middle of the data, and the level at which they fill about two tiles. */
static void
write_tilejson_center(mc_json_writer *json, const mc_tileset *tileset, const mc_grid_link *link)
{
    mc_extent box = tileset->wgs84_box;
    if (!mc_tileset_data_box(&box, tileset) && !tileset->box_configured)
        return;
    double share = fmax((box.maxx - box.minx) / 360, (box.maxy - box.miny) / 180);
    int level = (int)floor(log2(2 / fmax(share, 1e-9)));
    level = level < link->minzoom ? link->minzoom : level > link->maxzoom ? link->maxzoom : level;
    mc_json_open_array(json, "center");
    mc_json_decimals(json, NULL, (box.minx + box.maxx) / 2, 8);
    mc_json_decimals(json, NULL, (box.miny + box.maxy) / 2, 8);
    mc_json_integer(json, NULL, level);
    mc_json_close(json);
}

/* As GDAL's MVT driver writes and reads them. */
static void
write_tilejson_place(mc_json_writer *json, const tilejson_square *at, const mc_grid *grid)
{
    mc_json_string(json, "crs", grid->srs);
    mc_json_digits(json, "tile_origin_upper_left_x", at->left, 15);
    mc_json_digits(json, "tile_origin_upper_left_y", at->top, 15);
    mc_json_digits(json, "tile_dimension_zoom_0", at->side, 15);
}

static void
write_tilejson_member(mc_json_writer *json, const char *key, const char *text)
{
    if (text != NULL)
        mc_json_string(json, key, text);
}

/* Whether a document can say where the tiles lie: those of web maps need nothing said. */
static mc_error *
find_tilejson_place(tilejson_square *at, const mc_grid_link *link, bool web, bool from_top, apr_pool_t *pool)
{
    *at = (tilejson_square){ 0 };
    if (web)
        return MC_OK;
    if (!find_square(at, link))
        return mc_error_create(
            pool, MC_ERR_NOT_FOUND,
            "TileJSON knows square tiles only that are halved from level to level in one corner, and "
            "grid %s has others",
            link->grid->name);
    if (!from_top)
        return mc_error_create(pool, MC_ERR_NOT_FOUND,
                               "TileJSON of grid %s, whose tiles are not those of web maps, counts rows from the top: "
                               "it is at gmaps",
                               link->grid->name);
    return MC_OK;
}

/* What a document leads to. */
typedef struct tilejson_addresses {
    const char *tiles;
    const char
        *base; /* of the tiles, without the extension, for those of other formats; NULL: nothing is said of them */
    const char *styles; /* the member of that name as JSON; NULL: there is none */
} tilejson_addresses;

/* Of a tileset with <formats>: the addresses of all of its formats, by media type, as a key of ours (3: who does not
 * know a key acts as without it). "tiles" cannot have them, as its addresses are of the same tiles (3.2). */
static void
write_tilejson_formats(mc_json_writer *json, const mc_tileset *tileset, const char *address, apr_pool_t *pool)
{
    if (tileset->variant_count == 0)
        return;
    mc_json_open_object(json, "formats");
    if (tileset->format->type != MC_FORMAT_MIXED)
        mc_json_string(json, mc_coding_mime(mc_format_coding(tileset->format)),
                       apr_pstrcat(pool, address, mc_tileset_address_extension(tileset), NULL));
    for (int i = 0; i < tileset->variant_count; i++) {
        const mc_format *format = tileset->variants[i]->format;
        mc_json_string(json, mc_coding_mime(mc_format_coding(format)),
                       apr_pstrcat(pool, address, format->extension, NULL));
    }
    mc_json_string(json, "*/*", apr_pstrcat(pool, address, MC_EXTENSION_BY_ACCEPT, NULL));
    mc_json_close(json);
}

static mc_error *
write_tilejson(mc_request *request, const mc_tile_request *tile, const tilejson_addresses *to, bool from_top,
               mc_ctx *ctx, apr_pool_t *pool)
{
    tilejson_square place;
    const char *layers = NULL;
    bool web = is_web_mercator(tile->link);
    MC_TRY(find_tilejson_place(&place, tile->link, web, from_top, pool));
    MC_TRY(mc_tileset_layers_text(&layers, tile->tileset, tile->link->grid, ctx, pool));
    const mc_metadata *metadata = tile->tileset->metadata;
    mc_tileset_ask_place(tile->tileset, ctx);
    mc_json_writer *json = mc_json_create(MC_JSON_DENSE, pool);
    mc_json_open_object(json, NULL);
    mc_json_string(json, "tilejson", "3.0.0");
    mc_json_string(json, "name", mc_tileset_title(tile->tileset));
    write_tilejson_member(json, "description", mc_meta(metadata, "abstract"));
    write_tilejson_member(json, "attribution", mc_meta(metadata, "attribution"));
    mc_json_string(json, "scheme", from_top ? "xyz" : "tms");
    mc_json_open_array(json, "tiles");
    mc_json_string(json, NULL, to->tiles);
    mc_json_close(json);
    if (to->base != NULL)
        write_tilejson_formats(json, tile->tileset, to->base, pool);
    mc_json_integer(json, "minzoom", tile->link->minzoom);
    mc_json_integer(json, "maxzoom", tile->link->maxzoom);
    write_tilejson_bounds(json, tile->tileset, tile->link, web);
    if (web)
        write_tilejson_center(json, tile->tileset, tile->link);
    else
        write_tilejson_place(json, &place, tile->link->grid);
    if (layers != NULL)
        mc_json_raw(json, "vector_layers", layers);
    if (to->styles != NULL)
        mc_json_raw(json, "styles", to->styles);
    mc_json_close(json);
    mc_json_space(json, "\n");
    request->kind = MC_REQUEST_DOCUMENT;
    request->u.document.mime = "application/json";
    return mc_json_finish(&request->u.document.text, json);
}

/* The styles of a layer whose key names none: for each one the address of its own document. */
static const char *
list_tilejson_styles(const mc_tile_request *tile, const char *layer, const char *path, const mc_call *call,
                     apr_pool_t *pool)
{
    const mc_tileset *tileset = tile->tileset;
    if (tile->style != NULL || tileset->palette_count == 0 || mc_tileset_dimension(tileset, "style", false) >= 0)
        return NULL;
    mc_json_writer *json = mc_json_create(MC_JSON_DENSE, pool);
    mc_json_open_array(json, NULL);
    for (int i = 0; i < tileset->palette_count; i++) {
        const char *key = apr_pstrcat(pool, layer, "[style=", tileset->palettes[i]->name, "]", NULL);
        mc_json_open_object(json, NULL);
        mc_json_string(json, "name", tileset->palettes[i]->name);
        mc_json_string(json, "title", tileset->palettes[i]->title);
        mc_json_string(json, "tilejson",
                       apr_pstrcat(pool, call->base, path, "/", mc_url_segment(key, pool), ".json", NULL));
        mc_json_close(json);
    }
    mc_json_close(json);
    return mc_json_finish_text(json);
}

mc_error *
mc_tilejson(mc_request *request, const char *layer, const char *path, bool from_top, const mc_call *call, mc_ctx *ctx,
            apr_pool_t *pool)
{
    mc_tile_request tile;
    MC_TRY(mc_layer_parse(&tile, layer, call, MC_ERR_NOT_FOUND, pool));
    const char *base = apr_pstrcat(pool, call->base, path, "/", mc_url_segment(layer, pool), "/{z}/{x}/{y}.", NULL);
    tilejson_addresses to = { .tiles = apr_pstrcat(pool, base, mc_tileset_address_extension(tile.tileset), NULL),
                              .base = base,
                              .styles = list_tilejson_styles(&tile, layer, path, call, pool) };
    return write_tilejson(request, &tile, &to, from_top, ctx, pool);
}

mc_error *
mc_tilejson_at(mc_request *request, const mc_tile_request *tile, const char *url, bool from_top, mc_ctx *ctx,
               apr_pool_t *pool)
{
    return write_tilejson(request, tile, &(tilejson_addresses){ .tiles = url }, from_top, ctx, pool);
}
