/* Addresses of this server as they are written into documents. */
#include <apr_strings.h>
#include <string.h>

#include "service/service_base.h"
#include "text/text.h"

const char *
mc_url_base(const mc_config *config, const mc_http_request *http, apr_pool_t *pool)
{
    const char *url = mc_meta(config->metadata, "url");
    if (url == NULL || *url == '\0')
        url = http->base_url != NULL ? http->base_url : "";
    size_t size = strlen(url);
    return size > 0 && url[size - 1] == '/' ? url : apr_pstrcat(pool, url, "/", NULL);
}

const char *
mc_url_wms(const mc_call *call, apr_pool_t *pool)
{
    const char *configured = mc_meta(call->config->metadata, "url");
    if (configured != NULL && *configured != '\0')
        return apr_pstrcat(pool, call->base, "?", NULL);
    /* an alias is written without the slash that its paths begin with; that of a whole host has no other path */
    const char *host = strstr(call->base, "://");
    const char *slash = strchr(host == NULL ? call->base : host + 3, '/');
    if (slash == NULL || slash[1] == '\0')
        return apr_pstrcat(pool, call->base, "?", NULL);
    return apr_pstrcat(pool, apr_pstrndup(pool, call->base, strlen(call->base) - 1), "?", NULL);
}

const char *
mc_url_clean(const char *url, apr_pool_t *pool)
{
    return mc_url_encode(url, ":/?#&=+,;@!$'()*%", true, false, pool);
}

const char *
mc_url_segment(const char *text, apr_pool_t *pool)
{
    return mc_url_encode(text, "@:;,=()!*'$", true, false, pool);
}

bool
mc_path_has_prefix(const char *path, const char *prefix)
{
    size_t size = strlen(prefix);
    return size > 0 && strncmp(path, prefix, size) == 0 && (path[size] == '\0' || path[size] == '/');
}
