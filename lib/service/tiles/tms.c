/* Tile Map Service 1.0.0: documents that list the tile sets, and tiles with rows counted from the bottom
 * (docs/reference/services.md 6.1). */
#include <apr_strings.h>

#include "service/tiles/tile_path.h"

#define VERSION "1.0.0"

static const mc_key tms_keys[] = {
    MC_SERVICE_KEYS(struct { mc_service_base base; }),
    MC_KEY_BOOL(
        "strict", offsetof(mc_service_base, service.strict),
        "Tiles are found under the extension of their format only, and are of that type also where there is no data.",
        .flags = MC_KEY_OURS, .fallback = "false"),
    MC_KEY_END
};

static const char *
tms_title(const mc_call *call)
{
    const char *title = mc_meta(call->config->metadata, "title");
    return title != NULL ? title : "no title set, add some in metadata";
}

static mc_error *
write_tms_root(mc_request *request, const mc_call *call, apr_pool_t *pool)
{
    mc_xml *xml = mc_xml_create(NULL, pool);
    mc_xml_open(xml, "Services");
    mc_xml_open(xml, "TileMapService");
    mc_xml_attr(xml, "title", tms_title(call));
    mc_xml_attr(xml, "version", VERSION);
    mc_xml_attrf(xml, "href", "%stms/" VERSION "/", call->base);
    mc_xml_close(xml);
    mc_xml_close(xml);
    return mc_request_document(request, xml, "text/xml");
}

static const char *
map_url(const mc_call *call, const mc_tileset *tileset, const mc_grid *grid, apr_pool_t *pool)
{
    return apr_psprintf(pool, "%stms/" VERSION "/%s@%s", call->base, mc_url_segment(tileset->name, pool),
                        mc_url_segment(grid->name, pool));
}

static mc_error *
write_tms_service(mc_request *request, const mc_call *call, apr_pool_t *pool)
{
    const mc_config *config = call->config;
    const char *abstract = mc_meta(config->metadata, "abstract");
    mc_xml *xml = mc_xml_create(NULL, pool);
    mc_xml_open(xml, "TileMapService");
    mc_xml_attr(xml, "version", VERSION);
    mc_xml_attrf(xml, "services", "%stms/", call->base);
    mc_xml_element(xml, "Title", tms_title(call));
    mc_xml_element(xml, "Abstract", abstract != NULL ? abstract : "no abstract set, add some in metadata");
    mc_xml_open(xml, "TileMaps");
    for (int i = 0; i < config->tilesets->nelts; i++) {
        const mc_tileset *tileset = APR_ARRAY_IDX(config->tilesets, i, mc_tileset *);
        for (int j = 0; j < tileset->link_count; j++) {
            const mc_grid *grid = tileset->links[j]->grid;
            if (grid->origin != MC_BOTTOM_LEFT)
                continue; /* the protocol has no other */
            const char *profile = mc_meta(grid->metadata, "profile");
            mc_xml_open(xml, "TileMap");
            mc_xml_attr(xml, "title", mc_tileset_title(tileset));
            mc_xml_attr(xml, "srs", grid->srs);
            mc_xml_attr(xml, "profile", profile != NULL ? profile : "none");
            mc_xml_attr(xml, "href", map_url(call, tileset, grid, pool));
            mc_xml_close(xml);
        }
    }
    mc_xml_close(xml);
    mc_xml_close(xml);
    return mc_request_document(request, xml, "text/xml");
}

static void
write_tms_levels(mc_xml *xml, const mc_grid_link *link, const char *url)
{
    const char *profile = mc_meta(link->grid->metadata, "profile");
    mc_xml_open(xml, "TileSets");
    mc_xml_attr(xml, "profile", profile != NULL ? profile : "none");
    for (int z = link->minzoom; z <= link->maxzoom; z++) {
        mc_xml_open(xml, "TileSet");
        mc_xml_attrf(xml, "href", "%s/%d", url, z);
        mc_xml_attrf(xml, "units-per-pixel", "%.20f", link->grid->levels[z].resolution);
        mc_xml_attrf(xml, "order", "%d", z - link->minzoom);
        mc_xml_close(xml);
    }
    mc_xml_close(xml);
}

