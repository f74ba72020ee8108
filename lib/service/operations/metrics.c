/* <service type="metrics">: the counters and histograms of all processes of the server, in OpenMetrics 1.0 text, or as
 * Prometheus' older text format (0.0.4) where a client does not ask for the new one. */
#include "base/metrics.h"
#include "base/budget.h"

#include <string.h>

#include "cache/memory.h"
#include "cache/write_behind.h"
#include "config/reload_state.h"
#include "mapcache/upkeep.h"
#include "memory/clock_cache.h"
#include "memory/shared_cache.h"
#include "service/operations/operations.h"
#include "telemetry/answers.h"

enum { TEXT_MAX = 16 << 20 }; /* of a thousand tilesets */

static int64_t
quota_limit(const mc_cache_quota *state)
{
    return state->limit;
}

static int64_t
quota_bytes(const mc_cache_quota *state)
{
    return state->bytes;
}

static int64_t
quota_age(const mc_cache_quota *state)
{
    return state->oldest < 0 ? 0 : state->oldest;
}

static const struct {
    const char *name, *help;
    int64_t (*value)(const mc_cache_quota *state);
} quota_gauges[] = {
    { "quota_limit_bytes", "The max_size of a cache.", quota_limit },
    { "quota_used_bytes", "Bytes that the tiles of a cache with max_size take up.", quota_bytes },
    { "quota_oldest_seconds", "Seconds since the tiles were used that are removed next; 0: not known.", quota_age },
};

/* Of caches with <max_size>; one whose books cannot be read now is left out. */
static mc_error *
write_quota_gauges(mc_buf *text, const mc_config *config, mc_ctx *ctx, apr_pool_t *pool)
{
    const int caches = config->caches->nelts;
    mc_cache_quota *states = apr_pcalloc(pool, sizeof(*states) * (size_t)(caches + 1));
    int limited = 0;
    for (int i = 0; i < caches; i++) {
        const mc_cache *cache = APR_ARRAY_IDX(config->caches, i, mc_cache *);
        mc_error *error = cache->quota == NULL ? MC_OK : mc_cache_quota_look(&states[i], cache, ctx);
        if (error != MC_OK) {
            mc_log_error(ctx, MC_LOG_INFO, error);
            states[i].limit = 0;
        }
        limited += states[i].limit > 0;
    }
    for (size_t g = 0; limited > 0 && g < sizeof(quota_gauges) / sizeof(*quota_gauges); g++) {
        MC_TRY(mc_metrics_write_family(text, quota_gauges[g].name, quota_gauges[g].help, pool));
        for (int i = 0; i < caches; i++)
            if (states[i].limit > 0)
                MC_TRY(mc_metrics_write_labelled(text, quota_gauges[g].name, "cache",
                                                 APR_ARRAY_IDX(config->caches, i, mc_cache *)->name,
                                                 quota_gauges[g].value(&states[i]), pool));
    }
    return MC_OK;
}

/* Of the memory that processes share, or of that of the answering process. */
static mc_error *
write_memory_gauges(mc_buf *text, const mc_process *process, apr_pool_t *pool)
{
    struct mc_memory *memory = process == NULL ? NULL : process->memory;
    const struct mc_shared_cache *shared = memory == NULL ? NULL : mc_memory_shared(memory);
    mc_clock_cache_statistics own = { 0 };
    mc_shared_statistics all;
    mc_memory_stat(memory, &own);
    mc_shared_cache_stat(&all, shared);
    MC_TRY(mc_metrics_write_gauge(text, "memory_cache_limit_bytes",
                                  "Bytes that memory_cache may take: stored tiles of all processes, where they share "
                                  "their memory, else everything that the answering process remembers.",
                                  shared == NULL ? own.max_bytes : all.max_bytes, pool));
    return mc_metrics_write_gauge(text, "memory_cache_bytes", "Bytes of it in use.",
                                  shared == NULL ? own.bytes : all.bytes, pool);
}

/* Of the configuration that answers. */
static mc_error *
write_reload_gauges(mc_buf *text, const mc_config *config, const mc_process *process, apr_pool_t *pool)
{
    const mc_reload_state state = mc_reload_states_find(process == NULL ? NULL : process->reloads, config->file, pool);
    MC_TRY(mc_metrics_write_gauge(text, "config_reload_failed",
                                  "1: the newest configuration cannot be used, and an older one answers; 0: it does.",
                                  state.failed, pool));
    return mc_metrics_write_gauge(text, "config_loaded_timestamp_seconds",
                                  "When the configuration that answers was loaded, since 1970.",
                                  (uint64_t)apr_time_sec(state.loaded), pool);
}

static mc_error *
metrics_parse(mc_request *request, const mc_call *call, mc_ctx *ctx, apr_pool_t *pool)
{
    MC_TRY(mc_operations_check(call, pool));
    const char *accept = call->http->headers == NULL ? NULL : apr_table_get(call->http->headers, "Accept");
    bool open = accept != NULL && strstr(accept, "application/openmetrics-text") != NULL;
    mc_buf *text = mc_buf_attach(mc_buf_create(0, TEXT_MAX), pool);
    MC_TRY(mc_metrics_write_gauge(text, "memory_budget_bytes",
                                  "Bytes that large allocations of the answering process may take; 0: any.",
                                  mc_budget_limit(), pool));
    MC_TRY(mc_metrics_write_gauge(text, "memory_used_bytes",
                                  "Bytes that large allocations of the answering process take.", mc_budget_used(),
                                  pool));
    MC_TRY(mc_metrics_write_gauge(text, "behind_waiting_bytes",
                                  "Bytes of tiles of the answering process that wait to be stored behind the answer.",
                                  ctx->process == NULL ? 0 : mc_write_behinds_waiting(ctx->process->write_behinds),
                                  pool));
    MC_TRY(write_memory_gauges(text, ctx->process, pool));
    MC_TRY(write_reload_gauges(text, call->config, ctx->process, pool));
    MC_TRY(write_quota_gauges(text, call->config, ctx, pool));
    struct mc_metrics *metrics = ctx->process == NULL ? NULL : ctx->process->metrics;
    const mc_metrics_format format = open ? MC_METRICS_OPEN : MC_METRICS_PLAIN;
    MC_TRY(mc_answers_write(metrics, format, text, pool));
    MC_TRY(mc_metrics_write(metrics, format, text, pool));
    mc_operations_respond(request, text,
                          open ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                               : "text/plain; version=0.0.4; charset=utf-8");
    request->u.document.vary = "Accept";
    return MC_OK;
}

MC_OPERATORS_OPERATION(metrics, "text/plain", "As Prometheus reads it; as OpenMetrics where `Accept` asks for that.");

const mc_service_ops mc_service_metrics = {
    MC_OPERATORS_SERVICE(metrics,
                         "Counters and histograms of the server, for Prometheus and what reads the same format."),
};
