/*
 * OGC API: Common (OGC 19-072, 20-024), Tiles (OGC 20-057), Maps (OGC 20-058): which resource an address is of, its
 * settings, and errors as problem details (RFC 7807).
 */
#include "service/ogcapi/operations.h"

#include <apr_strings.h>
#include <string.h>

#include "text/text.h"

static const mc_key ogcapi_keys[] = { MC_SERVICE_KEYS(mc_ogcapi), MC_KEY_END };

static mc_service *
ogcapi_from_config(const mc_service_ops *ops, const mc_node *node, mc_build *build)
{
    mc_ogcapi *service = apr_pcalloc(build->pool, sizeof(*service));
    service->webp = apr_hash_get(build->formats, "WEBP", APR_HASH_KEY_STRING);
    return mc_service_read(&service->base, ops, node, build) ? &service->base.service : NULL;
}

/* --- requests --------------------------------------------------------------------------------------------------- */

/* Whether a path below the prefix is of an address; *values: what stands where the address has variables, in order. */
static bool
match_address(const char *values[MC_OGCAPI_VARIABLES], size_t sizes[MC_OGCAPI_VARIABLES], const char *address,
              const char *path)
{
    int count = 0;
    address += strlen("/ogcapi");
    while (*address == '/') {
        address++;
        size_t size = strcspn(path, "/"), length = strcspn(address, "/");
        if (size == 0)
            return false;
        if (*address == '{') {
            values[count] = path;
            sizes[count++] = size;
        } else if (size != length || strncmp(address, path, size) != 0) {
            return false;
        }
        address += length;
        path += size;
        if (*path == '/' && path[1] != '\0')
            path++;
        else if (*address != '\0')
            return false;
    }
    return *path == '\0' || strcmp(path, "/") == 0;
}

/* The operation of a path, and the values of its variables as `elements`. */
static int
find_ogcapi_operation(apr_array_header_t *elements, const char *path)
{
    const char *values[MC_OGCAPI_VARIABLES] = { NULL };
    size_t sizes[MC_OGCAPI_VARIABLES] = { 0 };
    for (int i = 0; mc_ogcapi_operations[i].name != NULL; i++) {
        const char *address = mc_ogcapi_operations[i].address;
        if (!match_address(values, sizes, address, path))
            continue;
        for (int j = 0; (address = strchr(address, '{')) != NULL; j++, address++)
            APR_ARRAY_PUSH(elements, const char *) = apr_pstrmemdup(elements->pool, values[j], sizes[j]);
        return i;
    }
    return -1;
}

static mc_error *
read_ogcapi_rows(mc_ogcapi_ask *ask, const apr_array_header_t *elements)
{
    const mc_operation *operation = ask->operation;
    int first = 0, next = 0;
    if (elements->nelts > 0)
        MC_TRY(mc_params_read_path(ask, operation->rows[first++], ask->call, elements, &next, ask->pool));
    for (size_t i = (size_t)first; i < sizeof(operation->rows) / sizeof(operation->rows[0]); i++)
        if (operation->rows[i] != NULL)
            MC_TRY(mc_params_read(ask, operation->rows[i], ask->call, ask->pool));
    return MC_OK;
}

static mc_error *
ogcapi_parse(mc_request *request, const mc_call *call, mc_ctx *ctx, apr_pool_t *pool)
{
    apr_array_header_t *elements = apr_array_make(pool, MC_OGCAPI_VARIABLES, sizeof(const char *));
    int found = find_ogcapi_operation(elements, call->path);
    if (found < 0)
        return mc_error_create(pool, MC_ERR_NOT_FOUND,
                               "there is nothing at \"%s\"; /ogcapi has links to all that there is",
                               mc_message_text(call->full_path, 100, pool));
    mc_ogcapi_ask ask = {
        .request = request,
        .call = call,
        .ctx = ctx,
        .pool = pool,
        .operation = &mc_ogcapi_operations[found],
        .operations = mc_ogcapi_operations,
        .resources = mc_ogcapi_resources,
        .json_mime = mc_ogcapi_resources[found].media == MC_OGCAPI_DEFINITION ? MC_OGCAPI_OPENAPI : "application/json",
        .image = -1,
        .sheet = -1,
        .map = { .transparent = -1, .void_transparent = -1 },
    };
    MC_TRY(read_ogcapi_rows(&ask, elements));
    return mc_ogcapi_resources[found].answer(&ask);
}

static const char *
ogcapi_methods(const mc_call *call, apr_pool_t *pool)
{
    (void)call;
    (void)pool;
    return "GET, HEAD";
}

/* --- errors ----------------------------------------------------------------------------------------------------- */

static const char *
problem_title(int status)
{
    static const struct {
        int status;
        const char *title;
    } titles[] = {
        { 400, "Bad Request" },        { 403, "Forbidden" },      { 404, "Not Found" },
        { 405, "Method Not Allowed" }, { 406, "Not Acceptable" }, { 413, "Content Too Large" },
        { 501, "Not Implemented" },    { 502, "Bad Gateway" },    { 503, "Service Unavailable" },
        { 504, "Gateway Timeout" },
    };
    for (size_t i = 0; i < sizeof(titles) / sizeof(titles[0]); i++)
        if (titles[i].status == status)
            return titles[i].title;
    return "Internal Server Error";
}

/* Values that a dimension does not have are outside of its range: 404 (OGC 20-058, 15.3), as 204 has no words. */
static void
ogcapi_report(mc_document *body, int *status, const mc_error *error, const mc_call *call, apr_pool_t *pool)
{
    (void)call;
    mc_json_writer *json = mc_json_create(MC_JSON_DENSE, pool);
    if (error->kind == MC_ERR_INVALID_DIMENSION)
        *status = 404;
    mc_json_open_object(json, NULL);
    mc_json_string(json, "type", "about:blank");
    mc_json_string(json, "title", problem_title(*status));
    mc_json_integer(json, "status", *status);
    mc_json_string(json, "detail", error->message);
    mc_ogcapi_member(json, "code", mc_error_code(error->kind));
    mc_ogcapi_member(json, "parameter", error->locator);
    mc_json_close(json);
    mc_json_space(json, "\n");
    if (mc_json_finish(&body->text, json) == MC_OK)
        body->mime = "application/problem+json";
}

const mc_service_ops mc_service_ogcapi = {
    MC_KIND("ogcapi", ogcapi_keys, ogcapi_from_config, "OGC API: Common, Tiles, Maps, Styles."),
    .prefix = "ogcapi",
    .parse = ogcapi_parse,
    .report = ogcapi_report,
    .methods = ogcapi_methods,
    .operations = mc_ogcapi_operations,
};
