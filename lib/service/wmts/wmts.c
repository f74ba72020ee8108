/*
 * Web Map Tile Service 1.0.0 (OGC 07-057r7): settings and operations (docs/reference/services.md 5). Rows count from
 * the top.
 */
#include "service/wmts/wmts.h"

#include <string.h>

typedef struct wmts {
    mc_service_base base;
} wmts;

static const mc_key wmts_keys[] = { MC_SERVICE_KEYS(wmts), MC_SERVICE_STRICT_KEY(wmts), MC_KEY_END };

static mc_service *
wmts_from_config(const mc_service_ops *ops, const mc_node *node, mc_build *build)
{
    wmts *service = apr_pcalloc(build->pool, sizeof(*service));
    return mc_service_read(&service->base, ops, node, build) ? &service->base.service : NULL;
}

static mc_error *
wmts_parse(mc_request *request, const mc_call *call, mc_ctx *ctx, apr_pool_t *pool)
{
    return mc_wmts_is_kvp(call) ? mc_wmts_parse_kvp(request, call, ctx, pool)
                                : mc_wmts_parse_path(request, call, ctx, pool);
}

#define TILE_PATH "/wmts/<version>/<layer>/<style>/<TileMatrixSet>/<TileMatrix>/<TileRow>/<TileCol>"

#define KVP "/wmts?SERVICE=WMTS&REQUEST="
#define KVP_TILE                                                                                                       \
    "&VERSION=1.0.0&LAYER=roads&STYLE=default&FORMAT=image/png&TILEMATRIXSET=GoogleMapsCompatible"                     \
    "&TILEMATRIX=2&TILEROW=1&TILECOL=2"

static const mc_operation wmts_operations[] = {
    { "every request",
      "/wmts?SERVICE=WMTS&REQUEST=...",
      { mc_wmts_kvp_request_params },
      { { KVP "GetNothing", 400, "application/xml", "The exception names what there is.", NULL } } },
    { "GetTile",
      "REQUEST=GetTile",
      { mc_wmts_kvp_tile_params },
      { { KVP "GetTile" KVP_TILE, 200, "image/png", "Rows from the top.", NULL },
        { KVP "GetTile&LAYER=nothing&TILEMATRIXSET=GoogleMapsCompatible&TILEMATRIX=2&TILEROW=1&TILECOL=2", 400,
          "application/xml", "There is no such layer.", NULL } } },
    { "GetFeatureInfo",
      "REQUEST=GetFeatureInfo",
      { mc_wmts_kvp_tile_params, mc_wmts_kvp_info_params },
      { { KVP "GetFeatureInfo" KVP_TILE "&I=128&J=200&INFOFORMAT=application/json", 200, "application/json",
          "What lies under a pixel of a tile.", NULL } } },
    { "GetCapabilities",
      "REQUEST=GetCapabilities",
      { mc_wmts_kvp_capabilities_params },
      { { KVP "GetCapabilities", 200, "application/xml", "Layers, grids and templates of addresses.", NULL },
        { "/wmts/1.0.0/WMTSCapabilities.xml", 200, "application/xml", "The same by path.", NULL } } },
    { "tiles by path",
      TILE_PATH ".<extension>",
      { mc_wmts_path_version_params, mc_wmts_path_tile_params },
      { { "/wmts/1.0.0/world/default/GoogleMapsCompatible/2/1/2.png", 200, "image/png", "Level, row, column.", NULL },
        { "/wmts/1.0.0/years/default/2023/GoogleMapsCompatible/2/1/2.png", 200, "image/png",
          "A value of a dimension behind the style.", NULL },
        { "/wmts/1.0.0/world/default/GoogleMapsCompatible/2/4/2.png", 404, "text/plain", "Level 2 has rows 0 to 3.",
          NULL },
        { "/wmts/1.0.0/nothing/default/GoogleMapsCompatible/2/1/2.png", 404, "text/plain", "There is no such layer.",
          NULL } } },
    { "feature info by path",
      TILE_PATH "/<J>/<I>.<number>",
      { mc_wmts_path_version_params, mc_wmts_path_tile_params, mc_wmts_path_info_params },
      { { "/wmts/1.0.0/roads/default/GoogleMapsCompatible/2/1/2/200/128.0", 200, "text/plain",
          "The number says which of the layer's formats.", NULL } } },
    { 0 },
};

const mc_service_ops mc_service_wmts = {
    MC_SERVICE(wmts, "wmts", wmts_keys, wmts_from_config, "Web Map Tile Service 1.0.0, KVP and RESTful."),
    .report = mc_wmts_report,
};
