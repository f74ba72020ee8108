/* What the front page and the map know of the layers, as JSON: a line for each, or all of one. */
#include <math.h>
#include <string.h>

#include "grid/earth.h"
#include "service/layer_style.h"
#include "service/pages/demo.h"
#include "service/wms/wms.h"
#include "vector/crs/projection.h"

#define RADIANS_PER_DEGREE (3.14159265358979323846 / 180.0)
#define PICTURE_TILES 2 /* a small picture is made of at most so many columns and rows of tiles */

/* A box of degrees in the CRS of a grid of degrees or of the spherical Mercator, whose edges are those of the world;
 * false for others. */
static bool
place_degrees(mc_extent *placed, const mc_grid *grid, const mc_extent *box)
{
    mc_extent whole;
    *placed = *box;
    if (mc_grid_is_mercator(grid)) {
        placed->minx = box->minx * RADIANS_PER_DEGREE * MC_EARTH_RADIUS;
        placed->maxx = box->maxx * RADIANS_PER_DEGREE * MC_EARTH_RADIUS;
        placed->miny = asinh(tan(fmax(box->miny, -89) * RADIANS_PER_DEGREE)) * MC_EARTH_RADIUS;
        placed->maxy = asinh(tan(fmin(box->maxy, 89) * RADIANS_PER_DEGREE)) * MC_EARTH_RADIUS;
        return true;
    }
    return mc_grid_degrees(&whole, grid, &grid->extent);
}

/* The same for any CRS. */
static bool
place_data(mc_extent *placed, const mc_grid *grid, const mc_extent *box, apr_pool_t *pool)
{
    mc_projection *projection;
    if (place_degrees(placed, grid, box))
        return true;
    *placed = *box;
    return mc_projection_open(&projection, "EPSG:4326", grid->srs, pool) == MC_OK && projection != NULL &&
           mc_projection_box(placed, projection, false);
}

/* Where a tileset has data on a grid, as far as that is known. */
static mc_extent
find_data_box(const mc_tileset *tileset, const mc_grid_link *link, apr_pool_t *pool)
{
    mc_extent placed;
    if (mc_tileset_data_extent(&placed, tileset, link, pool))
        return placed;
    if (!tileset->has_wgs84_box || !place_data(&placed, link->grid, &tileset->wgs84_box, pool))
        return link->extent;
    placed = mc_extent_intersection(&placed, &link->extent);
    return mc_extent_valid(&placed) ? placed : link->extent;
}

/* The finest level on which a few tiles hold the data; on the coarsest one those in the middle. */
static bool
find_picture(mc_tile_range *tiles, int *level, const mc_extent *box, const mc_grid_link *link)
{
    for (int z = link->maxzoom; z >= link->minzoom; z--) {
        if (!mc_grid_link_tiles(link, box, z, tiles))
            continue;
        *level = z;
        int columns = tiles->maxx - tiles->minx, rows = tiles->maxy - tiles->miny;
        if (columns <= PICTURE_TILES && rows <= PICTURE_TILES)
            return true;
        if (z > link->minzoom)
            continue;
        tiles->minx += (columns - 1) / 2 * (columns > PICTURE_TILES);
        tiles->miny += (rows - 1) / 2 * (rows > PICTURE_TILES);
        tiles->maxx = columns > PICTURE_TILES ? tiles->minx + PICTURE_TILES : tiles->maxx;
        tiles->maxy = rows > PICTURE_TILES ? tiles->miny + PICTURE_TILES : tiles->maxy;
        return true;
    }
    return false;
}

/* Symbols of features on the edge of the data are drawn beyond it. */
static mc_extent
widen_picture_box(const mc_extent *box, const mc_grid_link *link)
{
    static const double MARGIN = 0.05; /* of the width or height, on each side */
    double x = MARGIN * (box->maxx - box->minx), y = MARGIN * (box->maxy - box->miny);
    const mc_extent wide = { box->minx - x, box->miny - y, box->maxx + x, box->maxy + y };
    mc_extent inside = mc_extent_intersection(&wide, &link->extent);
    return mc_extent_valid(&inside) ? inside : *box;
}

