/* GetFeatureInfo of one or several layers (docs/reference/services.md 4.6). 1.3.0 says CRS, I, J; 1.1.1 SRS, X, Y. */
#include <apr_strings.h>
#include <string.h>

#include "service/info_join.h"
#include "service/wms/wms.h"
#include "text/text.h"

/* Layers of one request: each is a question to its source. */
enum { MC_INFO_LAYERS_MAX = 64 };

typedef struct info_params {
    mc_wms_view view;
    const char *query_layers, *layers; /* as requested */
    mc_tileset **tilesets;             /* that are asked, in the order of the request */
    const mc_grid_link **links;
    int layer_count;
    int x, y;
    const char *format;
    int count;
} info_params;

static mc_error *
add_query_layer(info_params *params, const char *name, const mc_call *call, apr_pool_t *pool)
{
    mc_tileset *tileset = mc_call_tileset(call, name, pool);
    if (tileset == NULL || !mc_wms_offers(mc_wms_of(call), tileset))
        return mc_error_located(pool, MC_ERR_LAYER_NOT_DEFINED, "query_layers", "layer \"%s\" is not known", name);
    MC_TRY(mc_tileset_check_built(tileset, pool));
    if (mc_tileset_info_formats(tileset) == NULL)
        return mc_error_located(pool, MC_ERR_NOT_QUERYABLE, "query_layers", "layer %s has no feature info", name);
    for (int i = 0; i < params->layer_count; i++)
        if (params->tilesets[i] == tileset) /* once is enough: ids of features must not be in a document twice */
            return MC_OK;
    if (params->layer_count == MC_INFO_LAYERS_MAX)
        return mc_error_located(pool, MC_ERR_INVALID_PARAMETER, "query_layers", "more than %d layers",
                                MC_INFO_LAYERS_MAX);
    params->tilesets[params->layer_count] = tileset;
    return mc_wms_link(&params->links[params->layer_count++], call, &params->view, tileset, pool);
}

static mc_error *
find_query_layers(mc_param_reader *reader)
{
    info_params *params = reader->target;
    const mc_call *call = reader->call;
    apr_pool_t *pool = reader->pool;
    params->tilesets = apr_pcalloc(pool, MC_INFO_LAYERS_MAX * sizeof(mc_tileset *));
    params->links = apr_pcalloc(pool, MC_INFO_LAYERS_MAX * sizeof(const mc_grid_link *));
    if (call->config->mode == MC_MODE_COMBINED_MIRROR)
        return add_query_layer(params, params->query_layers, call, pool);
    char *rest = apr_pstrdup(pool, params->query_layers);
    for (char *name = strsep(&rest, ","); name != NULL; name = strsep(&rest, ","))
        if (*name != '\0' || call->service->strict)
            MC_TRY(add_query_layer(params, name, call, pool));
    return params->layer_count > 0
               ? MC_OK
               : mc_error_located(pool, MC_ERR_LAYER_NOT_DEFINED, "query_layers", "QUERY_LAYERS \"%s\" names no layer",
                                  mc_message_text(params->query_layers, 100, pool));
}

static bool
layer_offers_info(const mc_tileset *tileset, const char *format)
{
    const apr_array_header_t *formats = mc_tileset_info_formats(tileset);
    for (int i = 0; i < formats->nelts; i++)
        if (strcmp(APR_ARRAY_IDX(formats, i, const char *), format) == 0)
            return true;
    return false;
}

/* Whether all layers can answer in a format, and their answers become one. */
static bool
is_info_format(const info_params *params, const char *format)
{
    for (int i = 0; i < params->layer_count; i++)
        if (!layer_offers_info(params->tilesets[i], format))
            return false;
    return params->layer_count == 1 || mc_info_joins(format);
}

