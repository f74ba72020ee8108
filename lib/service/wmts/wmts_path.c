/* WMTS requests as paths (OGC 07-057r7, 10): REST, as the standard calls them. */
#include <apr_strings.h>
#include <string.h>
#include <strings.h>

#include "service/wmts/wmts.h"
#include "text/text.h"

/* What the elements of a path say. */
typedef struct path_params {
    mc_tile_request tile;
    const char *layer, *style, *set;
    int version, z, row, j;
    mc_param_file column, info;
    bool is_info; /* two elements follow that of the column */
} path_params;

/* What Accept allows of the capabilities' two names for XML; NULL if neither. Weights other than 0 are not compared. */
static const char *
acceptable_xml(const mc_call *call, apr_pool_t *pool)
{
    static const char *const types[] = { "*/*", "application/*", "application/xml", "text/xml", "text/*" };
    const char *accept = mc_call_header(call, "Accept");
    if (accept == NULL || *accept == '\0')
        return "application/xml";
    char *rest = apr_pstrdup(pool, accept);
    const char *found = NULL;
    for (char *range = strsep(&rest, ","); range != NULL; range = strsep(&rest, ",")) {
        range += strspn(range, " \t");
        char *weight = strcasestr(range, "q=");
        double q;
        range[strcspn(range, " \t;")] = '\0';
        if (weight != NULL && mc_parse_double(&q, weight + 2) && q <= 0)
            continue;
        for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
            if (strcasecmp(range, types[i]) == 0 && (found == NULL || i < 3))
                found = i < 3 ? "application/xml" : "text/xml";
    }
    return found;
}

static mc_error *
answer_path_capabilities(mc_request *request, const mc_call *call, mc_ctx *ctx, apr_pool_t *pool)
{
    const char *mime = acceptable_xml(call, pool);
    mc_capabilities_params params = { 0 };
    if (mime == NULL)
        return mc_error_create(pool, MC_ERR_NOT_ACCEPTABLE, "the capabilities are application/xml or text/xml only");
    MC_TRY(mc_wmts_capabilities(request, &params, mime, call, ctx, pool));
    request->u.document.vary = "Accept";
    return MC_OK;
}

static mc_error *
find_path_layer(mc_param_reader *reader)
{
    path_params *params = reader->target;
    params->tile.tileset = mc_call_tileset(reader->call, params->layer, reader->pool);
    return params->tile.tileset == NULL ? mc_param_refuse(reader) : MC_OK;
}

static mc_error *
find_path_style(mc_param_reader *reader)
{
    return mc_wmts_find_style(&((path_params *)reader->target)->tile, reader);
}

/* Each dimension has an element of its own. */
static mc_error *
read_path_dimensions(mc_param_reader *reader)
{
    mc_tile_request *tile = &((path_params *)reader->target)->tile;
    apr_pool_t *pool = reader->pool;
    MC_TRY(mc_tileset_check_built(tile->tileset, pool));
    const char **values = mc_tileset_defaults(tile->tileset, pool);
    for (int i = 0; i < tile->tileset->dimension_count; i++) {
        const mc_dimension *dimension = tile->tileset->dimensions[i];
        if (reader->next >= reader->path->nelts)
            return mc_error_create(pool, MC_ERR_NOT_FOUND, "the path lacks the dimension %s", dimension->name);
        values[i] = mc_wmts_dimension_value(dimension, APR_ARRAY_IDX(reader->path, reader->next++, const char *));
    }
    tile->values = values;
    return MC_OK;
}

static mc_error *
find_path_set(mc_param_reader *reader)
{
    path_params *params = reader->target;
    params->tile.link = params->set == NULL ? NULL : mc_tileset_link(params->tile.tileset, params->set);
    if (params->tile.link == NULL)
        return mc_param_refuse(reader);
    int rest = reader->path->nelts - reader->next;
    params->is_info = rest == 5;
    if (rest != 3 && rest != 5)
        return mc_error_create(reader->pool, MC_ERR_NOT_FOUND, "path \"%s\" has a wrong number of elements",
                               reader->call->path);
    return MC_OK;
}

static mc_error *
check_path_level(mc_param_reader *reader)
{
    const path_params *params = reader->target;
    return mc_wmts_check_level(&params->tile, params->z, MC_ERR_NOT_FOUND, reader->pool);
}

static mc_error *
refuse_path_value(const char *what, const char *text, apr_pool_t *pool)
{
    return mc_error_create(pool, MC_ERR_NOT_FOUND, "%s \"%s\" is not known", what, text != NULL ? text : "");
}

/* The advertised type that an extension asks for; NULL where it says nothing of the type. */
static const char *
mime_of_extension(const mc_tileset *tileset, const char *extension, apr_pool_t *pool)
{
    const apr_array_header_t *formats = mc_wmts_formats(tileset, pool);
    for (int i = 0; i < formats->nelts; i++) {
        const char *mime = APR_ARRAY_IDX(formats, i, const char *);
        if (strcmp(extension, mc_wmts_extension(tileset, mime)) == 0)
            return mime;
    }
    return NULL;
}

static mc_error *
check_path_extension(mc_param_reader *reader)
{
    const path_params *params = reader->target;
    const char *extension = params->column.extension;
    if (params->is_info)
        return extension != NULL ? mc_param_refuse(reader) : MC_OK;
    if (!reader->call->service->strict ||
        (extension != NULL && (mc_tileset_offers_extension(params->tile.tileset, extension) ||
                               mime_of_extension(params->tile.tileset, extension, reader->pool) != NULL)))
        return MC_OK;
    return refuse_path_value("the extension", extension, reader->pool);
}

