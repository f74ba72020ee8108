/* GetLegendGraphic (OGC 05-078r4, 12) of layers that are drawn from vector data, and the LegendURL of documents. */
#include <apr_strings.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "draw/label/legend.h"
#include "mapcache/trace.h"
#include "service/wms/wms.h"
#include "text/text.h"

/* Scale denominators beyond it belong to no map. */
#define SCALE_MAX 1e12

typedef struct legend_params {
    const char *layer;
    mc_tileset *tileset;
    const char *style_name;
    const mc_color_map *style;
    mc_legend_options options;
    const char *format_name;
    const mc_format *format;
} legend_params;

static mc_error *
find_legend_layer(mc_param_reader *reader)
{
    legend_params *params = reader->target;
    apr_pool_t *pool = reader->pool;
    const char *name = params->layer;
    params->tileset = mc_call_tileset(reader->call, name, pool);
    if (params->tileset == NULL || !mc_wms_offers(mc_wms_of(reader->call), params->tileset))
        return mc_param_refuse(reader);
    MC_TRY(mc_tileset_check_built(params->tileset, pool));
    if (!mc_tileset_style_has_legend(params->tileset, NULL) && params->tileset->palette_count == 0)
        return mc_error_located(pool, MC_ERR_OPERATION_NOT_SUPPORTED, "layer", "layer %s has no legend", name);
    return MC_OK;
}

static mc_error *
find_legend_style(mc_param_reader *reader)
{
    legend_params *params = reader->target;
    if (!mc_tileset_find_style(&params->style, params->tileset, reader->text))
        return mc_param_refuse(reader);
    if (mc_tileset_style_has_legend(params->tileset, params->style))
        return MC_OK;
    return mc_error_located(reader->pool, MC_ERR_OPERATION_NOT_SUPPORTED, "style",
                            "layer %s has no legend of its default style", params->layer);
}

static mc_error *
choose_legend_format(mc_param_reader *reader)
{
    legend_params *params = reader->target;
    const apr_array_header_t *formats = mc_wms_formats(reader->call, reader->pool);
    params->format = mc_wms_of(reader->call)->format;
    if (reader->text == NULL)
        return MC_OK;
    for (int i = 0; i < formats->nelts; i++) {
        params->format = APR_ARRAY_IDX(formats, i, const mc_format *);
        if (strcmp(params->format->mime, reader->text) == 0 || strcmp(params->format->name, reader->text) == 0)
            return MC_OK;
    }
    return mc_param_refuse(reader);
}

#define SIDE_REFUSAL "{name} \"{value}\" is not a number of pixels from {min} to {max}"
#define SLD_REFUSAL "styles that a client sends are not drawn here"

const mc_param_row mc_wms_legend_params[] = {
    MC_PARAM_TEXT("LAYER", offsetof(legend_params, layer),
                  "The name of a tileset that is drawn from vector data, or has palettes.",
                  .flags = MC_PARAM_REQUIRED | MC_PARAM_EMPTY, .locator = "layer", .kind = MC_ERR_LAYER_NOT_DEFINED,
                  .refusal = "layer \"{value}\" is not known"),
    MC_PARAM_STEP(find_legend_layer),
    MC_PARAM_TEXT("STYLE", offsetof(legend_params, style_name),
                  "The style of the layer: `default`, or the name of one of its palettes.", .flags = MC_PARAM_EMPTY,
                  .locator = "style", .kind = MC_ERR_STYLE_NOT_DEFINED, .refusal = "style \"{value}\" is not known"),
    MC_PARAM_STEP(find_legend_style),
    MC_PARAM_TEXT("RULE", offsetof(legend_params, options.rule), "The name of the only rule that is shown.",
                  .flags = MC_PARAM_EMPTY, .locator = "rule"),
    MC_PARAM_INTEGER("width", offsetof(legend_params, options.width),
                     "Pixels of a symbol from left to right; 20 without it, and as much more as a DPI says.", .min = 1,
                     .max = MC_LEGEND_SYMBOL_MAX, .flags = MC_PARAM_EMPTY, .locator = "width", .refusal = SIDE_REFUSAL),
    MC_PARAM_INTEGER("height", offsetof(legend_params, options.height),
                     "Pixels of a symbol from top to bottom; 20 without it, and as much more as a DPI says.", .min = 1,
                     .max = MC_LEGEND_SYMBOL_MAX, .flags = MC_PARAM_EMPTY, .locator = "height",
                     .refusal = SIDE_REFUSAL),
    MC_PARAM_NUMBER("SCALE", offsetof(legend_params, options.scale),
                    "The scale denominator at which rules are shown; all rules without it.", .max = SCALE_MAX,
                    .flags = MC_PARAM_EMPTY, .locator = "scale",
                    .refusal = "SCALE \"{value}\" is not a scale denominator"),
    MC_PARAM_REFUSED("SLD", "A style of the client's own.", .locator = "SLD", .kind = MC_ERR_OPERATION_NOT_SUPPORTED,
                     .refusal = SLD_REFUSAL),
    MC_PARAM_REFUSED("SLD_BODY", "A style of the client's own.", .locator = "SLD_BODY",
                     .kind = MC_ERR_OPERATION_NOT_SUPPORTED, .refusal = SLD_REFUSAL),
    MC_PARAM_TEXT("FORMAT", offsetof(legend_params, format_name),
                  "The media type or name of a format that the service offers; the service's format without it.",
                  .flags = MC_PARAM_STRICT | MC_PARAM_EMPTY, .locator = "format", .kind = MC_ERR_INVALID_FORMAT,
                  .refusal = "FORMAT \"{value}\" is not offered"),
    MC_PARAM_STEP(choose_legend_format),
    MC_PARAM_END,
};

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

