/* WMTS requests as key-value pairs (OGC 07-057r7, 8; OWS 1.1.0, 7). */
#include <apr_strings.h>
#include <string.h>

#include "service/wmts/wmts.h"
#include "text/text.h"

/* What GetTile and GetFeatureInfo read. */
typedef struct kvp_params {
    mc_tile_request tile;
    const char *layer, *version, *style, *format, *set, *info_format;
    int z, row, column, i, j;
} kvp_params;

static bool
contains_media_type(const apr_array_header_t *texts, const char *text)
{
    for (int i = 0; i < texts->nelts; i++)
        if (strcmp(APR_ARRAY_IDX(texts, i, const char *), text) == 0)
            return true;
    return false;
}

static mc_error *
find_kvp_layer(mc_param_reader *reader)
{
    mc_tile_request *tile = &((kvp_params *)reader->target)->tile;
    apr_pool_t *pool = reader->pool;
    tile->tileset = mc_call_tileset(reader->call, reader->text, pool);
    if (tile->tileset == NULL)
        return mc_param_refuse(reader);
    MC_TRY(mc_tileset_check_built(tile->tileset, pool));
    const char **values = mc_tileset_defaults(tile->tileset, pool);
    for (int i = 0; i < tile->tileset->dimension_count; i++) {
        const mc_dimension *dimension = tile->tileset->dimensions[i];
        values[i] = mc_wmts_dimension_value(dimension, mc_param(reader->call, dimension->name));
    }
    tile->values = values;
    return MC_OK;
}

/* Other versions of the protocol are answered as this one, as in MapCache, unless the service is strict. */
static mc_error *
check_kvp_version(mc_param_reader *reader)
{
    if (reader->text == NULL || strcmp(reader->text, MC_WMTS_VERSION) == 0)
        return MC_OK;
    return !reader->call->service->strict && mc_is_version(reader->text) ? MC_OK : mc_param_refuse(reader);
}

static mc_error *
find_kvp_style(mc_param_reader *reader)
{
    return mc_wmts_find_style(&((kvp_params *)reader->target)->tile, reader);
}

/* Tiles have the type that they have, whatever a client asks for, as in MapCache, unless the service is strict. */
static mc_error *
check_kvp_format(mc_param_reader *reader)
{
    const mc_tileset *tileset = ((kvp_params *)reader->target)->tile.tileset;
    if (reader->text == NULL || !reader->call->service->strict)
        return MC_OK;
    return contains_media_type(mc_wmts_formats(tileset, reader->pool), reader->text) ? MC_OK : mc_param_refuse(reader);
}

static mc_error *
find_kvp_set(mc_param_reader *reader)
{
    mc_tile_request *tile = &((kvp_params *)reader->target)->tile;
    tile->link = mc_tileset_link(tile->tileset, reader->text);
    return tile->link == NULL ? mc_param_refuse(reader) : MC_OK;
}

static mc_error *
check_kvp_level(mc_param_reader *reader)
{
    const kvp_params *params = reader->target;
    return mc_wmts_check_level(&params->tile, params->z, MC_ERR_INVALID_PARAMETER, reader->pool);
}

#define KVP_REFUSAL "{name} \"{value}\" is not valid here"

