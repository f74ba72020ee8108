/* Web Map Service 1.1.1 and 1.3.0: settings, operations, and what forwarding rules take over
 * (docs/reference/services.md 4). */
#include "service/wms/wms.h"

#include <apr_strings.h>

typedef struct format_setting {
    const char *name;
    bool allow_client_override;
} format_setting;

static const mc_key format_keys[] = {
    MC_KEY_TEXT("", offsetof(format_setting, name), "Name of the format of assembled maps.", .flags = MC_KEY_REQUIRED),
    MC_KEY_BOOL("@allow_client_override", offsetof(format_setting, allow_client_override),
                "Whether FORMAT of a request chooses another.", .fallback = "false"),
    MC_KEY_END,
};

static const mc_key wms_keys[] = {
    MC_SERVICE_KEYS(mc_wms),
    MC_SERVICE_STRICT_KEY(mc_wms),
    MC_KEY_CHOICE("full_wms", offsetof(mc_wms, full_wms), "assemble|forward|error",
                  "Maps that are no single tile: assembled from tiles, asked from the source, or refused.",
                  .fallback = "assemble"),
    MC_KEY_TREE("format", offsetof(mc_wms, format_node), format_keys, "Format of assembled maps; JPEG without it."),
    MC_KEY_CHOICE("resample_mode", offsetof(mc_wms, resample), "nearest|bilinear", "How tiles are resampled.",
                  .fallback = "bilinear"),
    MC_KEY_INT("maxsize", offsetof(mc_wms, maxsize), "Largest width and height of a map in pixels.", .min = 1,
               .max = 16384, .fallback = "2048"),
    MC_KEY_SIZE("max_pixels", offsetof(mc_wms, max_pixels),
                "Largest product of width, height and number of layers of one request.", .flags = MC_KEY_OURS, .min = 1,
                .max = 1e12, .fallback = "64M"),
    MC_KEY_TEXT(
        "srs", offsetof(mc_wms, srs_list),
        "CRSs, with blanks between them, in which layers that are drawn from vector data are offered besides those of "
        "their grids; with full_wms forward.",
        .flags = MC_KEY_OURS),
    MC_KEY_TREE("forwarding_rule", offsetof(mc_wms, rule_nodes), NULL,
                "Passes requests that this service does not answer on to another server.", .flags = MC_KEY_REPEATABLE),
    MC_KEY_END,
};

static bool
read_format(mc_wms *wms, const mc_node *at, mc_build *build)
{
    format_setting setting = { "JPEG", false };
    if (wms->format_node != NULL && !mc_config_read(&setting, wms->format_node, format_keys, build->diagnostics))
        return false;
    wms->format_named = wms->format_node != NULL;
    wms->allow_client_override = setting.allow_client_override;
    wms->format = apr_hash_get(build->formats, setting.name, APR_HASH_KEY_STRING);
    if (wms->format == NULL)
        mc_complain(build->diagnostics, MC_REFUSED, at, "the wms service's format \"%s\" is not configured",
                    setting.name);
    return wms->format != NULL;
}

static mc_service *
wms_service_from_config(const mc_service_ops *ops, const mc_node *node, mc_build *build)
{
    mc_wms *wms = apr_pcalloc(build->pool, sizeof(*wms));
    if (!mc_service_read(&wms->base, ops, node, build))
        return NULL;
    if (!read_format(wms, wms->format_node != NULL ? wms->format_node : node, build))
        return NULL;
    if (!mc_wms_read_srs(wms, node, build))
        return NULL;
    return mc_forwarding_read(wms, build) ? &wms->base.service : NULL;
}

enum { GET_MAP, GET_FEATURE_INFO, GET_LEGEND_GRAPHIC, GET_CAPABILITIES };

typedef struct wms_request_params {
    int service; /* -1: not said */
    int operation;
} wms_request_params;

static mc_error *
check_request_named(mc_param_reader *reader)
{
    if (mc_param(reader->call, "SERVICE") != NULL || mc_param(reader->call, "REQUEST") != NULL)
        return MC_OK;
    return mc_error_create(reader->pool, MC_ERR_BAD_REQUEST, "a WMS request needs the parameters SERVICE and REQUEST");
}

static const mc_param_row request_params[] = {
    MC_PARAM_STEP(check_request_named),
    MC_PARAM_CHOICE("SERVICE", offsetof(wms_request_params, service), "WMS",
                    "The protocol. A strict service wants the parameter in GetCapabilities.",
                    .flags = MC_PARAM_ANY_CASE, .locator = "service", .refusal = "SERVICE \"{value}\" is not WMS"),
    MC_PARAM_CHOICE("REQUEST", offsetof(wms_request_params, operation),
                    "GetMap|GetFeatureInfo|GetLegendGraphic|GetCapabilities", "The operation.",
                    .flags = MC_PARAM_REQUIRED | MC_PARAM_EMPTY | MC_PARAM_ANY_CASE, .locator = "request",
                    .kind = MC_ERR_OPERATION_NOT_SUPPORTED, .refusal = "the operation \"{value}\" is not offered"),
    MC_PARAM_END,
};

#define WMS_111 "/?SERVICE=WMS&VERSION=1.1.1&REQUEST="
#define WMS_130 "/?SERVICE=WMS&VERSION=1.3.0&REQUEST="
#define WMS_SIZE "&STYLES=&WIDTH=400&HEIGHT=300&FORMAT=image/png"

