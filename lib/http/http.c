/*
 * The HTTP client's front: loads the module at first use, counts, traces and keeps requests within their bounds, so
 * that the module has to know libcurl only.
 */
#include "http/http.h"

#include <apr_lib.h>
#include <apr_strings.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/account.h"
#include "base/admission.h"
#include "base/metrics.h"
#include "base/module.h"
#include "http/http_breakers.h"
#include "http/http_counters.h"
#include "http/http_engine.h"
#include "mapcache/trace.h"
#include "text/text.h"

struct mc_http {
    int max_idle;
    pthread_mutex_t lock; /* of ops and engine while they are not there yet */
    const mc_http_engine_ops *ops;
    mc_http_engine *engine;
    mc_http_breakers *breakers;
};

mc_http *
mc_http_create(int max_idle_connections)
{
    mc_http *http = calloc(1, sizeof(*http));
    MC_ASSERT(http != NULL);
    http->max_idle = max_idle_connections < 0 ? 0 : max_idle_connections;
    http->breakers = mc_http_breakers_create();
    pthread_mutex_init(&http->lock, NULL);
    return http;
}

void
mc_http_destroy(mc_http *http)
{
    if (http == NULL)
        return;
    if (http->engine != NULL)
        http->ops->destroy(http->engine);
    mc_http_breakers_destroy(http->breakers);
    pthread_mutex_destroy(&http->lock);
    free(http);
}

mc_http_breakers *
mc_http_breakers_of(mc_http *http)
{
    return http->breakers;
}

static mc_error *
load_http_engine(mc_http *http, apr_pool_t *pool)
{
    if (http->engine != NULL)
        return MC_OK;
    void *symbol;
    MC_TRY(mc_module_symbol(&symbol, "curl", MC_HTTP_ENGINE_SYMBOL, pool));
    http->ops = symbol;
    http->engine = http->ops->create(http->max_idle);
    if (http->engine == NULL)
        return mc_error_create(pool, MC_ERR_LIMIT, "the HTTP client cannot be set up");
    return MC_OK;
}

static mc_error *
engine_ready(mc_http *http, apr_pool_t *pool)
{
    pthread_mutex_lock(&http->lock);
    mc_error *error = load_http_engine(http, pool);
    pthread_mutex_unlock(&http->lock);
    return error;
}

/* RFC 9110 5.6.2, token. */
static bool
is_header_name(const char *name)
{
    if (*name == '\0')
        return false;
    for (const char *c = name; *c != '\0'; c++)
        if (!apr_isalnum(*c) && strchr("!#$%&'*+-.^_`|~", *c) == NULL)
            return false;
    return true;
}

/* A copy of the headers that is safe to send: names checked, values without line ends, our User-Agent unless set. */
static mc_error *
safe_headers(apr_table_t **safe, const apr_table_t *headers, apr_pool_t *pool)
{
    apr_table_t *table = apr_table_make(pool, 8);
    if (headers != NULL) {
        const apr_array_header_t *items = apr_table_elts(headers);
        for (int i = 0; i < items->nelts; i++) {
            const apr_table_entry_t *item = &APR_ARRAY_IDX(items, i, apr_table_entry_t);
            if (!is_header_name(item->key))
                return mc_error_create(pool, MC_ERR_CONFIG, "\"%s\" cannot be the name of an HTTP header",
                                       mc_header_value(item->key, pool));
            apr_table_addn(table, item->key, mc_header_value(item->val, pool));
        }
    }
    if (apr_table_get(table, "User-Agent") == NULL)
        apr_table_setn(table, "User-Agent", "mod-mapcache/" MC_PROJECT_VERSION);
    *safe = table;
    return MC_OK;
}

/* Tells whoever is asked which trace the request belongs to; headers that the configuration names stay. */
static void
add_traceparent(apr_table_t *headers, const mc_ctx *ctx, apr_pool_t *pool)
{
    if (ctx->account == NULL || ctx->account->context.root == 0 || apr_table_get(headers, "traceparent") != NULL)
        return;
    const mc_trace_context *context = &ctx->account->context;
    char *value = apr_palloc(pool, MC_TRACEPARENT_SIZE);
    mc_traceparent_format(value, context, mc_trace_innermost(ctx->trace));
    apr_table_setn(headers, "traceparent", value);
    if (context->vendors != NULL && apr_table_get(headers, "tracestate") == NULL)
        apr_table_setn(headers, "tracestate", context->vendors);
}

