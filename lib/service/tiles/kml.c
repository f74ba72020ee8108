/*
 * KML super-overlays over the TMS tiles (docs/reference/services.md 6.3). Rows are TMS rows. Regions are in degrees: of
 * grids of degrees and of the spherical Mercator; others are not found. Viewers spread a picture evenly over its
 * latitudes: where that would move a Mercator tile's pixels, the picture is one of our own with such rows; of a tile of
 * degrees that reaches over a pole, one of what lies on this side.
 */
#include <apr_strings.h>
#include <math.h>
#include <string.h>

#include "service/tiles/tile_path.h"
#include "text/text.h"

#define MIME "application/vnd.google-earth.kml+xml"
#define LINKS_MAX 4096
/* Pixels by which a picture may be off. */
#define SHIFT_MAX 0.5
#define PROLOGUE "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"

static void
write_box(mc_xml *xml, const char *name, const mc_grid *grid, const mc_extent *box)
{
    mc_extent degrees = *box;
    mc_grid_degrees(&degrees, grid, box);
    mc_xml_open(xml, name);
    mc_xml_elementf(xml, "north", "%f", degrees.maxy);
    mc_xml_elementf(xml, "south", "%f", degrees.miny);
    mc_xml_elementf(xml, "east", "%f", degrees.maxx);
    mc_xml_elementf(xml, "west", "%f", degrees.minx);
    mc_xml_close(xml);
}

static void
write_region(mc_xml *xml, const mc_grid *grid, const mc_extent *box, int most_pixels)
{
    mc_xml_open(xml, "Region");
    write_box(xml, "LatLonAltBox", grid, box);
    mc_xml_open(xml, "Lod");
    mc_xml_element(xml, "minLodPixels", "128");
    mc_xml_elementf(xml, "maxLodPixels", "%d", most_pixels);
    mc_xml_close(xml);
    mc_xml_close(xml);
}

/* Whether a tile of degrees lies beyond a pole, by so many pixels that a viewer would put it to another place. */
static bool
is_beyond_poles(const mc_grid *grid, const mc_extent *box)
{
    double beyond = fmax(box->maxy - 90, -90 - box->miny) * grid->tile_height / (box->maxy - box->miny);
    return !mc_grid_is_mercator(grid) && beyond > SHIFT_MAX;
}

/* Whether all of a tile of degrees lies beyond a pole, where there is nothing. */
static bool
is_nowhere(const mc_grid *grid, const mc_extent *box)
{
    return !mc_grid_is_mercator(grid) && (box->miny >= 90 || box->maxy <= -90);
}

/* The picture of a tile: the stored one where its rows are where a viewer puts them. */
static const char *
picture_url(const mc_call *call, const mc_tile_request *tile, const mc_extent *box, int row, apr_pool_t *pool)
{
    const mc_grid *grid = tile->link->grid;
    bool stored = mc_grid_is_mercator(grid) ? mc_map_latitude_shift(box, grid->tile_height) <= SHIFT_MAX
                                            : !is_beyond_poles(grid, box);
    return apr_psprintf(pool, "%s%s/%s@%s/%d/%d/%d.%s", call->base, stored ? "tms/1.0.0" : "kml",
                        mc_url_segment(tile->tileset->name, pool), mc_url_segment(grid->name, pool), tile->z, tile->x,
                        row, mc_tileset_address_extension(tile->tileset));
}

/* A link to the document of one tile; y is the grid's. */
static void
write_kml_link(mc_xml *xml, const mc_call *call, const mc_tile_request *layer, int z, int x, int y, apr_pool_t *pool)
{
    const mc_grid *grid = layer->link->grid;
    mc_extent box = mc_grid_tile_extent(grid, z, x, y);
    int row = mc_grid_tms_y(grid, z, y);
    if (is_nowhere(grid, &box))
        return;
    mc_xml_open(xml, "NetworkLink");
    mc_xml_elementf(xml, "name", "%d%d%d", x, row, z);
    write_region(xml, grid, &box, -1);
    mc_xml_open(xml, "Link");
    mc_xml_elementf(xml, "href", "%skml/%s@%s/%d/%d/%d.kml", call->base, mc_url_segment(layer->tileset->name, pool),
                    mc_url_segment(grid->name, pool), z, x, row);
    mc_xml_element(xml, "viewRefreshMode", "onRegion");
    mc_xml_close(xml);
    mc_xml_close(xml);
}

