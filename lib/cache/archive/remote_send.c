/*
 * Sending requests for parts of a file: those of a map together, signed where the file lies in a store of S3's kind,
 * and not at all for a while where the server has failed several times in a row.
 */
#include "cache/archive/remote_send.h"

#include <apr_strings.h>

#include "base/backoff.h"
#include "base/clock.h"
#include "base/slices.h"
#include "base/wait.h"
#include "cache/rest/aws_options.h"
#include "cache/rest/rest_base.h"
#include "cache/rest/signed_headers.h"
#include "http/http_address.h"
#include "http/http_breakers.h"

enum {
    CONNECTIONS = 64, /* as of the caches "rest" */
    SENDS_MAX = 3,
    REFUSAL_BYTES = 4096, /* of an answer that says why */
    HEADER_FILE_BYTES = 64 << 10
};
/* Microseconds before a request is sent again; doubles. */
#define FIRST_PAUSE (100 * 1000)
#define LONGEST_PAUSE APR_USEC_PER_SEC

/* Requests under way, in rounds. */
typedef struct range_round {
    const mc_ranged_file *file;
    const char *validator;
    bool modified;
    mc_range_ask **asks; /* that are to be sent */
    int count;
    const mc_aws_secret *secret;
    const char *header_lines; /* of the file of headers; NULL: none */
    bool renewed;
    mc_http_finding finding; /* of all rounds */
    apr_pool_t *pool;
} range_round;

static apr_table_t *
headers_of_part(const range_round *round, const mc_range_ask *ask)
{
    apr_pool_t *pool = round->pool;
    apr_table_t *headers = apr_table_make(pool, 8);
    const mc_ranges_remote *remote = round->file->remote;
    if (round->header_lines != NULL)
        mc_rest_header_lines(headers, round->header_lines, pool);
    apr_table_setn(
        headers, "Range",
        apr_psprintf(pool, "bytes=%" APR_UINT64_T_FMT "-%" APR_UINT64_T_FMT, ask->offset, ask->offset + ask->size - 1));
    apr_table_setn(headers, "Accept-Encoding", "identity");
    if (round->validator != NULL)
        apr_table_setn(headers, round->modified ? "If-Unmodified-Since" : "If-Match", round->validator);
    const char *url = round->file->path;
    if (remote->access != NULL) {
        mc_rest_request request = { .method = "GET",
                                    .url = url,
                                    .host = mc_http_host_of(url, pool),
                                    .path = mc_http_path_of(url),
                                    .query = "",
                                    .headers = headers,
                                    .now = apr_time_now() };
        apr_table_setn(headers, "Host", request.host);
        mc_google_authorize(&request, remote->access, remote->secret, pool);
    }
    if (round->secret == NULL)
        return headers;
    const mc_sigv4 what = {
        .method = "GET", .path = mc_http_path_of(url), .query = "", .region = remote->aws->region, .now = apr_time_now()
    };
    apr_table_setn(headers, "Host", mc_http_host_of(url, pool));
    mc_sigv4_sign(headers, &what, round->secret, pool);
    return headers;
}

static void
send_parts(range_round *round)
{
    const mc_ranges_remote *remote = round->file->remote;
    mc_ctx *ctx = round->file->ctx;
    mc_http_exchange *exchanges = apr_pcalloc(round->pool, sizeof(*exchanges) * (size_t)round->count);
    for (int i = 0; i < round->count; i++) {
        size_t size = round->asks[i]->size;
        exchanges[i].call = (mc_http_call){
            .method = "GET",
            .url = round->file->path,
            .headers = headers_of_part(round, round->asks[i]),
            .connect_timeout = remote->connect_timeout,
            .timeout = remote->timeout,
            .max_response = size > REFUSAL_BYTES ? size : REFUSAL_BYTES,
            /* a signature is for one address, and so may further headers be */
            .no_redirects = round->secret != NULL || remote->access != NULL || round->header_lines != NULL,
            .store = true,
            .as_stored = true,
        };
    }
    const apr_time_t begun = mc_clock_now();
    mc_http_send_all(exchanges, round->count, CONNECTIONS, ctx->process->http, ctx, round->pool);
    mc_http_add_signs(&round->finding, exchanges, round->count, begun, ctx);
    for (int i = 0; i < round->count; i++) {
        round->asks[i]->reply = exchanges[i].reply;
        round->asks[i]->error = exchanges[i].error;
    }
}

