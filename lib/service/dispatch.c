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
        else if (mc_path_has_prefix(path, prefix))
            return service;
    }
    return catch_all;
}

/*
 * Bytes below the blank are in no value that a service knows, and end or break what values are written into. A line
 * break or a tab may stand in what a forwarding rule hands on (a filter of WFS): that is for the service to decide.
 */
static mc_error *
check_controls(mc_call *call, apr_pool_t *pool)
{
    const char *query = call->http->query == NULL ? "" : call->http->query, *name;
    if (mc_text_has_controls(call->full_path))
        return mc_error_create(pool, MC_ERR_INVALID_PARAMETER, "the path holds a control character");
    if (!mc_query_has_controls(&name, query, "", pool))
        return MC_OK;
    const char *shown = mc_message_text(name, 100, pool);
    mc_error *error =
        mc_error_located(pool, MC_ERR_INVALID_PARAMETER, shown, "the parameter %s holds a control character", shown);
    if (!call->service->ops->forwards || mc_query_has_controls(&name, query, "\t\r\n", pool))
        return error;
    call->refused = error;
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
    MC_TRY(check_controls(call, pool));
    MC_TRY(call->service->ops->parse(request, call, ctx, pool));
    return mc_request_settle(request, call, ctx, pool);
}
