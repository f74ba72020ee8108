/*
 * Sending requests to a store: those of a map together, those that fail for a passing reason again, with growing pauses
 * that differ from thread to thread, while there is time. A store that has failed several times in a row is left alone.
 */
#include <apr_strings.h>
#include <stdlib.h>
#include <string.h>

#include "base/backoff.h"
#include "base/clock.h"
#include "base/slices.h"
#include "base/wait.h"
#include "cache/rest/rest_base.h"
#include "http/http_address.h"
#include "http/http_breakers.h"

/* Microseconds before the first repetition; doubles with each, up to LONGEST_PAUSE. */
#define FIRST_PAUSE (100 * 1000)
/* Also what a store may ask for in Retry-After; more is a refusal. */
#define LONGEST_PAUSE (5 * APR_USEC_PER_SEC)

/* Requests under way, in rounds. */
typedef struct rest_round {
    mc_rest_cache *cache;
    mc_rest_ask **asks; /* that are to be sent */
    int count;
    const void *secret;
    mc_http_finding finding;          /* of all rounds */
    bool renewed;                     /* another secret was asked for */
    apr_interval_time_t wanted_pause; /* the longest Retry-After */
    mc_ctx *ctx;
    apr_pool_t *pool;
} rest_round;

static void
note_retry_after(rest_round *round, const mc_rest_ask *ask)
{
    const char *text = ask->reply.headers == NULL ? NULL : apr_table_get(ask->reply.headers, "Retry-After");
    long seconds = text == NULL ? 0 : strtol(text, NULL, 10);
    apr_interval_time_t pause = seconds <= 0     ? 0
                                : seconds > 3600 ? apr_time_from_sec(3600)
                                                 : apr_time_from_sec(seconds);
    round->wanted_pause = pause > round->wanted_pause ? pause : round->wanted_pause;
}

/* Makes all requests and sends them; an ask that cannot be made has its error. */
static mc_error *
send_round(rest_round *round)
{
    const mc_rest_cache *cache = round->cache;
    const apr_time_t begun = mc_clock_now();
    mc_http_exchange *exchanges = apr_pcalloc(round->pool, sizeof(*exchanges) * (size_t)round->count);
    for (int i = 0; i < round->count; i++) {
        mc_rest_request request;
        MC_TRY(mc_rest_request_make(&request, round->asks[i], cache, round->secret, round->pool));
        round->asks[i]->url = request.url;
        exchanges[i].call = (mc_http_call){
            .method = request.method,
            .url = request.url,
            .headers = request.headers,
            .body = request.body,
            .body_size = request.body_size,
            .connect_timeout = cache->connection_timeout,
            .timeout = cache->timeout,
            .max_response = MC_TILE_BYTES_MAX,
            .no_redirects = cache->signer != NULL, /* a signature is for one address */
            .store = true,
        };
    }
    mc_http_send_all(exchanges, round->count, cache->connections, round->ctx->process->http, round->ctx, round->pool);
    mc_http_add_signs(&round->finding, exchanges, round->count, begun, round->ctx);
    for (int i = 0; i < round->count; i++) {
        round->asks[i]->reply = exchanges[i].reply;
        round->asks[i]->error = exchanges[i].error;
    }
    return MC_OK;
}

/* What has come. Asks that may be sent again stay in the round. */
static void
judge_round(rest_round *round)
{
    int left = 0;
    for (int i = 0; i < round->count; i++) {
        mc_rest_ask *ask = round->asks[i];
        const char *code;
        mc_rest_judge(ask, &code, round->cache, round->pool);
        const mc_rest_signer *signer = round->cache->signer;
        bool refused = ask->error != MC_OK && (ask->reply.status == 401 || ask->reply.status == 403 ||
                                               (ask->reply.status == 400 && *code != '\0'));
        if (refused && !round->renewed && signer != NULL && signer->renew != NULL)
            ask->again = round->renewed = signer->renew(round->cache, round->secret, code);
        if (ask->again)
            note_retry_after(round, ask);
        if (ask->again)
            round->asks[left++] = ask;
    }
    round->count = left;
}

/* Waits before the next round. False: there is no time for it, or the store wants to be left alone for longer. */
static bool
pause_before_round(rest_round *round, int attempt)
{
    apr_interval_time_t pause = mc_backoff(attempt, FIRST_PAUSE, LONGEST_PAUSE);
    pause = pause > round->wanted_pause ? pause : round->wanted_pause;
    if (pause > LONGEST_PAUSE || mc_ctx_remaining(round->ctx, pause + 1) <= pause || mc_ctx_abandoned(round->ctx))
        return false;
    round->wanted_pause = 0;
    return mc_wait_pause(pause, round->ctx);
}

static mc_error *
run_rounds(rest_round *round)
{
    for (int attempt = 0;; attempt++) {
        bool renewed = round->renewed;
        if (round->cache->signer != NULL && round->cache->signer->prepare != NULL)
            MC_TRY(round->cache->signer->prepare(&round->secret, round->cache, round->ctx, round->pool));
        MC_TRY(send_round(round));
        judge_round(round);
        if (round->count == 0 || attempt >= round->cache->busy_retries + round->renewed)
            return MC_OK;
        if (renewed == round->renewed && !pause_before_round(round, attempt))
            return MC_OK;
    }
}

mc_error *
mc_rest_send(mc_rest_cache *cache, mc_rest_ask *asks, int count, mc_ctx *ctx, apr_pool_t *pool)
{
    MC_SLOW_WAIT(ctx);
    mc_http *http = ctx->process == NULL ? NULL : ctx->process->http;
    const char *server, *url, *path;
    if (count == 0)
        return MC_OK;
    if (http == NULL)
        return mc_error_create(pool, MC_ERR_UNAVAILABLE, "requests to stores are switched off");
    url = asks[0].list_url;
    if (url == NULL) {
        MC_TRY(mc_rest_url(&url, &path, cache, asks[0].key, pool));
        asks[0].address = url;
        asks[0].path = path;
    }
    server = mc_http_server_of(url, pool);
    if (!mc_http_breakers_admit(mc_http_breakers_of(http), server))
        return mc_error_repeats(mc_error_create(
            pool, MC_ERR_UNAVAILABLE, "cache \"%s\": the store has failed several times, and is left alone for a while",
            cache->base.cache.name));
    rest_round round = { .cache = cache, .count = count, .ctx = ctx, .pool = pool };
    round.asks = apr_palloc(pool, sizeof(*round.asks) * (size_t)count);
    for (int i = 0; i < count; i++)
        round.asks[i] = &asks[i];
    mc_error *error = run_rounds(&round);
    mc_http_breakers_report(mc_http_breakers_of(http), server, &round.finding);
    for (int i = 0; i < count && error == MC_OK; i++)
        error = asks[i].error;
    return error;
}