/* The first one that is offered, where the client does not say (WMS 1.1.1, 7.3.3.5). */
static mc_error *
check_info_format(mc_param_reader *reader)
{
    info_params *params = reader->target;
    const apr_array_header_t *formats = mc_tileset_info_formats(params->tilesets[0]);
    for (int i = 0; params->format == NULL && i < formats->nelts; i++)
        if (is_info_format(params, APR_ARRAY_IDX(formats, i, const char *)))
            params->format = APR_ARRAY_IDX(formats, i, const char *);
    if (params->format == NULL)
        return mc_error_located(reader->pool, MC_ERR_INVALID_FORMAT, "info_format",
                                "these layers have no format of feature info in common");
    if (is_info_format(params, params->format))
        return MC_OK;
    reader->text = params->format;
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
    MC_PARAM_LIST("QUERY_LAYERS", offsetof(info_params, query_layers),
                  "Names of the tilesets that are asked; the answers are joined in this order.",
                  .flags = MC_PARAM_REQUIRED, .locator = "query_layers", .kind = MC_ERR_LAYER_NOT_DEFINED),
    MC_PARAM_TEXT("LAYERS", offsetof(info_params, layers), "The layers of the map; not read.", .flags = MC_PARAM_STRICT,
                  .locator = "layers"),
    MC_PARAM_STEP(find_query_layers),
    PIXEL_ROWS("I", "X", x, "column", "0 on the left", last_column, "width - 1"),
    PIXEL_ROWS("J", "Y", y, "row", "0 at the top", last_row, "height - 1"),
    MC_PARAM_TEXT("INFO_FORMAT", offsetof(info_params, format),
                  "The media type of the answer in WMS 1.3.0: one that the sources of all these layers offer.",
                  .applies = is_info_130, .flags = MC_PARAM_REQUIRED, .locator = "info_format",
                  .kind = MC_ERR_INVALID_FORMAT, .refusal = "INFO_FORMAT \"{value}\" is not offered"),
    MC_PARAM_TEXT("INFO_FORMAT", offsetof(info_params, format),
                  "The same in WMS 1.1.1; without it the first one that the layers offer.", .applies = is_info_111,
                  .flags = MC_PARAM_EMPTY, .locator = "info_format", .kind = MC_ERR_INVALID_FORMAT,
                  .refusal = "INFO_FORMAT \"{value}\" is not offered"),
    MC_PARAM_STEP(check_info_format),
    MC_PARAM_INTEGER("FEATURE_COUNT", offsetof(info_params, count),
                     "How many features of each layer are told at most (WMS 1.3.0, 7.4.3.7).", .min = 1,
                     .flags = MC_PARAM_LENIENT, .fallback = "1", .locator = "feature_count"),
    MC_PARAM_END,
};

static void
make_question(mc_info_question *question, const info_params *params, int layer, const mc_call *call, apr_pool_t *pool)
{
    mc_tileset *tileset = params->tilesets[layer];
    const char **values = mc_wms_values(call, tileset, pool);
    mc_dimension_value *dimensions = apr_pcalloc(pool, ((size_t)tileset->dimension_count + 1) * sizeof(*dimensions));
    for (int i = 0; i < tileset->dimension_count; i++)
        dimensions[i] = (mc_dimension_value){ tileset->dimensions[i]->name, values[i], false };
    question->tileset = tileset;
    question->info = (mc_info_request){
        .map = { .tileset = tileset->name,
                 .grid = params->links[layer]->grid,
                 .box = params->view.box,
                 .width = params->view.width,
                 .height = params->view.height,
                 .density = params->view.screen.density,
                 .dimension_count = tileset->dimension_count,
                 .dimensions = dimensions },
        .x = params->x,
        .y = params->y,
        .format = params->format,
        .count = params->count,
    };
}

mc_error *
mc_wms_get_info(mc_request *request, const mc_call *call, apr_pool_t *pool)
{
    info_params params = { 0 };
    MC_TRY(mc_wms_view_parse(&params.view, call, pool));
    MC_TRY(mc_params_read(&params, mc_wms_info_params, call, pool));
    request->kind = MC_REQUEST_INFO;
    request->u.info.questions = apr_pcalloc(pool, (size_t)params.layer_count * sizeof(mc_info_question));
    for (int i = 0; i < params.layer_count; i++)
        make_question(&request->u.info.questions[request->u.info.count++], &params, i, call, pool);
    return MC_OK;
}