/* Links to the tiles of level z that the box touches. */
static mc_error *
write_links(mc_xml *xml, const mc_call *call, const mc_tile_request *layer, const mc_extent *box, int z,
            apr_pool_t *pool)
{
    mc_tile_range range;
    if (!mc_grid_link_tiles(layer->link, box, z, &range))
        return MC_OK;
    if ((int64_t)(range.maxx - range.minx) * (range.maxy - range.miny) > LINKS_MAX)
        return mc_error_create(pool, MC_ERR_NOT_FOUND, "level %d has too many tiles for one document", z);
    for (int y = range.miny; y < range.maxy; y++)
        for (int x = range.minx; x < range.maxx; x++)
            write_kml_link(xml, call, layer, z, x, y, pool);
    return MC_OK;
}

static mc_xml *
open_document(apr_pool_t *pool)
{
    mc_xml *xml = mc_xml_create(PROLOGUE, pool);
    mc_xml_open(xml, "kml");
    mc_xml_attr(xml, "xmlns", "http://www.opengis.net/kml/2.2");
    mc_xml_open(xml, "Document");
    return xml;
}

static mc_error *
write_kml_layer(mc_request *request, const mc_call *call, const mc_tile_request *layer, apr_pool_t *pool)
{
    mc_xml *xml = open_document(pool);
    mc_xml_element(xml, "name", mc_tileset_title(layer->tileset));
    write_region(xml, layer->link->grid, &layer->link->extent, -1);
    MC_TRY(write_links(xml, call, layer, &layer->link->extent, layer->link->minzoom, pool));
    mc_xml_close(xml);
    mc_xml_close(xml);
    return mc_request_document(request, xml, MIME);
}

static mc_error *
write_kml_tile(mc_request *request, const mc_call *call, const mc_tile_request *tile, int row, apr_pool_t *pool)
{
    const mc_grid_link *link = tile->link;
    const mc_grid *grid = link->grid;
    mc_extent box = mc_grid_tile_extent(grid, tile->z, tile->x, tile->y);
    bool last = tile->z >= link->maxzoom;
    mc_xml *xml = open_document(pool);
    write_region(xml, grid, &box, last ? -1 : 512);
    mc_xml_open(xml, "GroundOverlay");
    mc_xml_elementf(xml, "drawOrder", "%d", tile->z);
    mc_xml_open(xml, "Icon");
    mc_xml_element(xml, "href", picture_url(call, tile, &box, row, pool));
    mc_xml_close(xml);
    write_box(xml, "LatLonBox", grid, &box);
    mc_xml_close(xml);
    if (!last)
        MC_TRY(write_links(xml, call, tile, &box, tile->z + 1, pool));
    mc_xml_close(xml);
    mc_xml_close(xml);
    return mc_request_document(request, xml, MIME);
}

static mc_error *
parse_kml_layer(mc_tile_stack *stack, const char *text, const mc_call *call, apr_pool_t *pool)
{
    MC_TRY(mc_layers_parse(stack, text, call, MC_ERR_NOT_FOUND, pool));
    if (stack->count != 1)
        return mc_error_create(pool, MC_ERR_NOT_FOUND, "KML shows one layer at a time");
    if (!mc_tileset_is_image(stack->tiles[0].tileset))
        return mc_error_create(pool, MC_ERR_NOT_FOUND, "the tiles of layer %s are no images",
                               stack->tiles[0].tileset->name);
    mc_extent degrees;
    if (!mc_grid_degrees(&degrees, stack->tiles[0].link->grid, &stack->tiles[0].link->extent))
        return mc_error_create(pool, MC_ERR_NOT_FOUND,
                               "KML knows degrees only: grid %s is in %s, which is neither in degrees nor Mercator",
                               stack->tiles[0].link->grid->name, stack->tiles[0].link->grid->srs);
    return MC_OK;
}

static mc_error *
read_kml_layer(mc_param_reader *reader)
{
    mc_tile_path *tile = reader->target;
    return parse_kml_layer(&tile->stack, tile->layer, reader->call, reader->pool);
}

/* Whether the address is that of a picture; those of grids of degrees are looked at once their place is known. */
static bool
is_kml_picture(const mc_tile_path *tile)
{
    const mc_tile_request *first = &tile->stack.tiles[0];
    return tile->row.extension != NULL && mc_tileset_takes_extension(first->tileset, tile->row.extension);
}

static mc_error *
check_kml_extension(mc_param_reader *reader)
{
    const mc_tile_path *tile = reader->target;
    const char *extension = tile->row.extension;
    if (extension != NULL && (strcmp(extension, "kml") == 0 || is_kml_picture(tile)))
        return MC_OK;
    return mc_error_create(reader->pool, MC_ERR_NOT_FOUND, "extension \"%s\" is not kml",
                           extension != NULL ? extension : "");
}

