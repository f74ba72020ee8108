/* From a path to the service that it belongs to, and to a parsed request. */
#include <apr_strings.h>
#include <string.h>

#include "service/service_base.h"
#include "text/text.h"

/* Without leading slashes, runs of slashes as one. */
static const char *
collapse_slashes(const char *path, apr_pool_t *pool)
{
    while (*path == '/')
        path++;
    if (strstr(path, "//") == NULL)
        return path; /* almost always */
    char *copy = apr_pstrdup(pool, path);
    char *out = copy;
    for (const char *in = copy; *in != '\0'; in++)
        if (in[0] != '/' || in[1] != '/')
            *out++ = *in;
    *out = '\0';
    return copy;
}

/* The first whose prefix the path begins with; the empty prefix of WMS only where no other fits. */
static mc_service *
find_service(const mc_config *config, const char *path)
{
    mc_service *catch_all = NULL;
    for (int i = 0; i < config->services->nelts; i++) {
        mc_service *service = APR_ARRAY_IDX(config->services, i, mc_service *);
        const char *prefix = service->ops->prefix;
        if (*prefix == '\0')
            catch_all = service;
        else if (strncmp(path, prefix, strlen(prefix)) == 0)
            return service;
    }
    return catch_all;
}

/* "current" becomes a time before anything is looked up under the values that a client asks for. */
static mc_error *
settle_values(const char *const **values, const mc_tileset *tileset, mc_ctx *ctx, apr_pool_t *pool)
{
    const char **settled = NULL;
    for (int i = 0; *values != NULL && i < tileset->dimension_count; i++) {
        const char *value = (*values)[i];
        MC_TRY(mc_dimension_settle(&value, tileset->dimensions[i], tileset->name, ctx, pool));
        if (value == (*values)[i])
            continue;
        if (settled == NULL)
            settled = apr_pmemdup(pool, *values, sizeof(*settled) * (size_t)tileset->dimension_count);
        settled[i] = value;
    }
    if (settled != NULL)
        *values = settled;
    return MC_OK;
}

static mc_error *
settle_request(mc_request *request, mc_ctx *ctx, apr_pool_t *pool)
{
    if (request->kind == MC_REQUEST_TILE)
        for (int i = 0; i < request->u.tile.count; i++) {
            mc_tile_request *tile = &request->u.tile.tiles[i];
            MC_TRY(settle_values(&tile->values, tile->tileset, ctx, pool));
        }
    if (request->kind == MC_REQUEST_MAP)
        for (int i = 0; i < request->u.map.count; i++) {
            mc_map_layer *layer = &request->u.map.layers[i];
            MC_TRY(settle_values(&layer->values, layer->tileset, ctx, pool));
        }
    if (request->kind == MC_REQUEST_INFO && request->u.info.info.map.dimension_count > 0) {
        const mc_tileset *tileset = request->u.info.tileset;
        mc_render *wanted = &request->u.info.info.map;
        mc_dimension_value *values =
            apr_pmemdup(pool, wanted->dimensions, sizeof(*values) * (size_t)wanted->dimension_count);
        for (int i = 0; i < wanted->dimension_count; i++)
            MC_TRY(mc_dimension_settle(&values[i].value, tileset->dimensions[i], tileset->name, ctx, pool));
        wanted->dimensions = values;
    }
    return MC_OK;
}

void
mc_service_find(mc_call *call, const mc_config *config, const mc_http_request *http, apr_pool_t *pool)
{
    const char *path = collapse_slashes(http->path != NULL ? http->path : "", pool);
    *call = (mc_call){
        .config = config,
        .http = http,
        .path = path,
        .full_path = path,
        .params = mc_query_parse(http->query != NULL ? http->query : "", MC_PARAMS_MAX, pool),
        .base = mc_url_base(config, http, pool),
        .service = find_service(config, path),
    };
    if (call->service == NULL)
        return;
    path += strlen(call->service->ops->prefix);
    while (*path == '/')
        path++;
    call->path = path;
}

const char *
mc_service_methods(const mc_call *call, apr_pool_t *pool)
{
    if (call->service == NULL || call->service->ops->methods == NULL)
        return "GET, HEAD, POST";
    return call->service->ops->methods(call, pool);
}

/* Whether a comma list of methods names one. */
static bool
lists_method(const char *methods, const char *method)
{
    size_t size = strlen(method);
    for (const char *at = methods; *at != '\0'; at += strspn(at, ", ")) {
        size_t length = strcspn(at, ", ");
        if (length == size && strncmp(at, method, size) == 0)
            return true;
        at += length;
    }
    return false;
}

mc_error *
mc_service_dispatch(mc_call *call, mc_request *request, const mc_config *config, const mc_http_request *http,
                    mc_ctx *ctx, apr_pool_t *pool)
{
    mc_service_find(call, config, http, pool);
    *request = (mc_request){ 0 };
    if (config->services->nelts == 0)
        return mc_error_create(pool, MC_ERR_CONFIG, "no service is enabled");
    const char *methods = mc_service_methods(call, pool);
    if (http->method != NULL && !lists_method(methods, http->method))
        return mc_error_create(pool, MC_ERR_METHOD_NOT_ALLOWED, "the methods of this address are %s, OPTIONS", methods);
    if (call->service == NULL)
        return mc_service_absent(request, call, pool);
    MC_TRY(call->service->ops->parse(request, call, ctx, pool));
    return settle_request(request, ctx, pool);
}