/* Values of dimensions change nothing of a legend, but wrong ones are wrong here, too; defaults are not looked at. */
static mc_error *
check_legend_values(const mc_call *call, const mc_tileset *tileset, mc_ctx *ctx, apr_pool_t *pool)
{
    const char **values = mc_wms_values(call, tileset, pool);
    for (int i = 0; i < tileset->dimension_count; i++)
        if (values[i] != tileset->dimensions[i]->default_value) {
            const mc_tileset only = { .name = tileset->name,
                                      .dimensions = &tileset->dimensions[i],
                                      .dimension_count = 1 };
            MC_TRY(mc_dimension_settle(&values[i], tileset->dimensions[i], tileset->name, ctx, pool));
            MC_TRY(mc_values_check(&only, tileset->links[0]->grid, &values[i], ctx, pool));
        }
    return MC_OK;
}

/* As in GetMap, sizes that the client names are those of the image; the others are as large on a fine screen. */
static mc_error *
choose_legend_density(mc_legend_options *options, const mc_call *call, apr_pool_t *pool)
{
    mc_wms_screen screen = { 0 };
    MC_TRY(mc_wms_screen_parse(&screen, call, pool));
    const int usual = (int)lrint(MC_LEGEND_SYMBOL * screen.density);
    options->density = screen.density;
    options->width = options->width > 0 ? options->width : usual;
    options->height = options->height > 0 ? options->height : usual;
    return MC_OK;
}

/* Of drawn layers their rules, of palettes their colours. */
static void
add_legend_rows(mc_legend *legend, const mc_tileset *tileset, const mc_color_map *style, apr_pool_t *pool)
{
    if (style != NULL)
        mc_wms_add_palette_legend(legend, style, pool);
    else if (mc_tileset_has_legend(tileset))
        tileset->source->ops->legend(legend, tileset->source);
    else
        mc_wms_add_palette_legend(legend, tileset->stored_palette, pool);
}

mc_error *
mc_wms_get_legend(mc_request *request, const mc_call *call, mc_ctx *ctx, apr_pool_t *pool)
{
    MC_SPAN(ctx, "mapcache_wms_legend");
    legend_params params = { 0 };
    mc_map_request look = { 0 };
    mc_pixels *pixels;
    MC_TRY(mc_params_read(&params, mc_wms_legend_params, call, pool));
    MC_TRY(mc_wms_background(&look, call, pool));
    const mc_tileset *tileset = params.tileset;
    const mc_format *format = params.format;
    mc_legend_options *options = &params.options;
    MC_TRY(choose_legend_density(options, call, pool));
    MC_TRY(check_legend_values(call, tileset, ctx, pool));
    options->transparent = look.transparent && format->type != MC_FORMAT_JPEG;
    mc_legend *legend = mc_legend_create(options, pool);
    add_legend_rows(legend, tileset, params.style, pool);
    if (options->rule != NULL && mc_legend_is_empty(legend))
        return mc_error_located(pool, MC_ERR_INVALID_PARAMETER, "rule", "layer %s has no rule \"%s\"%s", tileset->name,
                                mc_message_text(options->rule, 100, pool), options->scale > 0 ? " at this scale" : "");
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
mc_wms_legend_url(mc_legend_url *url, const mc_call *call, const mc_tileset *tileset, const mc_color_map *style,
                  mc_ctx *ctx, apr_pool_t *pool)
{
    const mc_service *service = mc_call_service(call, "wms");
    if (service == NULL || !mc_tileset_style_has_legend(tileset, style) ||
        !mc_wms_offers((const mc_wms *)service, tileset))
        return false;
    mc_call wms_call = *call;
    wms_call.service = (mc_service *)(uintptr_t)service;
    const mc_format *format = legend_format(&wms_call, pool);
    if (format == NULL)
        return false;
    const mc_legend_options options = { .width = MC_LEGEND_SYMBOL, .height = MC_LEGEND_SYMBOL };
    mc_legend *legend = mc_legend_create(&options, pool);
    add_legend_rows(legend, tileset, style, pool);
    mc_legend_measure(legend, &url->width, &url->height, ctx);
    url->mime = format->mime;
    url->href = apr_pstrcat(pool, mc_url_wms(call, pool),
                            "SERVICE=WMS&VERSION=1.3.0&REQUEST=GetLegendGraphic&SLD_VERSION=1.1.0&LAYER=",
                            mc_url_encode(tileset->name, "", true, false, pool),
                            "&STYLE=", mc_url_encode(style == NULL ? "default" : style->name, "", true, false, pool),
                            "&FORMAT=", mc_url_encode(format->mime, "/", true, false, pool), NULL);
    return true;
}
