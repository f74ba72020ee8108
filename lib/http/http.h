/*
 * Requests to origins over kept connections. The work is done by libcurl in a module that is loaded at first use.
 */
#ifndef MC_HTTP_HTTP_H
#define MC_HTTP_HTTP_H

#include <stdbool.h>

#include "mapcache/buf.h"
#include "mapcache/ctx.h"

typedef struct mc_http mc_http;

/* Seconds, where a call says nothing (docs/reference/configuration.md 3.6). */
#define MC_HTTP_CONNECT_TIMEOUT 30
#define MC_HTTP_TIMEOUT 600

typedef struct mc_http_call {
    const char *method; /* "GET", "POST", "HEAD", "PUT", "DELETE" */
    const char *url;
    const apr_table_t *headers; /* or NULL */
    const void *body;           /* or NULL */
    size_t body_size;
    double connect_timeout; /* seconds; 0: MC_HTTP_CONNECT_TIMEOUT */
    double timeout;      /* seconds, the whole transfer; the context's deadline bounds it further; 0: MC_HTTP_TIMEOUT */
    size_t max_response; /* bytes; more is MC_ERR_UPSTREAM */
    bool no_redirects;   /* an answer that leads elsewhere is the reply */
    bool no_proxy;       /* asked directly, whatever the environment says */
    bool store;          /* to a store of tiles: not counted as a request to an origin */
    bool apart;          /* for no request of a client: counted neither as one to an origin nor as one to a store */
    bool as_stored;      /* no encoding is asked for: parts of a file are parts of its bytes */
} mc_http_call;

typedef struct mc_http_reply {
    int status;
    apr_table_t *headers; /* of the last answer, after redirects; without those of an encoding that was undone */
    mc_buf *body;         /* attached to the pool */
    bool decoded;         /* the body was compressed on its way */
    bool too_large;       /* with an error: the answer has more than max_response bytes */
    bool framed;          /* the answer says where the body ends: else the body may be half of one (RFC 9112 6.3, 8) */
} mc_http_reply;

/* One for each process, created after the fork; nothing is loaded or opened before the first request. */
mc_http *mc_http_create(int max_idle_connections);
void mc_http_destroy(mc_http *http); /* no request may be under way; NULL is ignored */

/*
 * Sends the request and waits, at most until the timeout or the deadline. Redirects are followed (at most 5, http and
 * https only). Any status is a reply; MC_ERR_UPSTREAM: no connection or broken transfer, MC_ERR_TIMEOUT: too late.
 * MC_ERR_UNAVAILABLE: the client has gone, or the module is not to be had (http NULL: switched off). Header values lose
 * their line ends; a header name that is none is MC_ERR_CONFIG. Messages never hold the URL; the cause (log) does.
 */
mc_error *mc_http_send(mc_http_reply *reply, mc_http *http, const mc_http_call *call, mc_ctx *ctx,
                       apr_pool_t *pool) MC_CHECKED;

/* Which stores and origins of maps are left alone (http/http_breakers.h). */
struct mc_http_breakers *mc_http_breakers_of(mc_http *http);

/* One of several calls, with its answer. */
typedef struct mc_http_exchange {
    mc_http_call call;
    mc_http_reply reply;
    mc_error *error;
} mc_http_exchange;

/*
 * Sends several requests to one origin at a time, on at most `connections` connections of their own, which are kept,
 * and waits for all of them: each has its reply or its error, as of mc_http_send.
 */
void mc_http_send_all(mc_http_exchange *exchanges, int count, int connections, mc_http *http, mc_ctx *ctx,
                      apr_pool_t *pool);

#endif
