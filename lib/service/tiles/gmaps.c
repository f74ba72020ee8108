/* The tile addresses of web maps, /<layer>/<z>/<x>/<y>.<ext> with rows from the top (docs/reference/services.md 6.2).
 */
#include "service/tiles/tile_path.h"

static mc_error *
gmaps_parse(mc_request *request, const mc_call *call, mc_ctx *ctx, apr_pool_t *pool)
{
    const apr_array_header_t *path = mc_path_segments(call->path, pool);
    const char *layer;
    if (path->nelts == 1 && mc_tilejson_layer(&layer, APR_ARRAY_IDX(path, 0, const char *), call, pool))
        return mc_tilejson(request, layer, "gmaps", true, call, ctx, pool);
    if (path->nelts != 4)
        return mc_error_create(pool, MC_ERR_NOT_FOUND, "path \"%s\" is not <layer>/<z>/<x>/<y>.<extension>",
                               call->path);
    return mc_tile_path_parse(request, call, path, true, pool);
}

static const mc_operation gmaps_operations[] = {
    { "tiles",
      "/gmaps/<layer>/<z>/<x>/<y>.<extension>",
      { mc_tile_path_params },
      { { "/gmaps/world@GoogleMapsCompatible/2/1/1.png", 200, "image/png", "A layer in one of its grids.", NULL },
        { "/gmaps/world/2/1/1.png", 200, "image/png", "The same in the first grid of the layer.", NULL },
        { "/gmaps/roads@GoogleMapsCompatible/2/1/1@2x.png", 200, "image/png", "For a fine screen.", NULL },
        { "/gmaps/world;roads/2/1/1.png", 200, "image/png", "Two layers over each other.", NULL },
        { "/gmaps/years[time=2023]@GoogleMapsCompatible/2/1/1.png", 200, "image/png", "A value of a dimension.", NULL },
        { "/gmaps/roads-mvt@GoogleMapsCompatible/2/1/1.mvt", 200, "application/vnd.mapbox-vector-tile",
          "A vector tile.", NULL },
        { "/gmaps/roads/2/1/1.webp", 200, "image/webp", "In another one of its formats.", NULL },
        { "/gmaps/roads/2/1/1.auto", 200, "image/png", "In the one that `Accept` chooses: here there is none.", NULL },
        { "/gmaps/world@GoogleMapsCompatible/2/4/1.png", 404, "text/plain", "Level 2 has columns 0 to 3.", NULL },
        { "/gmaps/nothing@GoogleMapsCompatible/2/1/1.png", 400, "text/plain", "There is no such layer.", NULL } } },
    { "TileJSON",
      "/gmaps/<layer>.json",
      { NULL },
      { { "/gmaps/world@GoogleMapsCompatible.json", 200, "application/json",
          "The address, levels and box of tiles, for MapLibre and others.", NULL },
        { "/gmaps/roads-mvt.json", 200, "application/json", "Of vector tiles with layers and attributes.", NULL } } },
    { 0 },
};

const mc_service_ops mc_service_gmaps = {
    MC_SERVICE(gmaps, "gmaps", mc_service_plain_keys, mc_service_plain, "Tiles by z/x/y with rows from the top."),
};
