/* GetLegendGraphic (OGC 05-078r4, 12) of layers that are drawn from vector data, and the LegendURL of documents. */
#include <apr_strings.h>
#include <string.h>
#include <strings.h>

#include "draw/label/legend.h"
#include "mapcache/trace.h"
#include "service/wms/wms.h"
#include "text/text.h"

/* Scale denominators beyond it belong to no map. */
#define SCALE_MAX 1e12

bool
mc_tileset_has_legend(const mc_tileset *tileset)
{
    return tileset->source != NULL && tileset->source->ops->legend != NULL;
}

static mc_error *
parse_legend_layer(mc_tileset **tileset, const mc_call *call, apr_pool_t *pool)
{
    const char *name = mc_param(call, "LAYER");
    if (name == NULL || *name == '\0')
        return mc_error_located(pool, MC_ERR_MISSING_PARAMETER, "layer", "the parameter LAYER is missing");
    *tileset = mc_call_tileset(call, name, pool);
    if (*tileset == NULL || !mc_wms_offers(mc_wms_of(call), *tileset))
        return mc_error_located(pool, MC_ERR_LAYER_NOT_DEFINED, "layer", "layer \"%s\" is not known", name);
    MC_TRY(mc_tileset_check_built(*tileset, pool));
    if (!mc_tileset_has_legend(*tileset))
        return mc_error_located(pool, MC_ERR_OPERATION_NOT_SUPPORTED, "layer", "layer %s has no legend", name);
    const char *style = mc_param(call, "STYLE");
    if (style != NULL && *style != '\0' && strcmp(style, "default") != 0)
        return mc_error_located(pool, MC_ERR_STYLE_NOT_DEFINED, "style", "style \"%s\" is not known", style);
    return MC_OK;
}

static mc_error *
parse_legend_side(int *side, const mc_call *call, const char *name, apr_pool_t *pool)
{
    const char *text = mc_param(call, name);
    *side = MC_LEGEND_SYMBOL;
    if (text == NULL || *text == '\0' || mc_parse_int(side, text, 1, MC_LEGEND_SYMBOL_MAX))
        return MC_OK;
    return mc_error_located(pool, MC_ERR_INVALID_PARAMETER, name, "%s \"%s\" is not a number of pixels from 1 to %d",
                            name, text, MC_LEGEND_SYMBOL_MAX);
}

static mc_error *
parse_wish(mc_legend_options *options, const mc_call *call, apr_pool_t *pool)
{
    const char *scale = mc_param(call, "SCALE"), *rule = mc_param(call, "RULE");
    *options = (mc_legend_options){ .rule = rule != NULL && *rule != '\0' ? rule : NULL };
    MC_TRY(parse_legend_side(&options->width, call, "width", pool));
    MC_TRY(parse_legend_side(&options->height, call, "height", pool));
    if (scale != NULL && *scale != '\0' &&
        !(mc_parse_double(&options->scale, scale) && options->scale > 0 && options->scale <= SCALE_MAX))
        return mc_error_located(pool, MC_ERR_INVALID_PARAMETER, "scale", "SCALE \"%s\" is not a scale denominator",
                                scale);
    static const char *const styles[] = { "SLD", "SLD_BODY" };
    for (size_t i = 0; i < sizeof(styles) / sizeof(styles[0]); i++)
        if (mc_param(call, styles[i]) != NULL)
            return mc_error_located(pool, MC_ERR_OPERATION_NOT_SUPPORTED, styles[i],
                                    "styles that a client sends are not drawn here");
    return MC_OK;
}

static mc_error *
parse_format(const mc_format **format, const mc_call *call, apr_pool_t *pool)
{
    const char *text = mc_param(call, "FORMAT");
    const apr_array_header_t *formats = mc_wms_formats(call, pool);
    if (text == NULL || *text == '\0') {
        *format = mc_wms_of(call)->format;
        return mc_wms_omitted(call, "format", pool);
    }
    for (int i = 0; i < formats->nelts; i++) {
        *format = APR_ARRAY_IDX(formats, i, const mc_format *);
        if (strcmp((*format)->mime, text) == 0 || strcmp((*format)->name, text) == 0)
            return MC_OK;
    }
    return mc_error_located(pool, MC_ERR_INVALID_FORMAT, "format", "FORMAT \"%s\" is not offered", text);
}

