/*
 * Web Map Tile Service 1.0.0 (OGC 07-057r7): requests as key-value pairs and as paths (spec services 5). Rows count
 * from the top.
 */
#include "service/wmts/wmts.h"

#include <apr_strings.h>
#include <string.h>
#include <strings.h>

#include "text/text.h"

typedef struct wmts {
    mc_service_base base;
} wmts;

static const mc_key wmts_keys[] = { MC_SERVICE_KEYS(wmts), MC_SERVICE_STRICT_KEY(wmts), MC_KEY_END };

static mc_service *
wmts_from_config(const mc_node *node, mc_build *build)
{
    wmts *service = apr_pcalloc(build->pool, sizeof(*service));
    return mc_service_read(&service->base, &mc_service_wmts, node, build) ? &service->base.service : NULL;
}

bool
mc_wmts_is_kvp(const mc_call *call)
{
    if (mc_param(call, "SERVICE") != NULL)
        return true;
    return *call->path == '\0' && mc_param(call, "REQUEST") != NULL;
}

const apr_array_header_t *
mc_wmts_formats(const mc_tileset *tileset, apr_pool_t *pool)
{
    apr_array_header_t *formats = apr_array_make(pool, 2, sizeof(const char *));
    if (tileset->format != NULL && tileset->format->mime != NULL) {
        /* Tiles are served with the type that their bytes tell: no word of "image/png; mode=8bit" then. */
        APR_ARRAY_PUSH(formats, const char *) =
            tileset->format->type == MC_FORMAT_PNG ? "image/png" : tileset->format->mime;
        return formats;
    }
    if (tileset->format != NULL && tileset->format->type == MC_FORMAT_RAW) {
        APR_ARRAY_PUSH(formats, const char *) = "application/octet-stream";
        return formats;
    }
    /* mixed, or as the source sent them: each tile is one or the other */
    APR_ARRAY_PUSH(formats, const char *) = "image/png";
    APR_ARRAY_PUSH(formats, const char *) = "image/jpeg";
    return formats;
}

static bool
contains_wmts_text(const apr_array_header_t *texts, const char *text)
{
    for (int i = 0; i < texts->nelts; i++)
        if (strcmp(APR_ARRAY_IDX(texts, i, const char *), text) == 0)
            return true;
    return false;
}

static const char *
wanted_value(const mc_dimension *dimension, const char *text)
{
    if (text != NULL && strcmp(text, "default") == 0)
        return dimension->default_value;
    return mc_dimension_wanted(dimension, text);
}

/* The parameter's value; an empty one counts as absent. */
static const char *
filled_param(const mc_call *call, const char *name)
{
    const char *value = mc_param(call, name);
    return value != NULL && *value != '\0' ? value : NULL;
}

static mc_error *
create_wmts_missing_error(const char *locator, apr_pool_t *pool)
{
    return mc_error_located(pool, MC_ERR_MISSING_PARAMETER, locator, "the parameter %s is missing", locator);
}

static mc_error *
create_wmts_invalid_error(const char *locator, const char *value, apr_pool_t *pool)
{
    return mc_error_located(pool, MC_ERR_INVALID_PARAMETER, locator, "%s \"%s\" is not valid here", locator, value);
}

/* --- key-value pairs -------------------------------------------------------------------------------------------- */

static mc_error *
kvp_layer(mc_tile_request *tile, const mc_call *call, apr_pool_t *pool)
{
    const char *name = filled_param(call, "LAYER");
    if (name == NULL)
        return create_wmts_missing_error("layer", pool);
    tile->tileset = mc_call_tileset(call, name, pool);
    if (tile->tileset == NULL)
        return create_wmts_invalid_error("layer", name, pool);
    MC_TRY(mc_tileset_check_built(tile->tileset, pool));
    const char **values = mc_tileset_defaults(tile->tileset, pool);
    for (int i = 0; i < tile->tileset->dimension_count; i++) {
        const mc_dimension *dimension = tile->tileset->dimensions[i];
        values[i] = wanted_value(dimension, mc_param(call, dimension->name));
    }
    tile->values = values;
    return MC_OK;
}