/* The tiles of a small picture, rows from the top, and the part of them that the data covers with a margin. */
static void
write_picture(mc_json_writer *json, const mc_extent *data, const mc_grid_link *link)
{
    const mc_extent wide = widen_picture_box(data, link), *box = &wide;
    mc_tile_range tiles;
    int z;
    const mc_grid *grid = link->grid;
    if (!find_picture(&tiles, &z, box, link))
        return;
    mc_extent range = mc_grid_range_extent(grid, z, &tiles);
    int rows[] = { mc_grid_flip_y(grid, z, tiles.miny), mc_grid_flip_y(grid, z, tiles.maxy - 1) };
    double resolution = grid->levels[z].resolution;
    const mc_extent crop = { fmax(0, (box->minx - range.minx) / resolution),
                             fmax(0, (range.maxy - box->maxy) / resolution),
                             fmax(1, (box->maxx - range.minx) / resolution),
                             fmax(1, (range.maxy - box->miny) / resolution) };
    mc_json_open_object(json, "picture");
    mc_json_integer(json, "z", z);
    mc_json_integer(json, "column", tiles.minx);
    mc_json_integer(json, "columns", tiles.maxx - tiles.minx);
    mc_json_boolean(json, "westward", grid->origin == MC_TOP_RIGHT || grid->origin == MC_BOTTOM_RIGHT);
    mc_json_integer(json, "row", rows[0] < rows[1] ? rows[0] : rows[1]);
    mc_json_integer(json, "rows", tiles.maxy - tiles.miny);
    mc_json_integer(json, "levelRows", grid->levels[z].rows);
    mc_json_integer(json, "width", grid->tile_width);
    mc_json_integer(json, "height", grid->tile_height);
    mc_demo_write_extent(json, "crop", &crop, 2);
    mc_json_close(json);
}

static void
write_link(mc_json_writer *json, const mc_grid_link *link)
{
    mc_extent degrees;
    mc_json_open_object(json, NULL);
    mc_json_string(json, "grid", link->grid->name);
    mc_json_string(json, "srs", link->grid->srs);
    mc_json_integer(json, "minzoom", link->minzoom);
    mc_json_integer(json, "maxzoom", link->maxzoom);
    mc_json_boolean(json, "kml", mc_grid_degrees(&degrees, link->grid, &link->extent));
    mc_json_close(json);
}

static void
write_given(mc_json_writer *json, const char *key, const char *text)
{
    if (text != NULL && *text != '\0')
        mc_json_string(json, key, text);
}

/* Extensions of addresses, for tilesets with <formats>. */
static void
write_further_formats(mc_json_writer *json, const mc_tileset *tileset)
{
    if (tileset->variant_count == 0)
        return;
    mc_json_open_array(json, "further");
    for (int i = 0; i < tileset->variant_count; i++)
        mc_json_string(json, NULL, mc_tileset_extension(tileset->variants[i]));
    mc_json_string(json, NULL, MC_EXTENSION_BY_ACCEPT);
    mc_json_close(json);
}

static void
write_style_choice(mc_json_writer *json, const char *name, const char *title)
{
    mc_json_open_object(json, NULL);
    mc_json_string(json, "name", name);
    mc_json_string(json, "title", title);
    mc_json_close(json);
}

/* What is known of a tileset once its data have been asked where they lie. */
static void
write_layer_summary(mc_json_writer *json, const mc_tileset *tileset)
{
    mc_extent degrees = mc_tileset_degrees(tileset);
    mc_json_string(json, "name", tileset->name);
    mc_json_string(json, "title", mc_tileset_title(tileset));
    write_given(json, "abstract", mc_meta(tileset->metadata, "abstract"));
    write_given(json, "attribution", mc_meta(tileset->metadata, "attribution"));
    write_given(json, "trouble", tileset->not_built);
    mc_demo_write_extent(json, "box", &degrees, 6);
    mc_json_string(json, "mime", mc_tileset_mime(tileset));
    if (tileset->format != NULL && tileset->format->type == MC_FORMAT_MIXED)
        mc_json_string(json, "format", "JPEG or PNG"); /* "mime" is the one that WMS is asked for */
    mc_json_string(json, "extension", mc_tileset_address_extension(tileset));
    write_further_formats(json, tileset);
    mc_json_boolean(json, "image", mc_tileset_is_image(tileset));
    mc_json_boolean(json, "legend", mc_tileset_style_has_legend(tileset, NULL));
    if (tileset->palette_count == 0 || mc_tileset_dimension(tileset, "style", false) >= 0)
        return;
    mc_json_open_array(json, "styles");
    write_style_choice(json, "default", tileset->stored_palette == NULL ? "default" : tileset->stored_palette->title);
    for (int i = 0; i < tileset->palette_count; i++)
        write_style_choice(json, tileset->palettes[i]->name, tileset->palettes[i]->title);
    mc_json_close(json);
}

static void
write_layer_line(mc_json_writer *json, const mc_tileset *tileset, int first_colour, apr_pool_t *pool)
{
    mc_json_open_object(json, NULL);
    write_layer_summary(json, tileset);
    mc_layer_write_colours(json, tileset, first_colour);
    mc_json_open_array(json, "dimensions");
    for (int i = 0; i < tileset->dimension_count; i++)
        mc_json_string(json, NULL, tileset->dimensions[i]->name);
    mc_json_close(json);
    mc_json_open_array(json, "grids");
    for (int i = 0; i < tileset->link_count; i++)
        write_link(json, tileset->links[i]);
    mc_json_close(json);
    if (tileset->link_count > 0) {
        mc_extent box = find_data_box(tileset, tileset->links[0], pool);
        write_picture(json, &box, tileset->links[0]);
    }
    mc_json_close(json);
}

