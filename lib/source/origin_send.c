/* Sending to origins, and what that tells their circuit breakers: see origin_send.h. */
#include "source/origin_send.h"

#include <apr_strings.h>
#include <string.h>

#include "base/clock.h"
#include "http/http_breakers.h"

const char *
mc_origin_endpoint(const char *url, apr_pool_t *pool)
{
    const char *host = strstr(url, "://");
    if (host == NULL)
        return url;
    host += 3;
    const char *text = apr_pstrmemdup(pool, host, strcspn(host, "/?#"));
    const char *user = strrchr(text, '@');
    return apr_pstrcat(pool, apr_pstrmemdup(pool, url, (size_t)(host - url)), user == NULL ? text : user + 1, NULL);
}

void
mc_origin_send_all(mc_http_exchange *exchanges, int count, int connections, const mc_source *source, mc_ctx *ctx,
                   apr_pool_t *pool)
{
    mc_http *http = ctx->process->http;
    apr_time_t begun = mc_clock_now();
    mc_http_send_all(exchanges, count, connections, http, ctx, pool);
    if (http == NULL || source->endpoint == NULL)
        return;
    mc_http_finding finding = { .waited = 0 };
    mc_http_add_signs(&finding, exchanges, count, begun, ctx);
    mc_http_breakers_report(mc_http_breakers_of(http), source->endpoint, &finding);
}

void
mc_origin_inspect(const mc_source *source, const mc_http_block *block, const char *url, mc_diagnostics *diagnostics,
                  mc_ctx *ctx, apr_pool_t *pool)
{
    enum { ENOUGH = 64 << 10 }; /* bytes of an answer that nobody reads */
    mc_http_call call = mc_http_block_call(block, url, ctx, pool);
    call.max_response = ENOUGH;
    mc_http_reply reply = { 0 };
    mc_error *error = mc_http_send(&reply, ctx->process->http, &call, ctx, pool);
    int status = reply.status;
    if (reply.too_large)
        return;
    if (error != MC_OK)
        mc_complain(diagnostics, MC_WARNING, NULL, "source \"%s\": %s", source->name, mc_error_chain(error, pool));
    else if (status == 401 || status == 403 || status == 407 || status == 429 || status >= 500)
        mc_complain(diagnostics, MC_WARNING, NULL, "source \"%s\": %s answers with status %d", source->name,
                    mc_origin_endpoint(url, pool), status);
}
