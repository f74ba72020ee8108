/* Sending to origins, and what that tells their circuit breakers: see origin_send.h. */
#include "source/origin_send.h"

#include <apr_strings.h>
#include <string.h>

#include "base/clock.h"
#include "http/http_breakers.h"

/* Less without an answer may be the request's own hurry; where the request's time is over, less than the second. */
#define TELLING_TIME APR_USEC_PER_SEC
#define TELLING_TIME_AT_THE_END (10 * APR_USEC_PER_SEC)

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

typedef enum origin_sign { NO_SIGN, SIGN_OF_LIFE, SIGN_OF_TROUBLE } origin_sign;

static origin_sign
sign_of_exchange(const mc_http_exchange *exchange, apr_interval_time_t waited, bool over)
{
    int status = exchange->reply.status;
    if (exchange->error == MC_OK)
        return status == 429 || (status >= 502 && status <= 504) ? SIGN_OF_TROUBLE : SIGN_OF_LIFE;
    if (exchange->error->kind == MC_ERR_TIMEOUT)
        return waited >= (over ? TELLING_TIME_AT_THE_END : TELLING_TIME) ? SIGN_OF_TROUBLE : NO_SIGN;
    return exchange->error->kind == MC_ERR_UPSTREAM ? SIGN_OF_TROUBLE : NO_SIGN;
}

static void
report_exchanges(const mc_http_exchange *exchanges, int count, const char *endpoint, apr_interval_time_t waited,
                 bool over, mc_http_breakers *breakers)
{
    bool lives = false, troubled = false;
    for (int i = 0; i < count; i++) {
        origin_sign sign = sign_of_exchange(&exchanges[i], waited, over);
        lives = lives || sign == SIGN_OF_LIFE;
        troubled = troubled || sign == SIGN_OF_TROUBLE;
    }
    if (lives || troubled)
        mc_http_breakers_report(breakers, endpoint, lives);
}

void
mc_origin_send_all(mc_http_exchange *exchanges, int count, int connections, const mc_source *source, mc_ctx *ctx,
                   apr_pool_t *pool)
{
    mc_http *http = ctx->process->http;
    apr_time_t begun = mc_clock_now();
    mc_http_send_all(exchanges, count, connections, http, ctx, pool);
    if (http != NULL && source->endpoint != NULL)
        report_exchanges(exchanges, count, source->endpoint, mc_clock_now() - begun, mc_ctx_remaining(ctx, 1) <= 0,
                         mc_http_origin_breakers_of(http));
}
