/* GetFeatureInfo of one layer (spec services 4.6). 1.3.0 says CRS, I, J; 1.1.1 SRS, X, Y. */
#include <apr_strings.h>
#include <string.h>

#include "service/wms/wms.h"
#include "text/text.h"

/* A pixel number, 0 on the upper left. 1.3.0 requests with the names of 1.1.1 are understood. */
static mc_error *
parse_pixel(int *pixel, const mc_call *call, const char *name, const char *old_name, int size, apr_pool_t *pool)
{
    const char *text = name != NULL ? mc_param(call, name) : NULL;
    if (text == NULL && (name == NULL || !call->service->strict))
        text = mc_param(call, old_name);
    if (name == NULL)
        name = old_name;
    if (text == NULL)
        return mc_error_located(pool, MC_ERR_MISSING_PARAMETER, name, "the parameter %s is missing", name);
    if (!mc_parse_int(pixel, text, 0, size - 1))
        return mc_error_located(pool, MC_ERR_INVALID_POINT, name, "%s \"%s\" is not one of 0 to %d", name, text,
                                size - 1);
    return MC_OK;
}

static mc_error *
parse_query_layer(mc_tileset **tileset, const mc_call *call, apr_pool_t *pool)
{
    const char *name = mc_param(call, "QUERY_LAYERS");
    if (name == NULL)
        return mc_error_located(pool, MC_ERR_MISSING_PARAMETER, "query_layers",
                                "the parameter QUERY_LAYERS is missing");
    if (mc_param(call, "LAYERS") == NULL)
        MC_TRY(mc_wms_omitted(call, "layers", pool));
    if (strchr(name, ',') != NULL && call->config->mode != MC_MODE_COMBINED_MIRROR)
        return mc_error_located(pool, MC_ERR_OPERATION_NOT_SUPPORTED, "query_layers",
                                "feature info is offered for one layer at a time");
    *tileset = mc_call_tileset(call, name, pool);
    if (*tileset == NULL || !mc_wms_offers(mc_wms_of(call), *tileset))
        return mc_error_located(pool, MC_ERR_LAYER_NOT_DEFINED, "query_layers", "layer \"%s\" is not known", name);
    MC_TRY(mc_tileset_check_built(*tileset, pool));
    if (mc_tileset_info_formats(*tileset) == NULL)
        return mc_error_located(pool, MC_ERR_NOT_QUERYABLE, "query_layers", "layer %s has no feature info", name);
    return MC_OK;
}

static mc_error *
parse_info_format(const char **format, const mc_tileset *tileset, const mc_call *call, apr_pool_t *pool)
{
    const apr_array_header_t *formats = mc_tileset_info_formats(tileset);
    *format = mc_param(call, "INFO_FORMAT");
    if (*format == NULL)
        return mc_error_located(pool, MC_ERR_MISSING_PARAMETER, "info_format", "the parameter INFO_FORMAT is missing");
    for (int i = 0; i < formats->nelts; i++)
        if (strcmp(APR_ARRAY_IDX(formats, i, const char *), *format) == 0)
            return MC_OK;
    return mc_error_located(pool, MC_ERR_INVALID_FORMAT, "info_format", "INFO_FORMAT \"%s\" is not offered", *format);
}

/* One feature of each layer, where FEATURE_COUNT does not say another number (WMS 1.3.0, 7.4.3.7). */
static int
feature_count(const mc_call *call)
{
    const char *text = mc_param(call, "FEATURE_COUNT");
    int count = 1;
    return text != NULL && mc_parse_int(&count, text, 1, INT32_MAX) ? count : 1;
}

mc_error *
mc_wms_get_info(mc_request *request, const mc_call *call, apr_pool_t *pool)
{
    mc_wms_view view;
    mc_tileset *tileset = NULL;
    MC_TRY(mc_wms_view_parse(&view, call, pool));
    MC_TRY(parse_query_layer(&tileset, call, pool));
    const mc_grid_link *link = NULL;
    MC_TRY(mc_wms_link(&link, call, &view, tileset, pool));
    mc_info_request *info = &request->u.info.info;
    *info = (mc_info_request){ 0 };
    MC_TRY(parse_pixel(&info->x, call, view.v130 ? "I" : NULL, "X", view.width, pool));
    MC_TRY(parse_pixel(&info->y, call, view.v130 ? "J" : NULL, "Y", view.height, pool));
    MC_TRY(parse_info_format(&info->format, tileset, call, pool));
    info->count = feature_count(call);
    const char **values = mc_wms_values(call, tileset, pool);
    mc_dimension_value *dimensions = apr_pcalloc(pool, ((size_t)tileset->dimension_count + 1) * sizeof(*dimensions));
    for (int i = 0; i < tileset->dimension_count; i++)
        dimensions[i] = (mc_dimension_value){ tileset->dimensions[i]->name, values[i], false };
    info->map = (mc_render){
        .tileset = tileset->name,
        .grid = link->grid,
        .box = view.box,
        .width = view.width,
        .height = view.height,
        .dimension_count = tileset->dimension_count,
        .dimensions = dimensions,
    };
    request->kind = MC_REQUEST_INFO;
    request->u.info.tileset = tileset;
    return MC_OK;
}