const mc_param_row mc_wmts_kvp_tile_params[] = {
    MC_PARAM_TEXT("layer", offsetof(kvp_params, layer), "The name of a tileset.",
                  .flags = MC_PARAM_REQUIRED | MC_PARAM_EMPTY, .locator = "layer"),
    MC_PARAM_STEP(find_kvp_layer),
    MC_PARAM_TEXT("version", offsetof(kvp_params, version),
                  "The version of the protocol, " MC_WMTS_VERSION "; any version where the service is not strict.",
                  .flags = MC_PARAM_STRICT | MC_PARAM_EMPTY, .locator = "version"),
    MC_PARAM_STEP(check_kvp_version),
    MC_PARAM_TEXT(
        "style", offsetof(kvp_params, style), "The style of the layer: `default`, or the name of one of its palettes.",
        .flags = MC_PARAM_STRICT | MC_PARAM_EMPTY, .locator = "style", .refusal = "style \"{value}\" is not known"),
    MC_PARAM_STEP(find_kvp_style),
    MC_PARAM_TEXT(
        "format", offsetof(kvp_params, format),
        "The media type of the layer's tiles. Where the service is not strict, a type that the layer does not have is "
        "passed over, and without one Accept chooses from the <formats> of the tileset.",
        .flags = MC_PARAM_STRICT | MC_PARAM_EMPTY, .locator = "format"),
    MC_PARAM_STEP(check_kvp_format),
    MC_PARAM_TEXT("TileMatrixSet", offsetof(kvp_params, set), "The name of a grid of the tileset.",
                  .flags = MC_PARAM_REQUIRED | MC_PARAM_EMPTY, .locator = "TileMatrixSet"),
    MC_PARAM_STEP(find_kvp_set),
    MC_PARAM_INTEGER("TileMatrix", offsetof(kvp_params, z), "The level, 0 for the coarsest.",
                     .flags = MC_PARAM_REQUIRED | MC_PARAM_EMPTY, .locator = "TileMatrix", .refusal = KVP_REFUSAL),
    MC_PARAM_STEP(check_kvp_level),
    MC_PARAM_INTEGER("TileRow", offsetof(kvp_params, row), "The row, 0 at the top.",
                     .flags = MC_PARAM_REQUIRED | MC_PARAM_EMPTY, .locator = "TileRow", .refusal = KVP_REFUSAL),
    MC_PARAM_INTEGER("TileCol", offsetof(kvp_params, column), "The column, 0 on the left.",
                     .flags = MC_PARAM_REQUIRED | MC_PARAM_EMPTY, .locator = "TileCol", .refusal = KVP_REFUSAL),
    MC_PARAM_END,
};

static mc_error *
read_kvp_tile(mc_tile_stack *stack, kvp_params *params, const mc_call *call, apr_pool_t *pool)
{
    MC_TRY(mc_params_read(params, mc_wmts_kvp_tile_params, call, pool));
    mc_tile_request *tile = apr_pmemdup(pool, &params->tile, sizeof(*tile));
    *stack = (mc_tile_stack){ .tiles = tile, .count = 1 };
    return mc_stack_place(stack, params->z, params->column, params->row, true, pool);
}

static mc_error *
choose_kvp_format(mc_tile_stack *stack, const char *mime, const mc_call *call, apr_pool_t *pool)
{
    MC_TRY(mc_stack_choose_type(stack, mime, call, pool));
    if (call->service->strict)
        stack->exact = mc_wmts_format(stack->tiles[0].tileset, mime, call);
    return MC_OK;
}

static mc_error *
check_kvp_info_format(mc_param_reader *reader)
{
    const mc_tileset *tileset = ((kvp_params *)reader->target)->tile.tileset;
    const apr_array_header_t *formats = mc_tileset_info_formats(tileset);
    if (formats == NULL)
        return mc_error_located(reader->pool, MC_ERR_OPERATION_NOT_SUPPORTED, "GetFeatureInfo",
                                "layer %s has no feature info", tileset->name);
    return contains_media_type(formats, reader->text) ? MC_OK : mc_param_refuse(reader);
}