static mc_error *
write_map(mc_request *request, const mc_call *call, const char *layer, apr_pool_t *pool)
{
    mc_tile_request tile;
    MC_TRY(mc_layer_parse(&tile, layer, call, MC_ERR_NOT_FOUND, pool));
    const mc_tileset *tileset = tile.tileset;
    const mc_grid *grid = tile.link->grid;
    const mc_extent *box = &tile.link->extent;
    const char *abstract = mc_meta(tileset->metadata, "abstract");
    mc_xml *xml = mc_xml_create(NULL, pool);
    mc_xml_open(xml, "TileMap");
    mc_xml_attr(xml, "version", VERSION);
    mc_xml_attrf(xml, "tilemapservice", "%stms/" VERSION "/", call->base);
    mc_xml_element(xml, "Title", mc_tileset_title(tileset));
    mc_xml_element(xml, "Abstract", abstract != NULL ? abstract : "");
    mc_xml_element(xml, "SRS", grid->srs);
    mc_xml_open(xml, "BoundingBox");
    mc_xml_attrf(xml, "minx", "%f", box->minx);
    mc_xml_attrf(xml, "miny", "%f", box->miny);
    mc_xml_attrf(xml, "maxx", "%f", box->maxx);
    mc_xml_attrf(xml, "maxy", "%f", box->maxy);
    mc_xml_close(xml);
    mc_xml_open(xml, "Origin");
    mc_xml_attrf(xml, "x", "%f", grid->extent.minx);
    mc_xml_attrf(xml, "y", "%f", grid->extent.miny);
    mc_xml_close(xml);
    mc_xml_open(xml, "TileFormat");
    mc_xml_attrf(xml, "width", "%d", grid->tile_width);
    mc_xml_attrf(xml, "height", "%d", grid->tile_height);
    mc_xml_attr(xml, "mime-type", mc_tileset_mime(tileset));
    mc_xml_attr(xml, "extension", mc_tileset_address_extension(tileset));
    mc_xml_close(xml);
    write_tms_levels(xml, tile.link, map_url(call, tileset, grid, pool));
    mc_xml_close(xml);
    return mc_request_document(request, xml, "text/xml");
}

typedef struct tms_params {
    int version;
} tms_params;

static const mc_param_row version_params[] = {
    MC_PARAM_CHOICE("version", offsetof(tms_params, version), VERSION, "The version of the protocol.",
                    .flags = MC_PARAM_REQUIRED, .kind = MC_ERR_NOT_FOUND,
                    .refusal = "TMS version \"{value}\" is not " VERSION),
    MC_PARAM_END,
};

static mc_error *
tms_parse(mc_request *request, const mc_call *call, mc_ctx *ctx, apr_pool_t *pool)
{
    const apr_array_header_t *path = mc_path_segments(call->path, pool);
    const char *layer;
    if (path->nelts == 0)
        return write_tms_root(request, call, pool);
    tms_params params;
    int next = 0;
    MC_TRY(mc_params_read_path(&params, version_params, call, path, &next, pool));
    if (path->nelts == 1)
        return write_tms_service(request, call, pool);
    if (path->nelts == 2 && mc_tilejson_layer(&layer, APR_ARRAY_IDX(path, 1, const char *), call, pool))
        return mc_tilejson(request, layer, "tms/" VERSION, false, call, ctx, pool);
    if (path->nelts == 2)
        return write_map(request, call, APR_ARRAY_IDX(path, 1, const char *), pool);
    if (path->nelts == 5)
        return mc_tile_path_parse(request, call, path, false, pool);
    return mc_error_create(pool, MC_ERR_NOT_FOUND, "TMS path \"%s\" has a wrong number of elements", call->path);
}

static const mc_operation tms_operations[] = {
    { "tiles",
      "/tms/<version>/<layer>/<z>/<x>/<y>.<extension>",
      { version_params, mc_tile_path_params },
      { { "/tms/1.0.0/world@GoogleMapsCompatible/2/1/2.png", 200, "image/png",
          "The tile that is 2/1/1 of gmaps: rows from the bottom.", NULL },
        { "/tms/1.0.0/world@GoogleMapsCompatible/2/1/4.png", 404, "text/plain", "Level 2 has rows 0 to 3.", NULL },
        { "/tms/1.0.0/nothing/2/1/2.png", 404, "text/plain", "There is no such layer.", NULL } } },
    { "documents",
      "/tms/<version>/<layer>",
      { NULL },
      { { "/tms", 200, "text/xml", "The versions.", NULL },
        { "/tms/1.0.0", 200, "text/xml", "The layers, each in its grids.", NULL },
        { "/tms/1.0.0/world@GoogleMapsCompatible", 200, "text/xml", "One of them, with its levels.", NULL },
        { "/tms/1.0.0/nothing", 404, "text/plain", "There is no such layer.", NULL } } },
    { "TileJSON",
      "/tms/<version>/<layer>.json",
      { NULL },
      { { "/tms/1.0.0/world@GoogleMapsCompatible.json", 200, "application/json", "With `scheme` tms.", NULL } } },
    { 0 },
};

const mc_service_ops mc_service_tms = {
    MC_SERVICE(tms, "tms", tms_keys, mc_service_plain, "Tile Map Service 1.0.0."),
};
