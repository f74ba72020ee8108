/*
 * The <http> element (docs/reference/configuration.md 3.6): the address of an origin, and the way of asking the origin.
 * Used by WMS sources, forwarding rules and dimensions.
 */
#ifndef MC_SOURCE_HTTP_BLOCK_H
#define MC_SOURCE_HTTP_BLOCK_H

#include "http/http.h"
#include "mapcache/config.h"

typedef struct mc_http_block {
    const char *url;
    int connection_timeout;     /* seconds */
    int timeout;                /* seconds, the whole transfer */
    bool circuit_breaker;       /* of sources: leave an origin that fails alone for a while */
    const mc_node *header_tree; /* <headers> or NULL */
    const mc_node *auth_tree;   /* <auth> or NULL */
    apr_table_t *headers;       /* name -> value, with {Incoming-Header} still in it; Authorization from <auth> */
} mc_http_block;

extern const mc_key mc_http_block_keys[];

/* Complaints go to build->diagnostics, NULL then. */
mc_http_block *mc_http_block_from_config(const mc_node *http, mc_build *build);

/*
 * A GET of `url` (usually made from block->url) with the block's timeouts and headers, the client's headers put in
 * where the block names them. max_response is left to the caller.
 */
mc_http_call mc_http_block_call(const mc_http_block *block, const char *url, const mc_ctx *ctx, apr_pool_t *pool);

/* `url` with "name=value&..." appended behind "?" or "&" as needed; keys as they are, values percent-encoded in lower
 * case (docs/reference/configuration.md 3.1), in the order of the table. */
const char *mc_http_url(const char *url, const apr_table_t *params, apr_pool_t *pool);

#endif
