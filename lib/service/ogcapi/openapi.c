/* The definition of the API (OpenAPI 3.0.3), from the tables that read requests. */
#include <apr_strings.h>
#include <string.h>

#include "service/ogcapi/map.h"

enum { IDS_LISTED = 100 }; /* collections that the definition names one by one */

static void
write_choices(mc_json_writer *json, const char *choices, apr_pool_t *pool)
{
    mc_json_open_array(json, "enum");
    for (;; choices++) {
        size_t size = strcspn(choices, "|");
        mc_json_string(json, NULL, apr_pstrmemdup(pool, choices, size));
        choices += size;
        if (*choices == '\0')
            break;
    }
    mc_json_close(json);
}

static void
write_collection_ids(mc_json_writer *json, const mc_call *call)
{
    const apr_array_header_t *tilesets = call->config->tilesets;
    if (tilesets->nelts == 0 || tilesets->nelts > IDS_LISTED)
        return;
    mc_json_open_array(json, "enum");
    for (int i = 0; i < tilesets->nelts; i++) {
        const mc_tileset *tileset = APR_ARRAY_IDX(tilesets, i, const mc_tileset *);
        if (mc_ogcapi_offers(tileset) && tileset->not_built == NULL)
            mc_json_string(json, NULL, tileset->name);
    }
    mc_json_close(json);
}

static void
write_number_schema(mc_json_writer *json, const mc_param_row *row)
{
    bool whole = row->type == MC_PARAM_IS_INTEGER;
    mc_json_string(json, "type", whole ? "integer" : "number");
    mc_json_digits(json, "minimum", row->min, 15);
    if (!whole && !(row->flags & MC_PARAM_FROM_MIN))
        mc_json_boolean(json, "exclusiveMinimum", true);
    if (row->max > row->min)
        mc_json_digits(json, "maximum", row->max, 15);
}

static void
write_box_schema(mc_json_writer *json)
{
    mc_json_string(json, "type", "array");
    mc_json_integer(json, "minItems", 4);
    mc_json_integer(json, "maxItems", 4);
    mc_json_open_object(json, "items");
    mc_json_string(json, "type", "number");
    mc_json_close(json);
}

static void
write_row_schema(mc_json_writer *json, const mc_param_row *row, const mc_ogcapi_ask *ask)
{
    mc_json_open_object(json, "schema");
    switch (row->type) {
    case MC_PARAM_IS_INTEGER:
    case MC_PARAM_IS_NUMBER:
        write_number_schema(json, row);
        break;
    case MC_PARAM_IS_BOOLEAN:
        mc_json_string(json, "type", "boolean");
        break;
    case MC_PARAM_IS_BOX:
        write_box_schema(json);
        break;
    default:
        mc_json_string(json, "type", "string");
        if (row->type == MC_PARAM_IS_TEXT && row->max > 0)
            mc_json_integer(json, "maxLength", (int)row->max);
        if (row->type == MC_PARAM_IS_CHOICE)
            write_choices(json, row->choices, ask->pool);
        if (strcmp(row->name, "collectionId") == 0)
            write_collection_ids(json, ask->call);
    }
    mc_json_close(json);
}

static void
write_row_parameter(mc_json_writer *json, const mc_param_row *row, bool in_path, const mc_ogcapi_ask *ask)
{
    mc_json_open_object(json, NULL);
    mc_json_string(json, "name", row->name);
    mc_json_string(json, "in", in_path ? "path" : "query");
    mc_json_string(json, "description", row->help);
    mc_json_boolean(json, "required", in_path || (row->flags & MC_PARAM_REQUIRED));
    if (!in_path && row->type == MC_PARAM_IS_BOX) {
        mc_json_string(json, "style", "form");
        mc_json_boolean(json, "explode", false);
    }
    write_row_schema(json, row, ask);
    mc_json_close(json);
}

static void
write_operation_parameters(mc_json_writer *json, const mc_operation *operation, const mc_ogcapi_ask *ask)
{
    bool has_variables = strchr(operation->address, '{') != NULL;
    mc_json_open_array(json, "parameters");
    for (size_t i = 0; i < sizeof(operation->rows) / sizeof(operation->rows[0]); i++)
        for (const mc_param_row *row = operation->rows[i]; row != NULL && row->type != MC_PARAM_END_OF_TABLE; row++)
            if (row->type != MC_PARAM_IS_STEP && row->type != MC_PARAM_IS_REFUSED)
                write_row_parameter(json, row, has_variables && i == 0, ask);
    mc_json_close(json);
}

/* The media type of an answer, with what its body is. */
static void
write_content(mc_json_writer *json, const char *mime, bool is_object)
{
    mc_json_open_object(json, mime);
    mc_json_open_object(json, "schema");
    mc_json_string(json, "type", is_object ? "object" : "string");
    if (!is_object && strncmp(mime, "text/", 5) != 0)
        mc_json_string(json, "format", "binary");
    mc_json_close(json);
    mc_json_close(json);
}

