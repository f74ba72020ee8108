/* A style of one layer for MapLibre and QGIS, in the colours in which the map page draws it. */
#include <apr_strings.h>

#include "service/layer_style.h"
#include "service/pages/demo.h"

mc_error *
mc_demo_style(mc_buf **text, const char *layer, const mc_call *call, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_tile_request tile;
    MC_TRY(mc_layer_parse(&tile, layer, call, MC_ERR_NOT_FOUND, pool));
    const char *service = mc_call_service(call, "gmaps") != NULL ? "gmaps/" : "tms/1.0.0/";
    if (mc_call_service(call, "gmaps") == NULL && mc_call_service(call, "tms") == NULL)
        return mc_error_create(pool, MC_ERR_NOT_FOUND, "a style needs TileJSON, of the services gmaps and tms");
    const char *url = apr_pstrcat(pool, call->base, service, mc_url_segment(layer, pool), ".json", NULL);
    return mc_layer_style(text, &tile, url, call, ctx, pool);
}
