/* GetFeatureInfo of one layer (docs/reference/services.md 4.6). 1.3.0 says CRS, I, J; 1.1.1 SRS, X, Y. */
#include <apr_strings.h>
#include <string.h>

#include "service/wms/wms.h"

typedef struct info_params {
    mc_wms_view view;
    const char *query_layer, *layers; /* as requested */
    mc_tileset *tileset;
    const mc_grid_link *link;
    int x, y;
    const char *format;
    int count;
} info_params;

static mc_error *
find_query_layer(mc_param_reader *reader)
{
    info_params *params = reader->target;
    const mc_call *call = reader->call;
    apr_pool_t *pool = reader->pool;
    const char *name = params->query_layer;
    if (strchr(name, ',') != NULL && call->config->mode != MC_MODE_COMBINED_MIRROR)
        return mc_error_located(pool, MC_ERR_OPERATION_NOT_SUPPORTED, "query_layers",
                                "feature info is offered for one layer at a time");
    params->tileset = mc_call_tileset(call, name, pool);
    if (params->tileset == NULL || !mc_wms_offers(mc_wms_of(call), params->tileset))
        return mc_error_located(pool, MC_ERR_LAYER_NOT_DEFINED, "query_layers", "layer \"%s\" is not known", name);
    MC_TRY(mc_tileset_check_built(params->tileset, pool));
    if (mc_tileset_info_formats(params->tileset) == NULL)
        return mc_error_located(pool, MC_ERR_NOT_QUERYABLE, "query_layers", "layer %s has no feature info", name);
    return mc_wms_link(&params->link, call, &params->view, params->tileset, pool);
}

static mc_error *
check_info_format(mc_param_reader *reader)
{
    const info_params *params = reader->target;
    const apr_array_header_t *formats = mc_tileset_info_formats(params->tileset);
    for (int i = 0; i < formats->nelts; i++)
        if (strcmp(APR_ARRAY_IDX(formats, i, const char *), params->format) == 0)
            return MC_OK;
    return mc_param_refuse(reader);
}

static bool
is_info_130(const mc_param_reader *reader)
{
    return ((const info_params *)reader->target)->view.v130;
}

static bool
is_info_111(const mc_param_reader *reader)
{
    return !is_info_130(reader);
}

static int
last_column(const mc_param_reader *reader)
{
    return ((const info_params *)reader->target)->view.width - 1;
}

static int
last_row(const mc_param_reader *reader)
{
    return ((const info_params *)reader->target)->view.height - 1;
}

/* A side of the pixel: its parameter in WMS 1.3.0, and in 1.1.1. */
#define PIXEL_ROWS(name_130, name_111, member, noun, zero, most_, limit_)                                              \
    MC_PARAM_INTEGER(name_130, offsetof(info_params, member),                                                          \
                     "The pixel's " noun " in WMS 1.3.0, " zero "; " name_111                                          \
                     " is read, too, unless the service is strict.",                                                   \
                     .other = name_111, .applies = is_info_130, .flags = MC_PARAM_REQUIRED | MC_PARAM_LAX_OTHER,       \
                     .most = most_, .limit = limit_, .locator = name_130, .kind = MC_ERR_INVALID_POINT),               \
        MC_PARAM_INTEGER(name_111, offsetof(info_params, member), "The pixel's " noun " in WMS 1.1.1, " zero ".",      \
                         .applies = is_info_111, .flags = MC_PARAM_REQUIRED, .most = most_, .limit = limit_,           \
                         .locator = name_111, .kind = MC_ERR_INVALID_POINT)

const mc_param_row mc_wms_info_params[] = {
    MC_PARAM_TEXT("QUERY_LAYERS", offsetof(info_params, query_layer), "The name of the tileset that is asked.",
                  .flags = MC_PARAM_REQUIRED, .locator = "query_layers", .kind = MC_ERR_LAYER_NOT_DEFINED),
    MC_PARAM_TEXT("LAYERS", offsetof(info_params, layers), "The layers of the map; not read.", .flags = MC_PARAM_STRICT,
                  .locator = "layers"),
    MC_PARAM_STEP(find_query_layer),
    PIXEL_ROWS("I", "X", x, "column", "0 on the left", last_column, "width - 1"),
    PIXEL_ROWS("J", "Y", y, "row", "0 at the top", last_row, "height - 1"),
    MC_PARAM_TEXT("INFO_FORMAT", offsetof(info_params, format),
                  "The media type of the answer: one that the layer's source offers.", .flags = MC_PARAM_REQUIRED,
                  .locator = "info_format", .kind = MC_ERR_INVALID_FORMAT,
                  .refusal = "INFO_FORMAT \"{value}\" is not offered"),
    MC_PARAM_STEP(check_info_format),
    MC_PARAM_INTEGER("FEATURE_COUNT", offsetof(info_params, count),
                     "How many features of each layer are told at most (WMS 1.3.0, 7.4.3.7).", .min = 1,
                     .flags = MC_PARAM_LENIENT, .fallback = "1", .locator = "feature_count"),
    MC_PARAM_END,
};

mc_error *
mc_wms_get_info(mc_request *request, const mc_call *call, apr_pool_t *pool)
{
    info_params params = { 0 };
    MC_TRY(mc_wms_view_parse(&params.view, call, pool));
    MC_TRY(mc_params_read(&params, mc_wms_info_params, call, pool));
    mc_tileset *tileset = params.tileset;
    const char **values = mc_wms_values(call, tileset, pool);
    mc_dimension_value *dimensions = apr_pcalloc(pool, ((size_t)tileset->dimension_count + 1) * sizeof(*dimensions));
    for (int i = 0; i < tileset->dimension_count; i++)
        dimensions[i] = (mc_dimension_value){ tileset->dimensions[i]->name, values[i], false };
    request->kind = MC_REQUEST_INFO;
    request->u.info.tileset = tileset;
    request->u.info.info = (mc_info_request){
        .map = { .tileset = tileset->name,
                 .grid = params.link->grid,
                 .box = params.view.box,
                 .width = params.view.width,
                 .height = params.view.height,
                 .density = params.view.density,
                 .dimension_count = tileset->dimension_count,
                 .dimensions = dimensions },
        .x = params.x,
        .y = params.y,
        .format = params.format,
        .count = params.count,
    };
    return MC_OK;
}