static bool
is_passing_status(int status)
{
    return status == 429 || status == 500 || (status >= 502 && status <= 504);
}

/* Whether the credentials have ended, and others may help. */
static bool
may_renew_secret(range_round *round, const mc_range_ask *ask)
{
    int status = ask->reply.status;
    if (round->secret == NULL || round->renewed || (status != 400 && status != 401 && status != 403))
        return false;
    const mc_buf *body = ask->reply.body;
    const char *code = mc_rest_xml_text((const char *)body->data, body->size, "Code", round->pool);
    round->renewed = mc_aws_options_renew(round->file->remote->aws, round->secret, code);
    return round->renewed;
}

/* What has come. Parts that may be asked for again stay in the round. */
static void
judge_parts(range_round *round)
{
    int left = 0;
    for (int i = 0; i < round->count; i++) {
        mc_range_ask *ask = round->asks[i];
        bool again = ask->error == MC_OK ? is_passing_status(ask->reply.status) : ask->error->kind == MC_ERR_UPSTREAM;
        if (again || (ask->error == MC_OK && may_renew_secret(round, ask)))
            round->asks[left++] = ask;
    }
    round->count = left;
}

static mc_error *
send_part_rounds(range_round *round)
{
    const mc_ranges_remote *remote = round->file->remote;
    mc_ctx *ctx = round->file->ctx;
    for (int attempt = 0;; attempt++) {
        bool renewed = round->renewed;
        if (remote->header_file != NULL)
            MC_TRY(mc_rest_file_text(&round->header_lines, remote->header_file, HEADER_FILE_BYTES, round->pool));
        if (remote->aws != NULL)
            MC_TRY(mc_aws_credentials(&round->secret, &remote->aws->chain, ctx, round->pool));
        send_parts(round);
        judge_parts(round);
        if (round->count == 0 || attempt + 1 >= SENDS_MAX)
            return MC_OK;
        apr_interval_time_t pause = mc_backoff(attempt, FIRST_PAUSE, LONGEST_PAUSE);
        if (renewed == round->renewed &&
            (mc_ctx_remaining(ctx, pause + 1) <= pause || mc_ctx_abandoned(ctx) || !mc_wait_pause(pause, ctx)))
            return MC_OK;
    }
}

mc_error *
mc_ranges_send(mc_range_ask *asks, int count, const mc_ranged_file *file, const char *validator, bool modified,
               apr_pool_t *pool)
{
    mc_ctx *ctx = file->ctx;
    const char *name = file->remote->name;
    MC_SLOW_WAIT(ctx);
    if (ctx->process == NULL || ctx->process->http == NULL)
        return mc_error_create(pool, MC_ERR_UNAVAILABLE, "requests to stores are switched off");
    mc_http_breakers *breakers = mc_http_breakers_of(ctx->process->http);
    const char *server = mc_http_server_of(file->path, pool);
    if (!mc_http_breakers_admit(breakers, server))
        return mc_error_repeats(
            mc_error_create(pool, MC_ERR_UNAVAILABLE,
                            "cache \"%s\": the server of the archive has failed several times, and is left alone"
                            " for a while",
                            name));
    range_round round = { .file = file, .validator = validator, .modified = modified, .count = count, .pool = pool };
    round.asks = apr_palloc(pool, sizeof(*round.asks) * (size_t)count);
    for (int i = 0; i < count; i++)
        round.asks[i] = &asks[i];
    mc_error *error = send_part_rounds(&round);
    mc_http_breakers_report(breakers, server, &round.finding);
    for (int i = 0; i < count && error == MC_OK; i++)
        error = asks[i].error;
    if (error == MC_OK)
        return MC_OK;
    return mc_error_wrap(pool, error, error->kind, "the archive of cache \"%s\" cannot be read%s", name,
                         error->kind == MC_ERR_UPSTREAM ? " (is it a server that answers parts of files?)" : "");
}
