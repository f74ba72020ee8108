/* What an address ("https://user@host:8443/path") says of its server. */
#ifndef MC_HTTP_HTTP_ADDRESS_H
#define MC_HTTP_HTTP_ADDRESS_H

#include <apr_pools.h>

/* Where the path begins, or what stands in its place; the address's end where it has no path or is none. */
const char *mc_http_path_of(const char *url);

/* "https://host:8443": what a circuit breaker is for (http_breakers.h). It is shown: no user, no password. */
const char *mc_http_server_of(const char *url, apr_pool_t *pool);

/* What the server is told in Host (RFC 9110 7.2): "host", with the port where it is not that of the scheme. */
const char *mc_http_host_of(const char *url, apr_pool_t *pool);

#endif
