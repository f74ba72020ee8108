/* See account.h. */
#include "server/account.h"

#include <apr_strings.h>
#include <string.h>

#include "base/clock.h"
#include "mapcache/trace.h"
#include "server/monitoring.h"
#include "telemetry/answers.h"
#include "telemetry/slow_requests.h"
#include "telemetry/telemetry.h"

/* Names of so many layers are told of a map. */
enum { NAMES_MAX = 8 };

void
mc_server_account_begin(mc_server_account *of, const mc_config *config, const mc_http_request *http, mc_ctx *ctx,
                        apr_pool_t *pool)
{
    mc_account *account = &of->account;
    memset(of, 0, sizeof(*of));
    account->method = http->method;
    account->base = http->base_url;
    account->path = http->path;
    account->query = http->query;
    account->client = http->client;
    ctx->account = account;
    unsigned kept =
        config->telemetry == NULL ? 0 : mc_telemetry_begin(config->telemetry, account, http->headers, ctx->process);
    of->told = mc_telemetry_wants(config->telemetry, account);
    of->counted = config->metrics || mc_monitoring_on(ctx->process);
    if (of->told || of->counted)
        of->begin = mc_clock_now();
    if (mc_monitoring_on(ctx->process)) {
        account->config = config;
        kept |= MC_TRACE_SPANS;
    }
    if (config->server_timing)
        kept |= MC_TRACE_SUMS;
    if (ctx->trace == NULL && (kept != 0 || of->counted))
        ctx->trace = mc_trace_create(NULL, NULL, http->client, NULL, pool);
    if (ctx->trace == NULL)
        return;
    mc_trace_keep(ctx->trace, kept);
    mc_trace_set_account(ctx->trace, account);
    if (of->counted)
        mc_trace_set_metrics(ctx->trace, ctx->process->metrics);
}

/* The metrics' name of a tileset, of which a further format is a part. */
static struct mc_answer_label *
label_of(const mc_tileset *tileset)
{
    return tileset->master != NULL ? tileset->master->label : tileset->label;
}

static void
name_tile(mc_server_account *of, const mc_tile_stack *stack)
{
    const mc_tile_request *tile = &stack->tiles[0];
    of->account.tileset = tile->tileset->name;
    of->account.grid = tile->link->grid->name;
    of->account.z = tile->z;
    of->account.x = tile->x;
    of->account.y = tile->y;
    of->label = label_of(tile->tileset);
    of->several = stack->count > 1;
    if (stack->count > 1 || tile->tileset->dimension_count > 0)
        atomic_store_explicit(&of->account.events, MC_EVENT_COMPOSED, memory_order_relaxed);
}

static void
name_map(mc_server_account *of, const mc_map_request *map, apr_pool_t *pool)
{
    of->account.width = map->width;
    of->account.height = map->height;
    atomic_store_explicit(&of->account.events, MC_EVENT_COMPOSED | (map->mode == MC_WMS_FORWARD ? MC_EVENT_UNKEPT : 0),
                          memory_order_relaxed);
    for (int i = 0; i < map->count && i < NAMES_MAX; i++) {
        const char *name = map->layers[i].tileset->name;
        of->account.tileset = i == 0 ? name : apr_pstrcat(pool, of->account.tileset, ",", name, NULL);
    }
    of->label = map->count == 0 ? NULL : label_of(map->layers[0].tileset);
    of->several = map->count > 1;
}

void
mc_server_account_name(mc_server_account *of, const mc_request *request, apr_pool_t *pool)
{
    if (request->kind == MC_REQUEST_TILE && request->u.tile.count > 0)
        name_tile(of, &request->u.tile);
    else if (request->kind == MC_REQUEST_MAP)
        name_map(of, &request->u.map, pool);
    else if (request->kind == MC_REQUEST_INFO && request->u.info.count > 0) {
        of->account.tileset = request->u.info.questions[0].tileset->name;
        of->label = label_of(request->u.info.questions[0].tileset);
        of->several = request->u.info.count > 1;
    }
}

/* Whoever told of its trace is told which span here belongs to it; browsers read Server-Timing. */
static void
tell_of_trace(const mc_account *account, mc_http_response *response, bool server_timing, apr_pool_t *pool)
{
    if (account->context.parent == 0 && !server_timing)
        return;
    char *value = apr_palloc(pool, MC_TRACEPARENT_SIZE);
    mc_traceparent_format(value, &account->context, 1);
    if (account->context.parent != 0)
        apr_table_setn(response->headers, "traceresponse", value);
    if (server_timing)
        apr_table_mergen(response->headers, "Server-Timing", apr_psprintf(pool, "traceparent;desc=\"%s\"", value));
}

/* For the status page. Its own requests would be all that a quiet server shows. */
static void
monitor_request(const mc_server_account *of, const mc_telemetry_answer *answer, const mc_config *config, mc_ctx *ctx,
                apr_pool_t *pool)
{
    const mc_account *account = &of->account;
    mc_monitor *monitor = mc_monitor_of(ctx->process->metrics);
    const bool own = account->service != NULL && strcmp(account->service, "status") == 0;
    if (!own && mc_slow_requests_want(monitor, answer->duration, answer->begin + answer->duration))
        mc_slow_requests_add(monitor, account, answer, ctx->trace,
                             mc_monitoring_position(config, account->tileset, pool), pool);
    mc_monitoring_report(config, ctx->process, account->status >= 500, pool);
}

void
mc_server_account_end(mc_server_account *of, mc_http_response *response, const mc_config *config, mc_ctx *ctx,
                      apr_pool_t *pool)
{
    const mc_account *account = &of->account;
    if (config->server_timing)
        apr_table_setn(response->headers, "Server-Timing", mc_trace_server_timing(ctx->trace, pool));
    if (account->context.sampled)
        tell_of_trace(account, response, config->server_timing, pool);
    if (of->counted || of->told) {
        const mc_answer_result result = mc_answer_classify(account);
        const mc_telemetry_answer answer = { .begin = of->begin,
                                             .duration = mc_clock_now() - of->begin,
                                             .bytes = response->body == NULL ? 0 : response->body->size,
                                             .result = mc_answer_result_name(result),
                                             .hit = result == MC_ANSWER_hit };
        if (of->counted)
            mc_answers_count(ctx->process->metrics, of->label, of->several, account, result, answer.duration);
        if (of->told)
            mc_telemetry_end(config->telemetry, account, &answer, ctx, pool);
        if (mc_monitoring_on(ctx->process))
            monitor_request(of, &answer, config, ctx, pool);
    }
    ctx->account = NULL;
    if (ctx->trace != NULL)
        mc_trace_set_account(ctx->trace, NULL);
}