static void
write_success(mc_json_writer *json, mc_ogcapi_kind media)
{
    mc_json_open_object(json, "200");
    mc_json_string(json, "description", "What was asked for.");
    mc_json_open_object(json, "content");
    if (media == MC_OGCAPI_IMAGE) {
        write_content(json, "image/png", false);
        write_content(json, "image/jpeg", false);
        write_content(json, "image/webp", false);
    } else if (media == MC_OGCAPI_STYLE) {
        write_content(json, MC_OGCAPI_MAPBOX, true);
        write_content(json, MC_OGCAPI_SLD10, false);
        write_content(json, MC_OGCAPI_SLD11, false);
    } else if (media == MC_OGCAPI_VECTOR) {
        write_content(json, MC_OGCAPI_MVT, false);
    } else {
        write_content(json, media == MC_OGCAPI_DEFINITION ? MC_OGCAPI_OPENAPI : "application/json", true);
        write_content(json, "text/html", false);
    }
    mc_json_close(json);
    mc_json_close(json);
}

static void
write_responses(mc_json_writer *json, mc_ogcapi_kind media)
{
    static const struct {
        const char *status, *meaning;
    } problems[] = {
        { "400", "A parameter has a value that cannot be used." },
        { "404", "There is no such thing." },
        { "406", "None of the accepted media types is to be had." },
        { "500", "The server has failed." },
        { "503", "The server has too much to do, or waits for another one." },
    };
    mc_json_open_object(json, "responses");
    write_success(json, media);
    for (size_t i = 0; i < sizeof(problems) / sizeof(problems[0]); i++) {
        mc_json_open_object(json, problems[i].status);
        mc_json_string(json, "description", problems[i].meaning);
        mc_json_open_object(json, "content");
        mc_json_open_object(json, "application/problem+json");
        mc_json_open_object(json, "schema");
        mc_json_string(json, "$ref", "#/components/schemas/problem");
        for (int j = 0; j < 4; j++)
            mc_json_close(json);
    }
    mc_json_close(json);
}

static void
write_definition_path(mc_json_writer *json, const mc_operation *operation, const mc_ogcapi_resource *resource,
                      const mc_ogcapi_ask *ask)
{
    const char *path = operation->address + strlen("/ogcapi");
    mc_json_open_object(json, *path == '\0' ? "/" : path);
    mc_json_open_object(json, "get");
    mc_json_string(json, "operationId", resource->id);
    mc_json_string(json, "summary", operation->name);
    write_operation_parameters(json, operation, ask);
    write_responses(json, resource->media);
    mc_json_close(json);
    mc_json_close(json);
}

/* RFC 7807, 3.1. */
static void
write_components(mc_json_writer *json)
{
    static const char *const texts[] = { "type", "title", "detail", "code", "parameter" };
    mc_json_open_object(json, "components");
    mc_json_open_object(json, "schemas");
    mc_json_open_object(json, "problem");
    mc_json_string(json, "type", "object");
    mc_json_open_object(json, "properties");
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        mc_json_open_object(json, texts[i]);
        mc_json_string(json, "type", "string");
        mc_json_close(json);
    }
    mc_json_open_object(json, "status");
    mc_json_string(json, "type", "integer");
    for (int i = 0; i < 5; i++)
        mc_json_close(json);
}

/* OGC 20-058, 11.6. */
static void
write_map_limits(mc_json_writer *json, const mc_ogcapi_ask *ask)
{
    mc_json_open_object(json, "x-OGC-limits");
    mc_json_open_object(json, "maps");
    mc_json_integer(json, "maxWidth", mc_ogcapi_map_side_limit(ask->call));
    mc_json_integer(json, "maxHeight", mc_ogcapi_map_side_limit(ask->call));
    mc_json_integer(json, "maxPixels", mc_ogcapi_map_pixel_limit(ask->call));
    mc_json_close(json);
    mc_json_close(json);
}

static void
write_info(mc_json_writer *json, const mc_ogcapi_ask *ask)
{
    const mc_metadata *metadata = ask->call->config->metadata;
    const char *title = mc_meta(metadata, "title");
    mc_json_string(json, "openapi", "3.0.3");
    mc_json_open_object(json, "info");
    mc_json_string(json, "title", title != NULL && *title != '\0' ? title : "mapcache");
    mc_ogcapi_member(json, "description", mc_meta(metadata, "abstract"));
    mc_json_string(json, "version", MC_VERSION);
    write_map_limits(json, ask);
    mc_json_close(json);
    mc_json_open_array(json, "servers");
    mc_json_open_object(json, NULL);
    mc_json_string(json, "url", mc_ogcapi_url(ask, "%s", ""));
    mc_json_close(json);
    mc_json_close(json);
}

mc_error *
mc_ogcapi_definition(mc_ogcapi_ask *ask)
{
    mc_json_writer *json = mc_json_create(MC_JSON_DENSE, ask->pool);
    ask->title = "Definition of the API";
    mc_json_open_object(json, NULL);
    write_info(json, ask);
    mc_json_open_object(json, "paths");
    for (int i = 0; ask->operations[i].name != NULL; i++)
        if (ask->resources[i].id != NULL)
            write_definition_path(json, &ask->operations[i], &ask->resources[i], ask);
    mc_json_close(json);
    write_components(json);
    mc_json_close(json);
    return mc_ogcapi_respond(ask, json);
}