static const mc_operation wms_operations[] = {
    { "every request",
      "/?SERVICE=WMS&REQUEST=...",
      { request_params },
      { { WMS_130 "GetNothing", 501, "text/xml", "The exception names what there is.", NULL } } },
    { "GetMap",
      "REQUEST=GetMap",
      { mc_wms_view_params, mc_wms_screen_params, mc_wms_map_params, mc_wms_format_params, mc_wms_background_params },
      { { WMS_111 "GetMap&LAYERS=world&SRS=EPSG:4326&BBOX=-20,30,40,75" WMS_SIZE, 200, "image/png",
          "West, south, east, north.", NULL },
        { WMS_130 "GetMap&LAYERS=world&CRS=EPSG:4326&BBOX=30,-20,75,40" WMS_SIZE, 200, "image/png",
          "The same in 1.3.0: latitude first, as EPSG:4326 has it.", NULL },
        { WMS_130 "GetMap&LAYERS=world,roads&CRS=EPSG:3857&BBOX=0,5e6,3e6,7e6" WMS_SIZE, 200, "image/png",
          "Two layers over each other.", NULL },
        { WMS_130 "GetMap&LAYERS=years&CRS=EPSG:3857&BBOX=0,5e6,3e6,7e6&TIME=2023" WMS_SIZE, 200, "image/png",
          "A value of a dimension.", NULL },
        { WMS_130
          "GetMap&LAYERS=world&STYLES=&CRS=EPSG:3857&BBOX=0,5e6,3e6,7e6&WIDTH=9000&HEIGHT=9000&FORMAT=image/png",
          400, "text/xml", "More pixels than `<maxsize>`.", NULL },
        { WMS_130 "GetMap&LAYERS=nothing&CRS=EPSG:3857&BBOX=0,5e6,3e6,7e6" WMS_SIZE, 404, "text/xml",
          "There is no such layer.", NULL } } },
    { "GetFeatureInfo",
      "REQUEST=GetFeatureInfo",
      { mc_wms_view_params, mc_wms_screen_params, mc_wms_info_params },
      { { WMS_130 "GetFeatureInfo&LAYERS=roads&QUERY_LAYERS=roads&CRS=EPSG:3857&BBOX=0,5e6,3e6,7e6" WMS_SIZE
                  "&I=200&J=150&INFO_FORMAT=application/json",
          200, "application/json", "What lies under a pixel of a map.", NULL } } },
    { "GetLegendGraphic",
      "REQUEST=GetLegendGraphic",
      { mc_wms_legend_params, mc_wms_screen_params, mc_wms_background_params },
      { { WMS_130 "GetLegendGraphic&LAYER=roads&FORMAT=image/png", 200, "image/png", "Of a layer that is drawn here.",
          NULL },
        { WMS_130 "GetLegendGraphic&LAYER=world&FORMAT=image/png", 501, "text/xml", "Other layers have none.",
          NULL } } },
    { "GetCapabilities",
      "REQUEST=GetCapabilities",
      { mc_wms_capabilities_params },
      { { WMS_130 "GetCapabilities", 200, "text/xml", "Layers, CRSs and boxes.", NULL },
        { WMS_111 "GetCapabilities", 200, "text/xml", "The same in 1.1.1.", NULL } } },
    { 0 },
};

static mc_error *
parse_operation(mc_request *request, const mc_call *call, mc_ctx *ctx, apr_pool_t *pool)
{
    wms_request_params params;
    MC_TRY(mc_params_read(&params, request_params, call, pool));
    switch (params.operation) {
    case GET_MAP:
        return mc_wms_get_map(request, call, pool);
    case GET_FEATURE_INFO:
        return mc_wms_get_info(request, call, pool);
    case GET_LEGEND_GRAPHIC:
        return mc_wms_get_legend(request, call, ctx, pool);
    default:
        if (params.service < 0)
            MC_TRY(mc_wms_omitted(call, "service", pool));
        return mc_wms_capabilities(request, call, ctx, pool);
    }
}

/* Rules see everything but single tiles, feature info, and what is assembled from tiles
 * (docs/reference/services.md 4.5). */
static bool
may_be_forwarded(const mc_error *error, const mc_request *request, const mc_wms *wms)
{
    if (error != MC_OK || request->kind == MC_REQUEST_DOCUMENT)
        return true;
    if (request->kind == MC_REQUEST_TILE)
        return request->u.tile.count > 1 && wms->full_wms == MC_WMS_FORWARD;
    return request->kind == MC_REQUEST_MAP && request->u.map.mode != MC_WMS_ASSEMBLE;
}

static mc_error *
wms_parse(mc_request *request, const mc_call *call, mc_ctx *ctx, apr_pool_t *pool)
{
    const mc_wms *wms = mc_wms_of(call);
    mc_error *error = call->refused != MC_OK ? call->refused : parse_operation(request, call, ctx, pool);
    const mc_forwarding_rule *rule = NULL;
    if (wms->rules->nelts > 0 && may_be_forwarded(error, request, wms))
        rule = mc_forwarding_match(wms, call);
    if (rule == NULL)
        return error == MC_OK || call->refused != MC_OK || mc_service_is_addressed(call)
                   ? error
                   : mc_service_absent(request, call, pool);
    if (error == MC_OK)
        MC_TRY(mc_request_check_values(request, ctx, pool));
    request->kind = MC_REQUEST_FORWARD;
    request->u.forward.rule = rule;
    request->u.forward.path = call->full_path;
    request->u.forward.url = mc_forwarding_url(rule, call, pool);
    return MC_OK;
}

static size_t
wms_body_limit(const mc_call *call)
{
    const mc_forwarding_rule *rule = mc_forwarding_match(mc_wms_of(call), call);
    return rule == NULL ? 0 : (size_t)rule->max_post_length;
}

const mc_service_ops mc_service_wms = {
    MC_SERVICE(wms, "", wms_keys, wms_service_from_config, "Web Map Service 1.1.1 and 1.3.0."),
    .report = mc_wms_report,
    .body_limit = wms_body_limit,
    .forwards = true,
};