/* VERSION, STYLE, FORMAT: checked when present, mandatory where the service is strict. */
static mc_error *
kvp_check_common(const mc_tile_request *tile, const mc_call *call, apr_pool_t *pool)
{
    bool strict = call->service->strict;
    const char *version = filled_param(call, "VERSION");
    if (version != NULL ? strcmp(version, MC_WMTS_VERSION) != 0 : strict)
        return version != NULL ? create_wmts_invalid_error("version", version, pool)
                               : create_wmts_missing_error("version", pool);
    const char *style = filled_param(call, "STYLE");
    if (style != NULL ? strcmp(style, "default") != 0 : strict)
        return style != NULL ? create_wmts_invalid_error("style", style, pool)
                             : create_wmts_missing_error("style", pool);
    const char *format = filled_param(call, "FORMAT");
    if (format == NULL)
        return strict ? create_wmts_missing_error("format", pool) : MC_OK;
    /* a client with an old idea of the layer's type is still served, unless the service is strict */
    bool known = !strict && mc_tileset_is_image(tile->tileset) &&
                 (strcmp(format, "image/png") == 0 || strcmp(format, "image/jpeg") == 0 ||
                  strcmp(format, "image/png; mode=8bit") == 0);
    return known || contains_wmts_text(mc_wmts_formats(tile->tileset, pool), format)
               ? MC_OK
               : create_wmts_invalid_error("format", format, pool);
}

static mc_error *
kvp_number(int *number, const mc_call *call, const char *name, const char *locator, apr_pool_t *pool)
{
    const char *text = filled_param(call, name);
    if (text == NULL)
        return create_wmts_missing_error(locator, pool);
    if (!mc_parse_int(number, text, 0, INT32_MAX))
        return create_wmts_invalid_error(locator, text, pool);
    return MC_OK;
}

static mc_error *
check_wmts_level(const mc_tile_request *tile, int z, mc_error_kind kind, apr_pool_t *pool)
{
    if (z >= tile->link->minzoom && z <= tile->link->maxzoom)
        return MC_OK;
    return mc_error_located(pool, kind, "TileMatrix", "TileMatrix %d is not one of %d to %d", z, tile->link->minzoom,
                            tile->link->maxzoom);
}

static mc_error *
kvp_tile(mc_tile_stack *stack, const mc_call *call, apr_pool_t *pool)
{
    mc_tile_request *tile = apr_pcalloc(pool, sizeof(*tile));
    *stack = (mc_tile_stack){ .tiles = tile, .count = 1 };
    MC_TRY(kvp_layer(tile, call, pool));
    MC_TRY(kvp_check_common(tile, call, pool));
    const char *set = filled_param(call, "TILEMATRIXSET");
    if (set == NULL)
        return create_wmts_missing_error("TileMatrixSet", pool);
    tile->link = mc_tileset_link(tile->tileset, set);
    if (tile->link == NULL)
        return create_wmts_invalid_error("TileMatrixSet", set, pool);
    int z = 0, row = 0, column = 0;
    MC_TRY(kvp_number(&z, call, "TILEMATRIX", "TileMatrix", pool));
    MC_TRY(check_wmts_level(tile, z, MC_ERR_INVALID_PARAMETER, pool));
    MC_TRY(kvp_number(&row, call, "TILEROW", "TileRow", pool));
    MC_TRY(kvp_number(&column, call, "TILECOL", "TileCol", pool));
    return mc_stack_place(stack, z, column, row, true, pool);
}

static mc_error *
make_info(mc_request *request, const mc_tile_request *tile, int i, int j, const char *format, apr_pool_t *pool)
{
    const mc_grid *grid = tile->link->grid;
    mc_tileset *tileset = tile->tileset;
    if (i >= grid->tile_width)
        return mc_error_located(pool, MC_ERR_POINT_OUT_OF_RANGE, "I", "I %d is not one of 0 to %d", i,
                                grid->tile_width - 1);
    if (j >= grid->tile_height)
        return mc_error_located(pool, MC_ERR_POINT_OUT_OF_RANGE, "J", "J %d is not one of 0 to %d", j,
                                grid->tile_height - 1);
    mc_dimension_value *values = apr_pcalloc(pool, ((size_t)tileset->dimension_count + 1) * sizeof(*values));
    for (int d = 0; d < tileset->dimension_count; d++)
        values[d] = (mc_dimension_value){ tileset->dimensions[d]->name, tile->values[d], false };
    request->kind = MC_REQUEST_INFO;
    request->u.info.tileset = tileset;
    request->u.info.info = (mc_info_request){
        .map = { .tileset = tileset->name,
                 .grid = grid,
                 .box = mc_grid_tile_extent(grid, tile->z, tile->x, tile->y),
                 .width = grid->tile_width,
                 .height = grid->tile_height,
                 .dimension_count = tileset->dimension_count,
                 .dimensions = values },
        .x = i,
        .y = j,
        .format = format,
    };
    return MC_OK;
}