/* What is wrong before a call can be sent; else the call is made complete. */
static mc_error *
complete_call(mc_http_call *call, mc_http *http, mc_ctx *ctx, apr_pool_t *pool)
{
    if (http == NULL)
        return mc_error_create(pool, MC_ERR_UNAVAILABLE, "requests to origins are switched off");
    MC_TRY(mc_ctx_check(ctx, pool));
    if (!call->store && !call->apart)
        MC_TRY(mc_admission_count_origin(ctx, pool));
    apr_table_t *headers = NULL;
    MC_TRY(safe_headers(&headers, call->headers, pool));
    if (!call->store)
        add_traceparent(headers, ctx, pool);
    call->headers = headers;
    MC_TRY(engine_ready(http, pool));
    if (call->connect_timeout <= 0)
        call->connect_timeout = MC_HTTP_CONNECT_TIMEOUT;
    if (call->timeout <= 0)
        call->timeout = MC_HTTP_TIMEOUT;
    return MC_OK;
}

static bool
count_exchange(const mc_http_exchange *exchange, struct mc_metrics *metrics)
{
    bool store = exchange->call.store;
    bool failed = exchange->error != MC_OK || exchange->reply.status >= 500;
    if (exchange->call.apart)
        return failed;
    mc_count(metrics, store ? MC_COUNT_store_requests_total : MC_COUNT_origin_requests_total, 1);
    if (failed)
        mc_count(metrics, store ? MC_COUNT_store_errors_total : MC_COUNT_origin_errors_total, 1);
    if (exchange->error == MC_OK)
        mc_count(metrics, store ? MC_COUNT_store_bytes_total : MC_COUNT_origin_bytes_total, exchange->reply.body->size);
    return failed;
}

/* "host:port", cut: never what stands before an "@", nor a path. */
static const char *
host_of_url(char host[MC_SPAN_SUBJECT_SIZE], const char *url)
{
    const char *start = strstr(url, "://");
    start = start == NULL ? url : start + 3;
    size_t size = strcspn(start, "/?#");
    const char *at = memrchr(start, '@', size);
    if (at != NULL) {
        size -= (size_t)(at + 1 - start);
        start = at + 1;
    }
    apr_cpystrn(host, start, size < MC_SPAN_SUBJECT_SIZE ? size + 1 : MC_SPAN_SUBJECT_SIZE);
    return host;
}

void
mc_http_send_all(mc_http_exchange *exchanges, int count, int connections, mc_http *http, mc_ctx *ctx, apr_pool_t *pool)
{
    char host[MC_SPAN_SUBJECT_SIZE];
    MC_SPAN_AS(span, ctx, "mapcache_http_request");
    if (span.trace != NULL && count > 0)
        mc_span_about(&span, host_of_url(host, exchanges[0].call.url));
    bool ready = count > 0;
    for (int i = 0; i < count; i++) {
        exchanges[i].reply = (mc_http_reply){ 0 };
        exchanges[i].error = complete_call(&exchanges[i].call, http, ctx, pool);
        ready = ready && exchanges[i].error == MC_OK;
    }
    for (int i = 0; i < count && !ready; i++) /* none is sent where one cannot be */
        if (exchanges[i].error == MC_OK)
            exchanges[i].error = mc_error_create(pool, MC_ERR_UNAVAILABLE, "a request beside it cannot be sent");
    if (!ready)
        return;
    http->ops->send_all(http->engine, exchanges, count, connections, ctx, pool);
    bool failed = false;
    for (int i = 0; i < count; i++)
        failed = count_exchange(&exchanges[i], ctx->process == NULL ? NULL : ctx->process->metrics) || failed;
    if (failed)
        mc_span_note(&span, "ERROR");
}

mc_error *
mc_http_send(mc_http_reply *reply, mc_http *http, const mc_http_call *call, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_http_exchange exchange = { .call = *call };
    mc_http_send_all(&exchange, 1, 1, http, ctx, pool);
    *reply = exchange.reply;
    return exchange.error;
}
