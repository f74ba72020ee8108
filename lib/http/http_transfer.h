/*
 * One request of libcurl and its answer: options, headers, body, redirects, and what went wrong in words. Part of the
 * module mapcache-curl.so; http_curl.c has the connections and waits.
 */
#ifndef MC_HTTP_HTTP_TRANSFER_H
#define MC_HTTP_HTTP_TRANSFER_H

#include <curl/curl.h>

#include "http/http.h"
#include "http/http_target.h"

/* A call under way. Each request of it has an easy handle of its own. */
typedef struct mc_http_transfer {
    const mc_http_call *call;
    mc_ctx *ctx;
    apr_pool_t *pool;
    mc_http_reply *reply;
    mc_http_hop hop; /* the request that is sent now */
    int redirects;   /* that were followed */
    CURL *easy;      /* NULL: the call has ended */
    struct curl_slist *headers;
    size_t header_bytes;
    size_t unread_bytes;       /* of a body that nobody reads */
    apr_interval_time_t limit; /* of the whole call */
    apr_time_t end;            /* mc_clock_now() */
    bool refused;              /* the hop led to an address that is not public */
    mc_error *error;           /* why a callback stopped the transfer */
    char reason[CURL_ERROR_SIZE];
} mc_http_transfer;

/* What all requests have in common. */
typedef struct mc_http_settings {
    CURLSH *share;
    const char *ca_bundle; /* or NULL */
    bool together;         /* several calls to one origin: they may share a connection that can take them */
} mc_http_settings;

/* A call, ready for its first request; the reply is emptied. The deadline begins to count. */
mc_http_transfer mc_http_transfer_begin(const mc_http_call *call, mc_http_reply *reply, mc_ctx *ctx, apr_pool_t *pool);

/* Makes t->easy for the request of the hop, with t as its CURLOPT_PRIVATE. */
mc_error *mc_http_transfer_prepare(mc_http_transfer *t, const mc_http_settings *settings) MC_CHECKED;

/*
 * After the request has ended with `code`: its easy handle, which is in no multi handle any more, goes. True where the
 * answer leads on: the next request is to be prepared. Else *error says how the call has ended.
 */
bool mc_http_transfer_ended(mc_error **error, mc_http_transfer *t, CURLcode code);

#endif
