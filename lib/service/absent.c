/* Addresses below which nothing is: what a client hears then, and what the root of the alias answers
 * (docs/reference/services.md 1). */
#include <apr_strings.h>
#include <string.h>
#include <strings.h>

#include "service/service_base.h"
#include "text/text.h"

enum { SHOWN = 100 }; /* bytes of a path that are repeated */

/* "wms at /?SERVICE=WMS, wmts at /wmts": addresses below the alias. Services for operators are left out. */
static const char *
list_services(const mc_call *call, apr_pool_t *pool)
{
    const char *list = "";
    for (int i = 0; i < call->config->services->nelts; i++) {
        const mc_service_ops *ops = APR_ARRAY_IDX(call->config->services, i, const mc_service *)->ops;
        if (!ops->unlisted)
            list = apr_pstrcat(pool, list, *list == '\0' ? "" : ", ", ops->type, " at /",
                               *ops->prefix == '\0' ? "?SERVICE=WMS" : ops->prefix, NULL);
    }
    return *list == '\0' ? "" : apr_pstrcat(pool, "; there is: ", list, NULL);
}

/* The type of the service that the request means and that the configuration does not offer, or NULL. */
static const char *
find_disabled_type(const mc_call *call)
{
    const char *path = call->full_path;
    for (const mc_service_ops *const *kind = mc_service_kinds; *kind != NULL; kind++) {
        if (mc_path_has_prefix(path, (*kind)->prefix))
            return mc_call_service(call, (*kind)->type) == NULL ? (*kind)->type : NULL;
    }
    const char *service = mc_param(call, "SERVICE");
    bool wms = service != NULL ? strcasecmp(service, "WMS") == 0 : mc_param(call, "REQUEST") != NULL;
    return wms && mc_call_service(call, "wms") == NULL ? "wms" : NULL;
}

static bool
is_root_asked(const mc_call *call)
{
    const mc_http_request *http = call->http;
    bool reads = http->method == NULL || strcmp(http->method, "GET") == 0 || strcmp(http->method, "HEAD") == 0;
    return reads && *call->full_path == '\0' && (http->query == NULL || *http->query == '\0');
}

/*
 * Where the pages are, as the client reaches them: a proxy in front may speak https or know the alias by another name,
 * and what a client says of its host leads nobody anywhere. From "alias/" it is one step; from "alias" the alias has to
 * be named.
 */
static const char *
find_pages(const mc_call *call, apr_pool_t *pool)
{
    if (call->http->path != NULL && *call->http->path == '/')
        return "demo/";
    const char *base = call->http->base_url != NULL ? call->http->base_url : "", *host = strstr(base, "://");
    const char *path = host == NULL ? base : strchr(host + 3, '/');
    return apr_pstrcat(pool, path != NULL ? path : "", "/demo/", NULL);
}

static mc_error *
answer_root(mc_request *request, const mc_call *call, apr_pool_t *pool)
{
    request->kind = MC_REQUEST_DOCUMENT;
    request->u.document = (mc_document){ .mime = "text/plain; charset=utf-8" };
    if (mc_call_service(call, "demo") != NULL) {
        request->u.document.location = find_pages(call, pool);
        return MC_OK;
    }
    const char *text = apr_pstrcat(pool, "This is mapcache", list_services(call, pool), "\n", NULL);
    request->u.document.text = mc_buf_attach(mc_buf_copy(text, strlen(text)), pool);
    return MC_OK;
}

bool
mc_service_is_addressed(const mc_call *call)
{
    const char *service = mc_param(call, "SERVICE");
    if (service == NULL && mc_param(call, "REQUEST") == NULL)
        return *call->full_path == '\0' && !is_root_asked(call);
    return service == NULL || strcasecmp(service, "WMS") == 0 || find_disabled_type(call) == NULL;
}

mc_error *
mc_service_absent(mc_request *request, const mc_call *call, apr_pool_t *pool)
{
    if (is_root_asked(call))
        return answer_root(request, call, pool);
    const char *disabled = find_disabled_type(call);
    if (disabled != NULL)
        return mc_error_create(pool, MC_ERR_NOT_FOUND, "the service %s is not enabled here%s", disabled,
                               list_services(call, pool));
    return mc_error_create(pool, MC_ERR_NOT_FOUND, "no service answers to the path \"%s\"%s",
                           mc_message_text(call->full_path, SHOWN, pool), list_services(call, pool));
}
