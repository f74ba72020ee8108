/*
 * TileJSON 3.0.0 of a tileset: where web maps find its tiles, where it has data, and what layers vector tiles have. Its
 * tiles are those of the spherical Mercator's square world, halved from level to level. Of other squares that are
 * halved it says with the keys of GDAL's MVT driver where they lie (3: who does not know a key acts as without it).
 */
#include <apr_strings.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "service/service_base.h"
#include "text/text.h"

#define HALF_WORLD 20037508.3427892480
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
    mc_extent degrees;
    if (grid->epsg == 4326 || !mc_grid_degrees(&degrees, grid, &grid->extent) ||
        (grid->origin != MC_BOTTOM_LEFT && grid->origin != MC_TOP_LEFT))
        return false;
    for (int z = link->minzoom; z <= link->maxzoom; z++) {
        double side = 2 * HALF_WORLD / ldexp(1, z);
        mc_extent first = mc_grid_tile_extent(grid, z, 0, 0);
        double edge = grid->origin == MC_BOTTOM_LEFT ? first.miny + HALF_WORLD : HALF_WORLD - first.maxy;
        if (fabs(first.maxx - first.minx - side) > side * SAME || fabs(first.maxy - first.miny - side) > side * SAME ||
            fabs(first.minx + HALF_WORLD) > side * SAME + 1 || fabs(edge) > side * SAME + 1)
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

static const char *
quote_tilejson_text(const char *text, apr_pool_t *pool)
{
    return apr_pstrcat(pool, "\"", mc_json_escape(text, pool), "\"", NULL);
}

static const char *
format_tilejson_member(const char *key, const char *text, apr_pool_t *pool)
{
    return text == NULL ? "" : apr_pstrcat(pool, ",\"", key, "\":", quote_tilejson_text(text, pool), NULL);
}

/* Within the latitudes that the grid has. Of a grid whose place in the world is not known here, nothing. */
static const char *
format_tilejson_bounds(const mc_tileset *tileset, const mc_grid_link *link, bool web, apr_pool_t *pool)
{
    mc_extent box = mc_tileset_degrees(tileset), own;
    double latitude = web ? MERCATOR_LATITUDE : 90;
    if (!tileset->has_wgs84_box && !mc_grid_degrees(&own, link->grid, &link->extent))
        return "";
    return apr_psprintf(pool, ",\"bounds\":[%.8f,%.8f,%.8f,%.8f]", fmax(box.minx, -180), fmax(box.miny, -latitude),
                        fmin(box.maxx, 180), fmin(box.maxy, latitude));
}

/* As GDAL's MVT driver writes and reads them. */
static const char *
format_tilejson_place(const tilejson_square *at, const mc_grid *grid, apr_pool_t *pool)
{
    char numbers[3][40];
    const double values[] = { at->left, at->top, at->side };
    for (int i = 0; i < 3; i++)
        snprintf(numbers[i], sizeof(numbers[i]), "%.15g", values[i]);
    return apr_psprintf(pool,
                        ",\"crs\":%s,\"tile_origin_upper_left_x\":%s,\"tile_origin_upper_left_y\":%s,"
                        "\"tile_dimension_zoom_0\":%s",
                        quote_tilejson_text(grid->srs, pool), numbers[0], numbers[1], numbers[2]);
}

/* What a document says of where the tiles lie; nothing of those of web maps. */
static mc_error *
find_tilejson_place(const char **place, const mc_grid_link *link, bool web, bool from_top, apr_pool_t *pool)
{
    tilejson_square at = { 0 };
    *place = "";
    if (web)
        return MC_OK;
    if (!find_square(&at, link))
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
    *place = format_tilejson_place(&at, link->grid, pool);
    return MC_OK;
}

mc_error *
mc_tilejson(mc_request *request, const char *layer, const char *path, bool from_top, const mc_call *call, mc_ctx *ctx,
            apr_pool_t *pool)
{
    mc_tile_request tile;
    const char *layers = NULL, *place;
    MC_TRY(mc_layer_parse(&tile, layer, call, MC_ERR_NOT_FOUND, pool));
    bool web = is_web_mercator(tile.link);
    MC_TRY(find_tilejson_place(&place, tile.link, web, from_top, pool));
    const mc_tile_key key = { .grid = tile.link->grid };
    MC_TRY(mc_tileset_vector_layers(&layers, tile.tileset, &key, ctx, pool));
    const char *url = apr_pstrcat(pool, call->base, path, "/", mc_url_segment(layer, pool), "/{z}/{x}/{y}.",
                                  mc_tileset_extension(tile.tileset), NULL);
    const char *text = apr_pstrcat(
        pool, "{\"tilejson\":\"3.0.0\",\"name\":", quote_tilejson_text(mc_tileset_title(tile.tileset), pool),
        format_tilejson_member("description", mc_meta(tile.tileset->metadata, "abstract"), pool),
        format_tilejson_member("attribution", mc_meta(tile.tileset->metadata, "attribution"), pool), ",\"scheme\":\"",
        from_top ? "xyz" : "tms", "\",\"tiles\":[", quote_tilejson_text(url, pool),
        "],\"minzoom\":", apr_itoa(pool, tile.link->minzoom), ",\"maxzoom\":", apr_itoa(pool, tile.link->maxzoom),
        format_tilejson_bounds(tile.tileset, tile.link, web, pool), place,
        layers == NULL ? "" : ",\"vector_layers\":", layers == NULL ? "" : layers, "}\n", NULL);
    request->kind = MC_REQUEST_DOCUMENT;
    request->u.document =
        (mc_document){ .text = mc_buf_attach(mc_buf_copy(text, strlen(text)), pool), .mime = "application/json" };
    return MC_OK;
}