static mc_error *
kvp_info(mc_request *request, const mc_call *call, apr_pool_t *pool)
{
    mc_tile_stack stack;
    MC_TRY(kvp_tile(&stack, call, pool));
    const mc_tileset *tileset = stack.tiles[0].tileset;
    int i = 0, j = 0;
    MC_TRY(kvp_number(&i, call, "I", "I", pool));
    MC_TRY(kvp_number(&j, call, "J", "J", pool));
    const char *format = filled_param(call, "INFOFORMAT");
    if (format == NULL)
        return create_wmts_missing_error("infoformat", pool);
    const apr_array_header_t *formats = mc_tileset_info_formats(tileset);
    if (formats == NULL)
        return mc_error_located(pool, MC_ERR_OPERATION_NOT_SUPPORTED, "", "layer %s has no feature info",
                                tileset->name);
    if (!contains_wmts_text(formats, format))
        return create_wmts_invalid_error("infoformat", format, pool);
    return make_info(request, &stack.tiles[0], i, j, format, pool);
}

/* OWS 1.1.0 7.3.2: the first of the client's versions that we have; errors bear no locator. */
static mc_error *
kvp_capabilities(mc_request *request, const mc_call *call, mc_ctx *ctx, apr_pool_t *pool)
{
    const char *accepted = filled_param(call, "ACCEPTVERSIONS");
    if (accepted != NULL) {
        bool offered = false;
        char *rest = apr_pstrdup(pool, accepted);
        for (char *version = strsep(&rest, ","); version != NULL; version = strsep(&rest, ","))
            offered |= strcmp(version, MC_WMTS_VERSION) == 0;
        if (!offered)
            return mc_error_create(pool, MC_ERR_VERSION_NEGOTIATION, "none of the versions %s is offered, only %s",
                                   accepted, MC_WMTS_VERSION);
    }
    bool current;
    MC_TRY(mc_update_sequence_check(&current, call, pool));
    return mc_wmts_capabilities(request, current, "application/xml", call, ctx, pool);
}

static mc_error *
parse_kvp(mc_request *request, const mc_call *call, mc_ctx *ctx, apr_pool_t *pool)
{
    const char *service = filled_param(call, "SERVICE");
    if (service == NULL)
        return create_wmts_missing_error("service", pool);
    if (strcasecmp(service, "WMTS") != 0)
        return create_wmts_invalid_error("service", service, pool);
    const char *operation = filled_param(call, "REQUEST");
    if (operation == NULL)
        return create_wmts_missing_error("request", pool);
    if (strcasecmp(operation, "GetCapabilities") == 0)
        return kvp_capabilities(request, call, ctx, pool);
    if (strcasecmp(operation, "GetTile") == 0) {
        request->kind = MC_REQUEST_TILE;
        return kvp_tile(&request->u.tile, call, pool);
    }
    if (strcasecmp(operation, "GetFeatureInfo") == 0)
        return kvp_info(request, call, pool);
    return create_wmts_invalid_error("request", operation, pool);
}

/* --- paths ------------------------------------------------------------------------------------------------------ */