const mc_param_row mc_wmts_kvp_info_params[] = {
    MC_PARAM_INTEGER("I", offsetof(kvp_params, i), "The pixel's column in the tile, 0 on the left.",
                     .flags = MC_PARAM_REQUIRED | MC_PARAM_EMPTY, .locator = "I", .refusal = KVP_REFUSAL),
    MC_PARAM_INTEGER("J", offsetof(kvp_params, j), "The pixel's row in the tile, 0 at the top.",
                     .flags = MC_PARAM_REQUIRED | MC_PARAM_EMPTY, .locator = "J", .refusal = KVP_REFUSAL),
    MC_PARAM_TEXT("infoformat", offsetof(kvp_params, info_format),
                  "The media type of the answer: one that the layer's source offers.",
                  .flags = MC_PARAM_REQUIRED | MC_PARAM_EMPTY, .locator = "infoformat"),
    MC_PARAM_STEP(check_kvp_info_format),
    MC_PARAM_END,
};

static mc_error *
read_kvp_info(mc_request *request, const mc_call *call, apr_pool_t *pool)
{
    mc_tile_stack stack;
    kvp_params params = { 0 };
    MC_TRY(read_kvp_tile(&stack, &params, call, pool));
    MC_TRY(mc_params_read(&params, mc_wmts_kvp_info_params, call, pool));
    return mc_wmts_info_request(request, &stack.tiles[0], params.i, params.j, params.info_format, pool);
}

/* OWS 1.1.0 7.3.2: the first of the client's versions that we have; errors bear no locator. */
static mc_error *
check_accepted_versions(mc_param_reader *reader)
{
    bool offered = reader->text == NULL;
    char *rest = offered ? NULL : apr_pstrdup(reader->pool, reader->text);
    for (char *version = strsep(&rest, ","); version != NULL; version = strsep(&rest, ","))
        offered |= strcmp(version, MC_WMTS_VERSION) == 0;
    return offered ? MC_OK : mc_param_refuse(reader);
}

const mc_param_row mc_wmts_kvp_capabilities_params[] = {
    MC_PARAM_LIST("ACCEPTVERSIONS", offsetof(mc_capabilities_params, version),
                  "Versions of the protocol that the client knows.", .flags = MC_PARAM_EMPTY,
                  .kind = MC_ERR_VERSION_NEGOTIATION,
                  .refusal = "none of the versions {value} is offered, only " MC_WMTS_VERSION),
    MC_PARAM_STEP(check_accepted_versions),
    MC_PARAM_UPDATE_SEQUENCE,
    MC_PARAM_END,
};

typedef struct kvp_request {
    int service, operation;
} kvp_request;

enum { GET_CAPABILITIES, GET_TILE, GET_FEATURE_INFO };

const mc_param_row mc_wmts_kvp_request_params[] = {
    MC_PARAM_CHOICE("service", offsetof(kvp_request, service), "WMTS", "The protocol.",
                    .flags = MC_PARAM_REQUIRED | MC_PARAM_EMPTY | MC_PARAM_ANY_CASE, .locator = "service"),
    MC_PARAM_CHOICE("request", offsetof(kvp_request, operation), "GetCapabilities|GetTile|GetFeatureInfo",
                    "The operation.", .flags = MC_PARAM_REQUIRED | MC_PARAM_EMPTY | MC_PARAM_ANY_CASE,
                    .locator = "request"),
    MC_PARAM_END,
};

mc_error *
mc_wmts_parse_kvp(mc_request *request, const mc_call *call, mc_ctx *ctx, apr_pool_t *pool)
{
    kvp_request asked;
    kvp_params params = { 0 };
    mc_capabilities_params capabilities = { 0 };
    MC_TRY(mc_params_read(&asked, mc_wmts_kvp_request_params, call, pool));
    switch (asked.operation) {
    case GET_TILE:
        request->kind = MC_REQUEST_TILE;
        MC_TRY(read_kvp_tile(&request->u.tile, &params, call, pool));
        return choose_kvp_format(&request->u.tile, params.format, call, pool);
    case GET_FEATURE_INFO:
        return read_kvp_info(request, call, pool);
    default:
        MC_TRY(mc_params_read(&capabilities, mc_wmts_kvp_capabilities_params, call, pool));
        return mc_wmts_capabilities(request, &capabilities, "application/xml", call, ctx, pool);
    }
}
