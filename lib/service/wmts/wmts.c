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

static const mc_operation wmts_operations[] = {
    { "every request", "/wmts?SERVICE=WMTS&REQUEST=...", { mc_wmts_kvp_request_params } },
    { "GetTile", "REQUEST=GetTile", { mc_wmts_kvp_tile_params } },
    { "GetFeatureInfo", "REQUEST=GetFeatureInfo", { mc_wmts_kvp_tile_params, mc_wmts_kvp_info_params } },
    { "GetCapabilities", "REQUEST=GetCapabilities", { mc_wmts_kvp_capabilities_params } },
    { "tiles by path", TILE_PATH ".<extension>", { mc_wmts_path_version_params, mc_wmts_path_tile_params } },
    { "feature info by path",
      TILE_PATH "/<J>/<I>.<number>",
      { mc_wmts_path_version_params, mc_wmts_path_tile_params, mc_wmts_path_info_params } },
    { 0 },
};

const mc_service_ops mc_service_wmts = {
    MC_SERVICE(wmts, "wmts", wmts_keys, wmts_from_config, "Web Map Tile Service 1.0.0, KVP and RESTful."),
    .report = mc_wmts_report,
};