/* The protocols that are enabled and can show maps. */
static void
write_services(mc_json_writer *json, const mc_call *call)
{
    static const struct {
        const char *type, *title;
    } kinds[] = {
#define X(service, title) { service, title },
        MC_DEMO_PAGES(X)
#undef X
    };
    mc_json_open_array(json, "services");
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (mc_call_service(call, kinds[i].type) == NULL)
            continue;
        mc_json_open_object(json, NULL);
        mc_json_string(json, "type", kinds[i].type);
        mc_json_string(json, "title", kinds[i].title);
        mc_json_close(json);
    }
    mc_json_close(json);
}

/* What the pages may ask for: the protocols, and what WMS makes of them. */
static void
write_offer(mc_json_writer *json, const mc_call *call)
{
    const mc_wms *wms = (const mc_wms *)mc_call_service(call, "wms");
    write_services(json, call);
    mc_json_boolean(json, "jobs", mc_call_service(call, "jobs") != NULL);
    mc_json_boolean(json, "ogcapi", mc_call_service(call, "ogcapi") != NULL);
    mc_json_boolean(json, "assembles", wms != NULL && wms->full_wms != MC_WMS_ERROR);
    mc_json_string(json, "format", wms != NULL && wms->format->mime != NULL ? wms->format->mime : "image/png");
}

mc_error *
mc_demo_layers(mc_buf **text, const mc_call *call, mc_ctx *ctx, apr_pool_t *pool)
{
    const apr_array_header_t *tilesets = call->config->tilesets;
    mc_tilesets_ask_places(tilesets, ctx);
    mc_json_writer *json = mc_json_create(MC_JSON_DENSE, pool);
    mc_json_open_object(json, NULL);
    write_offer(json, call);
    mc_json_open_array(json, "layers");
    unsigned taken = 0;
    for (int i = 0; i < tilesets->nelts; i++) {
        const mc_tileset *tileset = APR_ARRAY_IDX(tilesets, i, const mc_tileset *);
        write_layer_line(json, tileset, mc_layer_colour_next(&taken, tileset), pool);
    }
    mc_json_close(json);
    mc_json_close(json);
    mc_json_space(json, "\n");
    return mc_json_finish(text, json);
}

static void
write_grids(mc_json_writer *json, const mc_tileset *tileset, apr_pool_t *pool)
{
    mc_json_open_array(json, "grids");
    for (int i = 0; i < tileset->link_count; i++) {
        mc_extent box = find_data_box(tileset, tileset->links[i], pool);
        mc_json_open_object(json, NULL);
        mc_demo_write_grid(json, tileset, tileset->links[i]);
        if (!mc_projection_is_formula(tileset->links[i]->grid->srs, "EPSG:4326"))
            write_given(json, "proj", mc_projection_formula(tileset->links[i]->grid->srs, pool));
        mc_demo_write_extent(json, "data", &box, 10);
        mc_json_close(json);
    }
    mc_json_close(json);
}

mc_error *
mc_demo_layer(mc_buf **text, const char *name, const mc_call *call, mc_ctx *ctx, apr_pool_t *pool)
{
    const mc_tileset *tileset = mc_call_tileset(call, name, pool);
    if (tileset == NULL)
        return mc_error_create(pool, MC_ERR_NOT_FOUND, "%s", mc_config_lacks_tileset(call->config, name, pool));
    mc_tileset_ask_place(tileset, ctx);
    mc_json_writer *json = mc_json_create(MC_JSON_DENSE, pool);
    mc_json_open_object(json, NULL);
    write_layer_summary(json, tileset);
    mc_layer_write_colours(json, tileset, mc_layer_colour_first(call, tileset));
    const apr_array_header_t *formats = mc_tileset_info_formats(tileset);
    mc_json_open_array(json, "infoFormats");
    for (int i = 0; formats != NULL && i < formats->nelts; i++)
        mc_json_string(json, NULL, APR_ARRAY_IDX(formats, i, const char *));
    mc_json_close(json);
    mc_json_raw(json, "dimensions", mc_demo_dimensions(tileset, ctx, pool));
    if (tileset->link_count > 0) {
        const char *layers = NULL;
        mc_error *error = mc_tileset_layers_text(&layers, tileset, tileset->links[0]->grid, ctx, pool);
        write_given(json, "trouble", error != MC_OK ? error->message : NULL);
        if (error == MC_OK && layers != NULL)
            mc_json_raw(json, "vectorLayers", layers);
    }
    write_grids(json, tileset, pool);
    mc_json_close(json);
    mc_json_space(json, "\n");
    return mc_json_finish(text, json);
}
