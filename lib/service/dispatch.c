/* From a path to the service that it belongs to, and to a parsed request. */
#include <apr_strings.h>
#include <string.h>

#include "base/text.h"
#include "service/service_base.h"

/* Without leading slashes, runs of slashes as one. */
static const char *
collapse_slashes(const char *path, apr_pool_t *pool)
{
    while (*path == '/')
        path++;
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

mc_error *
mc_service_dispatch(mc_call *call, mc_request *request, const mc_config *config, const mc_http_request *http,
                    mc_ctx *ctx, apr_pool_t *pool)
{
    const char *path = collapse_slashes(http->path != NULL ? http->path : "", pool);
    *call = (mc_call){
        .config = config,
        .http = http,
        .path = path,
        .full_path = path,
        .params = mc_query_parse(http->query != NULL ? http->query : "", MC_PARAMS_MAX, pool),
        .base = mc_url_base(config, http, pool),
    };
    *request = (mc_request){ 0 };
    if (config->services->nelts == 0)
        return mc_error_create(pool, MC_ERR_CONFIG, "no service is enabled");
    call->service = find_service(config, path);
    if (call->service == NULL)
        return mc_error_create(pool, MC_ERR_NOT_FOUND, "no service answers to the path \"%s\"", path);
    path += strlen(call->service->ops->prefix);
    while (*path == '/')
        path++;
    call->path = path;
    return call->service->ops->parse(request, call, ctx, pool);
}

const mc_service *
mc_call_service(const mc_call *call, const char *type)
{
    for (int i = 0; i < call->config->services->nelts; i++) {
        const mc_service *service = APR_ARRAY_IDX(call->config->services, i, mc_service *);
        if (strcmp(service->ops->type, type) == 0)
            return service;
    }
    return NULL;
}

const char *
mc_param(const mc_call *call, const char *name)
{
    return apr_table_get(call->params, name);
}

mc_error *
mc_request_document(mc_request *request, mc_xml *xml, const char *mime)
{
    request->kind = MC_REQUEST_DOCUMENT;
    request->u.document.mime = mime;
    return mc_xml_finish(&request->u.document.text, xml);
}

const char *
mc_update_sequence(const mc_call *call, apr_pool_t *pool)
{
    apr_time_t mtime = call->config->mtime;
    return mtime > 0 ? apr_psprintf(pool, "%" APR_INT64_T_FMT, (apr_int64_t)apr_time_sec(mtime)) : NULL;
}

mc_error *
mc_update_sequence_check(bool *current, const mc_call *call, apr_pool_t *pool)
{
    *current = false;
    const char *text = mc_param(call, "UPDATESEQUENCE");
    if (text == NULL || *text == '\0' || call->config->mtime <= 0)
        return MC_OK;
    int64_t theirs;
    int64_t ours = apr_time_sec(call->config->mtime);
    if (!mc_parse_int64(&theirs, text, INT64_MIN, INT64_MAX) || theirs > ours)
        return mc_error_located(pool, MC_ERR_INVALID_UPDATE_SEQUENCE, "updateSequence",
                                "UPDATESEQUENCE %s is not one of this server's", text);
    *current = theirs == ours;
    return MC_OK;
}