#define KML_REFUSAL .kind = MC_ERR_NOT_FOUND, .refusal = "path \"{path}\" is not <layer>/<z>/<x>/<y>.kml"

static const mc_param_row kml_params[] = {
    MC_PARAM_TEXT("layer", offsetof(mc_tile_path, layer),
                  "A layer as name[dimension=value]@grid; values and the grid may be left out.",
                  .flags = MC_PARAM_REQUIRED, .kind = MC_ERR_NOT_FOUND),
    MC_PARAM_STEP(read_kml_layer),
    MC_PARAM_INTEGER("z", offsetof(mc_tile_path, z), "The level, 0 for the coarsest.", .flags = MC_PARAM_REQUIRED,
                     KML_REFUSAL),
    MC_PARAM_INTEGER("x", offsetof(mc_tile_path, x), "The column, 0 on the left.", .flags = MC_PARAM_REQUIRED,
                     KML_REFUSAL),
    MC_PARAM_FILE("y", offsetof(mc_tile_path, row),
                  "The row, 0 at the bottom, and the extension kml; for the picture that of the format.",
                  .flags = MC_PARAM_REQUIRED, KML_REFUSAL),
    MC_PARAM_STEP(check_kml_extension),
    MC_PARAM_END,
};

static const mc_operation kml_operations[] = {
    { "documents",
      "/kml/<layer>/<z>/<x>/<y>.kml",
      { kml_params },
      { { "/kml/world@WGS84/0/0/0.kml", 200, "application/vnd.google-earth.kml+xml",
          "A tile with links to the next four.", NULL },
        { "/kml/world@GoogleMapsCompatible/2/1/2.png", 200, "image/png",
          "A picture of Mercator's grid in rows of degrees.", NULL },
        { "/kml/nothing/0/0/0.kml", 404, "text/plain", "There is no such layer.", NULL } } },
    { "a whole layer",
      "/kml/<layer>.kml",
      { NULL },
      { { "/kml/world@WGS84.kml", 200, "application/vnd.google-earth.kml+xml", "For Google Earth: open this.",
          NULL } } },
    { 0 },
};

static mc_error *
parse_kml_tile(mc_request *request, const mc_call *call, const apr_array_header_t *path, apr_pool_t *pool)
{
    mc_tile_path tile = { 0 };
    int next = 0;
    MC_TRY(mc_params_read_path(&tile, kml_params, call, path, &next, pool));
    MC_TRY(mc_stack_place(&tile.stack, tile.z, tile.x, tile.row.number, false, pool));
    const mc_tile_request *first = &tile.stack.tiles[0];
    const mc_grid *grid = first->link->grid;
    const mc_extent box = mc_grid_tile_extent(grid, first->z, first->x, first->y);
    if (is_nowhere(grid, &box))
        return mc_error_create(pool, MC_ERR_NOT_FOUND, "tile %d/%d/%d lies beyond a pole", tile.z, tile.x,
                               tile.row.number);
    if (is_kml_picture(&tile)) {
        if (!mc_grid_is_mercator(grid) && !is_beyond_poles(grid, &box))
            return mc_error_create(pool, MC_ERR_NOT_FOUND, "extension \"%s\" is not kml: the picture is the tile",
                                   tile.row.extension);
        request->kind = MC_REQUEST_TILE;
        request->u.tile = tile.stack;
        request->u.tile.by_latitude = mc_grid_is_mercator(grid);
        request->u.tile.within_poles = !request->u.tile.by_latitude;
        return MC_OK;
    }
    return write_kml_tile(request, call, &tile.stack.tiles[0], tile.row.number, pool);
}

static mc_error *
kml_parse(mc_request *request, const mc_call *call, mc_ctx *ctx, apr_pool_t *pool)
{
    (void)ctx;
    const apr_array_header_t *path = mc_path_segments(call->path, pool);
    if (path->nelts == 4)
        return parse_kml_tile(request, call, path, pool);
    if (path->nelts != 1)
        return mc_error_create(pool, MC_ERR_NOT_FOUND, "KML path \"%s\" has a wrong number of elements", call->path);
    const char *name = APR_ARRAY_IDX(path, 0, const char *);
    size_t size = strlen(name);
    if (size > 4 && strcmp(name + size - 4, ".kml") == 0)
        name = apr_pstrndup(pool, name, size - 4);
    mc_tile_stack stack;
    MC_TRY(parse_kml_layer(&stack, name, call, pool));
    return write_kml_layer(request, call, &stack.tiles[0], pool);
}

const mc_service_ops mc_service_kml = {
    MC_SERVICE(kml, "kml", mc_service_plain_keys, mc_service_plain, "KML super-overlays; their images are TMS tiles."),
};
