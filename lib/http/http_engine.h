/*
 * What the core asks of the module that speaks HTTP (mapcache-curl.so). Kept apart from http.h so that callers need
 * not know that there is a module.
 */
#ifndef MC_HTTP_HTTP_ENGINE_H
#define MC_HTTP_HTTP_ENGINE_H

#include "http/http.h"

typedef struct mc_http_engine mc_http_engine;

typedef struct mc_http_engine_ops {
    /* `max_idle` connections are kept at most. NULL when there is no memory. */
    mc_http_engine *(*create)(int max_idle);
    void (*destroy)(mc_http_engine *engine);
    /* As mc_http_send_all, of one call or more. Called from any number of threads. */
    void (*send_all)(mc_http_engine *engine, mc_http_exchange *exchanges, int count, int connections, mc_ctx *ctx,
                     apr_pool_t *pool);
} mc_http_engine_ops;

/* The module's one symbol. */
#define MC_HTTP_ENGINE_SYMBOL "mc_http_curl_ops"
extern const mc_http_engine_ops mc_http_curl_ops;

#endif
