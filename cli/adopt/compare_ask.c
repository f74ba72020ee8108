/* Asking the two servers of a comparison. */
#include <apr_strings.h>
#include <string.h>

#include "base/clock.h"
#include "compare.h"
#include "http/http.h"
#include "text/text.h"

enum { ANSWER_SECONDS = 30, ANSWER_BYTES_MAX = 64 << 20 };

static mc_ctx
compare_ctx(const mc_compare *compare, apr_pool_t *pool)
{
    apr_interval_time_t allowance = apr_time_from_sec(ANSWER_SECONDS);
    return (mc_ctx){ .pool = pool,
                     .process = mc_runtime_process(compare->runtime),
                     .log = compare->log,
                     .deadline = mc_clock_now() + allowance,
                     .allowance = allowance };
}

static void
ask_there(mc_compare_answer *answer, mc_compare *compare, const char *address, apr_pool_t *pool)
{
    mc_ctx ctx = compare_ctx(compare, pool);
    mc_http_reply reply;
    const mc_http_call call = {
        .method = "GET", .url = address, .timeout = ANSWER_SECONDS, .max_response = ANSWER_BYTES_MAX
    };
    mc_error *error = mc_http_send(&reply, ctx.process->http, &call, &ctx, pool);
    if (error != MC_OK) {
        answer->error = mc_error_chain(error, pool);
        return;
    }
    answer->status = reply.status;
    answer->media = apr_table_get(reply.headers, "Content-Type");
    answer->body = reply.body;
}

static void
ask_here(mc_compare_answer *answer, const mc_compare *compare, const char *address, apr_pool_t *pool)
{
    mc_ctx ctx = compare_ctx(compare, pool);
    mc_http_response *response;
    size_t begin = strncmp(address, MC_COMPARE_HERE_URL, sizeof(MC_COMPARE_HERE_URL) - 1) == 0
                       ? sizeof(MC_COMPARE_HERE_URL) - 1
                       : 0;
    const char *query = strchr(address + begin, '?');
    size_t size = query == NULL ? strlen(address + begin) : (size_t)(query - (address + begin));
    const mc_http_request request = { .method = "GET",
                                      .path = mc_url_decode(address + begin, size, false, pool),
                                      .query = query == NULL ? NULL : query + 1,
                                      .base_url = MC_COMPARE_HERE_URL,
                                      .headers = apr_table_make(pool, 1),
                                      .client = "127.0.0.1" };
    ctx.headers = request.headers;
    mc_server_handle(&response, compare->server, &request, &ctx, pool);
    answer->status = response->status;
    answer->media = apr_table_get(response->headers, "Content-Type");
    answer->body = response->body;
}

mc_compare_answer
mc_compare_ask(mc_compare *compare, mc_compare_side side, const char *address, apr_pool_t *pool)
{
    mc_compare_answer answer = { 0 };
    apr_time_t begin = mc_clock_now();
    if (side == MC_COMPARE_THERE)
        ask_there(&answer, compare, address, pool);
    else
        ask_here(&answer, compare, address, pool);
    answer.seconds = (double)(mc_clock_now() - begin) / APR_USEC_PER_SEC;
    if (answer.media == NULL)
        answer.media = "";
    return answer;
}

bool
mc_compare_has_time(mc_compare *compare, apr_time_t begin)
{
    if (mc_clock_now() - begin < apr_time_from_sec(MC_COMPARE_SECONDS))
        return true;
    mc_compare_put(compare, "<p>%d seconds are over, and there are no further pictures: the servers are slow.</p>\n",
                   MC_COMPARE_SECONDS);
    return false;
}

/* SplitMix64: a step of a counter, whose bits are mixed (Steele, Lea, Flood: Fast splittable pseudorandom number
 * generators). */
static uint64_t
draw_bits(mc_compare *compare)
{
    uint64_t bits = compare->chance += 0x9e3779b97f4a7c15U;
    bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9U;
    bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebU;
    return bits ^ (bits >> 31);
}

int
mc_compare_choose(mc_compare *compare, int count)
{
    return count < 2 ? 0 : (int)(draw_bits(compare) % (uint64_t)count);
}

double
mc_compare_random(mc_compare *compare)
{
    return (double)(draw_bits(compare) >> 11) * 0x1p-53;
}
