#include "http/http_address.h"

#include <apr_strings.h>
#include <string.h>
#include <strings.h>

/* Behind "://"; the address itself where there is none. */
static const char *
authority_of(const char *url)
{
    const char *scheme = strstr(url, "://");
    return scheme == NULL ? url : scheme + 3;
}

const char *
mc_http_path_of(const char *url)
{
    const char *host = authority_of(url);
    return host + strcspn(host, "/?#");
}

/* Without the user. */
static const char *
host_and_port(const char *url, apr_pool_t *pool)
{
    const char *begin = authority_of(url);
    const char *host = apr_pstrmemdup(pool, begin, (size_t)(mc_http_path_of(url) - begin));
    const char *user = strrchr(host, '@');
    return user == NULL ? host : user + 1;
}

const char *
mc_http_server_of(const char *url, apr_pool_t *pool)
{
    return apr_psprintf(pool, "%.*s%s", (int)(authority_of(url) - url), url, host_and_port(url, pool));
}

const char *
mc_http_host_of(const char *url, apr_pool_t *pool)
{
    const char *host = host_and_port(url, pool);
    const char *standard = strncasecmp(url, "https", 5) == 0 ? ":443" : ":80";
    size_t size = strlen(host), ending = strlen(standard);
    if (size > ending && strcmp(host + size - ending, standard) == 0)
        return apr_pstrmemdup(pool, host, size - ending);
    return host;
}