/* Large symbols of many rules make an image that no one has asked for by its size. */
static mc_error *
check_legend_size(mc_legend *legend, const mc_call *call, mc_ctx *ctx, apr_pool_t *pool)
{
    int width, height;
    mc_legend_measure(legend, &width, &height, ctx);
    if (width <= mc_pixels_max && height <= mc_pixels_max && (apr_int64_t)width * height <= mc_wms_of(call)->max_pixels)
        return MC_OK;
    return mc_error_located(pool, MC_ERR_INVALID_PARAMETER, "height",
                            "a legend of %d x %d pixels is over this server's limit: ask for smaller symbols, or for "
                            "one RULE",
                            width, height);
}

mc_error *
mc_wms_get_legend(mc_request *request, const mc_call *call, mc_ctx *ctx, apr_pool_t *pool)
{
    MC_SPAN(ctx, "mapcache_wms_legend");
    mc_tileset *tileset = NULL;
    const mc_format *format = NULL;
    mc_legend_options options;
    mc_map_request look = { 0 };
    mc_pixels *pixels;
    MC_TRY(parse_legend_layer(&tileset, call, pool));
    MC_TRY(parse_wish(&options, call, pool));
    MC_TRY(parse_format(&format, call, pool));
    MC_TRY(mc_wms_background(&look, call, pool));
    options.transparent = look.transparent && format->type != MC_FORMAT_JPEG;
    mc_legend *legend = mc_legend_create(&options, pool);
    tileset->source->ops->legend(legend, tileset->source);
    if (options.rule != NULL && mc_legend_is_empty(legend))
        return mc_error_located(pool, MC_ERR_INVALID_PARAMETER, "rule", "layer %s has no rule \"%s\"%s", tileset->name,
                                mc_message_text(options.rule, 100, pool), options.scale > 0 ? " at this scale" : "");
    MC_TRY(check_legend_size(legend, call, ctx, pool));
    MC_TRY(mc_legend_draw(&pixels, legend, ctx, pool));
    request->kind = MC_REQUEST_DOCUMENT;
    request->u.document = (mc_document){ 0 };
    MC_TRY(mc_format_encode(&request->u.document.text, format, pixels, MC_ON_THE_FLY, ctx, pool));
    const mc_buf *made = request->u.document.text;
    request->u.document.mime =
        format->mime != NULL ? format->mime : mc_coding_mime(mc_image_sniff(made->data, made->size));
    return MC_OK;
}

/* PNG where the service may write it: titles in JPEG are smeared. */
static const mc_format *
legend_format(const mc_call *call, apr_pool_t *pool)
{
    const apr_array_header_t *formats = mc_wms_formats(call, pool);
    for (int i = 0; i < formats->nelts; i++)
        if (strcmp(APR_ARRAY_IDX(formats, i, const mc_format *)->mime, "image/png") == 0)
            return APR_ARRAY_IDX(formats, i, const mc_format *);
    return formats->nelts > 0 ? APR_ARRAY_IDX(formats, 0, const mc_format *) : NULL;
}

bool
mc_wms_legend_url(mc_legend_url *url, const mc_call *call, const mc_tileset *tileset, mc_ctx *ctx, apr_pool_t *pool)
{
    const mc_service *service = mc_call_service(call, "wms");
    if (service == NULL || !mc_tileset_has_legend(tileset) || !mc_wms_offers((const mc_wms *)service, tileset))
        return false;
    mc_call wms_call = *call;
    wms_call.service = (mc_service *)(uintptr_t)service;
    const mc_format *format = legend_format(&wms_call, pool);
    if (format == NULL)
        return false;
    const mc_legend_options options = { .width = MC_LEGEND_SYMBOL, .height = MC_LEGEND_SYMBOL };
    mc_legend *legend = mc_legend_create(&options, pool);
    tileset->source->ops->legend(legend, tileset->source);
    mc_legend_measure(legend, &url->width, &url->height, ctx);
    url->mime = format->mime;
    url->href = apr_pstrcat(pool, mc_url_wms(call, pool),
                            "SERVICE=WMS&VERSION=1.3.0&REQUEST=GetLegendGraphic&SLD_VERSION=1.1.0&LAYER=",
                            mc_url_encode(tileset->name, "", true, false, pool),
                            "&STYLE=default&FORMAT=", mc_url_encode(format->mime, "/", true, false, pool), NULL);
    return true;
}