/* What Accept allows of the capabilities' two names for XML; NULL if neither. Weights other than 0 are not compared. */
static const char *
acceptable_xml(const mc_call *call, apr_pool_t *pool)
{
    static const char *const types[] = { "*/*", "application/*", "application/xml", "text/xml", "text/*" };
    const char *accept = call->http->headers != NULL ? apr_table_get(call->http->headers, "Accept") : NULL;
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
rest_capabilities(mc_request *request, const mc_call *call, mc_ctx *ctx, apr_pool_t *pool)
{
    const char *mime = acceptable_xml(call, pool);
    if (mime == NULL)
        return mc_error_create(pool, MC_ERR_NOT_ACCEPTABLE, "the capabilities are application/xml or text/xml only");
    return mc_wmts_capabilities(request, false, mime, call, ctx, pool);
}

static mc_error *
not_found(const char *what, const char *text, apr_pool_t *pool)
{
    return mc_error_create(pool, MC_ERR_NOT_FOUND, "%s \"%s\" is not known", what, text != NULL ? text : "");
}

static const char *
get_wmts_path_segment(const apr_array_header_t *path, int index)
{
    return index < path->nelts ? APR_ARRAY_IDX(path, index, const char *) : NULL;
}

static mc_error *
rest_info(mc_request *request, const mc_tile_request *tile, const char *row, const char *column, apr_pool_t *pool)
{
    int i, j, index;
    const char *extension;
    if (!mc_parse_int(&j, row, 0, INT32_MAX))
        return not_found("J", row, pool);
    if (!mc_path_number(&i, &extension, column, pool))
        return not_found("I", column, pool);
    const apr_array_header_t *formats = mc_tileset_info_formats(tile->tileset);
    if (formats == NULL)
        return mc_error_create(pool, MC_ERR_NOT_FOUND, "layer %s has no feature info", tile->tileset->name);
    if (extension == NULL || !mc_parse_int(&index, extension, 0, formats->nelts - 1))
        return not_found("the index of the info format", extension, pool);
    return make_info(request, tile, i, j, APR_ARRAY_IDX(formats, index, const char *), pool);
}

/* <version>/<layer>/<style>/: *next is the index of the element that follows. */
static mc_error *
rest_layer(mc_tile_request *tile, int *next, const mc_call *call, const apr_array_header_t *path, apr_pool_t *pool)
{
    const char *layer = get_wmts_path_segment(path, 1);
    const char *style = get_wmts_path_segment(path, 2);
    if (layer == NULL)
        return mc_error_create(pool, MC_ERR_NOT_FOUND, "the path names no layer");
    tile->tileset = mc_call_tileset(call, layer, pool);
    if (tile->tileset == NULL)
        return not_found("layer", layer, pool);
    if (style == NULL || strcmp(style, "default") != 0)
        return mc_error_create(pool, MC_ERR_NOT_FOUND, "style \"%s\" is not known, only \"default\"",
                               style != NULL ? style : "");
    MC_TRY(mc_tileset_check_built(tile->tileset, pool));
    const char **values = mc_tileset_defaults(tile->tileset, pool);
    for (int i = 0; i < tile->tileset->dimension_count; i++) {
        const char *value = get_wmts_path_segment(path, 3 + i);
        if (value == NULL)
            return mc_error_create(pool, MC_ERR_NOT_FOUND, "the path lacks the dimension %s",
                                   tile->tileset->dimensions[i]->name);
        values[i] = wanted_value(tile->tileset->dimensions[i], value);
    }
    tile->values = values;
    *next = 3 + tile->tileset->dimension_count;
    return MC_OK;
}

static mc_error *
parse_rest(mc_request *request, const mc_call *call, mc_ctx *ctx, apr_pool_t *pool)
{
    const apr_array_header_t *path = mc_path_segments(call->path, pool);
    const char *version = get_wmts_path_segment(path, 0);
    if (version == NULL || strcmp(version, MC_WMTS_VERSION) != 0)
        return mc_error_create(pool, MC_ERR_NOT_FOUND, "WMTS version \"%s\" is not " MC_WMTS_VERSION,
                               version != NULL ? version : "");
    if (path->nelts == 2 && strcmp(get_wmts_path_segment(path, 1), "WMTSCapabilities.xml") == 0)
        return rest_capabilities(request, call, ctx, pool);
    mc_tile_request *tile = apr_pcalloc(pool, sizeof(*tile));
    mc_tile_stack stack = { .tiles = tile, .count = 1 };
    int next = 0, z, row, column;
    MC_TRY(rest_layer(tile, &next, call, path, pool));
    const char *set = get_wmts_path_segment(path, next);
    tile->link = set != NULL ? mc_tileset_link(tile->tileset, set) : NULL;
    if (tile->link == NULL)
        return not_found("TileMatrixSet", set, pool);
    if (path->nelts != next + 4 && path->nelts != next + 6)
        return mc_error_create(pool, MC_ERR_NOT_FOUND, "path \"%s\" has a wrong number of elements", call->path);
    bool info = path->nelts == next + 6;
    const char *extension = NULL;
    if (!mc_parse_int(&z, get_wmts_path_segment(path, next + 1), 0, INT32_MAX))
        return not_found("TileMatrix", get_wmts_path_segment(path, next + 1), pool);
    MC_TRY(check_wmts_level(tile, z, MC_ERR_NOT_FOUND, pool));
    if (!mc_parse_int(&row, get_wmts_path_segment(path, next + 2), 0, INT32_MAX))
        return not_found("TileRow", get_wmts_path_segment(path, next + 2), pool);
    if (!mc_path_number(&column, &extension, get_wmts_path_segment(path, next + 3), pool) ||
        (info && extension != NULL))
        return not_found("TileCol", get_wmts_path_segment(path, next + 3), pool);
    if (!info && call->service->strict &&
        (extension == NULL || strcmp(extension, mc_tileset_extension(tile->tileset)) != 0))
        return not_found("the extension", extension, pool);
    MC_TRY(mc_stack_place(&stack, z, column, row, true, pool));
    if (info)
        return rest_info(request, tile, get_wmts_path_segment(path, next + 4), get_wmts_path_segment(path, next + 5),
                         pool);
    request->kind = MC_REQUEST_TILE;
    request->u.tile = stack;
    return MC_OK;
}

static mc_error *
wmts_parse(mc_request *request, const mc_call *call, mc_ctx *ctx, apr_pool_t *pool)
{
    return mc_wmts_is_kvp(call) ? parse_kvp(request, call, ctx, pool) : parse_rest(request, call, ctx, pool);
}

const mc_service_ops mc_service_wmts = {
    "wmts",           "wmts",     wmts_keys,      "Web Map Tile Service 1.0.0, KVP and RESTful.",
    wmts_from_config, wmts_parse, mc_wmts_report,
};