#define PATH_REFUSAL .kind = MC_ERR_NOT_FOUND, .refusal = "{name} \"{value}\" is not known"

const mc_param_row mc_wmts_path_version_params[] = {
    MC_PARAM_CHOICE("version", offsetof(path_params, version), MC_WMTS_VERSION, "The version of the protocol.",
                    .flags = MC_PARAM_REQUIRED, .kind = MC_ERR_NOT_FOUND,
                    .refusal = "WMTS version \"{value}\" is not " MC_WMTS_VERSION),
    MC_PARAM_END,
};

const mc_param_row mc_wmts_path_tile_params[] = {
    MC_PARAM_TEXT("layer", offsetof(path_params, layer), "The name of a tileset.", .flags = MC_PARAM_REQUIRED,
                  .missing_kind = MC_ERR_NOT_FOUND, .missing = "the path names no layer", PATH_REFUSAL),
    MC_PARAM_STEP(find_path_layer),
    MC_PARAM_TEXT("style", offsetof(path_params, style),
                  "The style of the layer: `default`, or the name of one of its palettes; values of the layer's "
                  "dimensions follow as elements of their own.",
                  .flags = MC_PARAM_REQUIRED, PATH_REFUSAL),
    MC_PARAM_STEP(find_path_style),
    MC_PARAM_STEP(read_path_dimensions),
    MC_PARAM_TEXT("TileMatrixSet", offsetof(path_params, set), "The name of a grid of the tileset.",
                  .flags = MC_PARAM_REQUIRED, PATH_REFUSAL),
    MC_PARAM_STEP(find_path_set),
    MC_PARAM_INTEGER("TileMatrix", offsetof(path_params, z), "The level, 0 for the coarsest.",
                     .flags = MC_PARAM_REQUIRED, PATH_REFUSAL),
    MC_PARAM_STEP(check_path_level),
    MC_PARAM_INTEGER("TileRow", offsetof(path_params, row), "The row, 0 at the top.", .flags = MC_PARAM_REQUIRED,
                     PATH_REFUSAL),
    MC_PARAM_FILE("TileCol", offsetof(path_params, column),
                  "The column, 0 on the left, with the extension of the layer's format; of feature info without one.",
                  .flags = MC_PARAM_REQUIRED, PATH_REFUSAL),
    MC_PARAM_STEP(check_path_extension),
    MC_PARAM_END,
};

const mc_param_row mc_wmts_path_info_params[] = {
    MC_PARAM_INTEGER("J", offsetof(path_params, j), "The pixel's row in the tile, 0 at the top.",
                     .flags = MC_PARAM_REQUIRED, PATH_REFUSAL),
    MC_PARAM_FILE("I", offsetof(path_params, info),
                  "The pixel's column in the tile, 0 on the left; its extension is the number of an info format.",
                  .flags = MC_PARAM_REQUIRED, PATH_REFUSAL),
    MC_PARAM_END,
};

static mc_error *
read_path_info(mc_request *request, path_params *params, const mc_tile_request *tile, const mc_call *call,
               const apr_array_header_t *path, int next, apr_pool_t *pool)
{
    int index;
    MC_TRY(mc_params_read_path(params, mc_wmts_path_info_params, call, path, &next, pool));
    const apr_array_header_t *formats = mc_tileset_info_formats(tile->tileset);
    const char *extension = params->info.extension;
    if (formats == NULL)
        return mc_error_create(pool, MC_ERR_NOT_FOUND, "layer %s has no feature info", tile->tileset->name);
    if (extension == NULL || !mc_parse_int(&index, extension, 0, formats->nelts - 1))
        return refuse_path_value("the index of the info format", extension, pool);
    return mc_wmts_info_request(request, tile, params->info.number, params->j,
                                APR_ARRAY_IDX(formats, index, const char *), pool);
}

mc_error *
mc_wmts_parse_path(mc_request *request, const mc_call *call, mc_ctx *ctx, apr_pool_t *pool)
{
    const apr_array_header_t *path = mc_path_segments(call->path, pool);
    path_params params = { 0 };
    int next = 0;
    MC_TRY(mc_params_read_path(&params, mc_wmts_path_version_params, call, path, &next, pool));
    if (path->nelts == 2 && strcmp(APR_ARRAY_IDX(path, 1, const char *), "WMTSCapabilities.xml") == 0)
        return answer_path_capabilities(request, call, ctx, pool);
    MC_TRY(mc_params_read_path(&params, mc_wmts_path_tile_params, call, path, &next, pool));
    mc_tile_request *tile = apr_pmemdup(pool, &params.tile, sizeof(*tile));
    mc_tile_stack stack = { .tiles = tile, .count = 1 };
    MC_TRY(mc_stack_place(&stack, params.z, params.column.number, params.row, true, pool));
    if (params.is_info)
        return read_path_info(request, &params, tile, call, path, next, pool);
    const char *extension = params.column.extension == NULL ? "" : params.column.extension;
    MC_TRY(mc_stack_choose(&stack, extension, call, pool));
    const char *mime = mime_of_extension(stack.tiles[0].tileset, extension, pool);
    if (call->service->strict && mime != NULL)
        stack.exact = mc_wmts_format(stack.tiles[0].tileset, mime, call);
    request->kind = MC_REQUEST_TILE;
    request->u.tile = stack;
    return MC_OK;
}
