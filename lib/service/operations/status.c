/* <service type="status">: what the process that answers is doing, and what all of them have done, as JSON. */
#include <apr_strings.h>
#include <string.h>
#include <unistd.h>

#include "base/clock_cache.h"
#include "base/metrics.h"
#include "base/workers.h"
#include "db/sqlite/handles.h"
#include "service/operations/operations.h"
#include "text/text.h"

static mc_service *
status_from_config(const mc_node *node, mc_build *build)
{
    return mc_operations_from_config(&mc_service_status, node, build);
}

static const char *
format_status_counters(const mc_metrics *metrics, apr_pool_t *pool)
{
    static const char *const names[] = {
#define X(name, help) #name,
        MC_COUNTERS(X)
#undef X
    };
    apr_array_header_t *parts = apr_array_make(pool, MC_COUNTER_COUNT, sizeof(const char *));
    for (int i = 0; i < MC_COUNTER_COUNT; i++)
        APR_ARRAY_PUSH(parts, const char *) =
            apr_psprintf(pool, "%s\"%s\":%" APR_UINT64_T_FMT, i == 0 ? "" : ",", names[i],
                         (apr_uint64_t)mc_counter_value(metrics, (mc_counter)i));
    return apr_array_pstrcat(pool, parts, '\0');
}

static const char *
format_status_memory(const mc_process *process, apr_pool_t *pool)
{
    mc_clock_cache_statistics known = { 0 };
    mc_memory_stat(process->memory, &known);
    return apr_psprintf(
        pool, "{\"bytes\":%" APR_SIZE_T_FMT ",\"most_bytes\":%" APR_SIZE_T_FMT ",\"entries\":%" APR_SIZE_T_FMT "}",
        known.bytes, known.max_bytes, known.entries);
}

static const char *
this_process(const mc_process *process, apr_pool_t *pool)
{
    return apr_psprintf(pool,
                        "{\"id\":%ld,\"memory\":%s,\"open_files\":%d,"
                        "\"workers\":{\"threads\":%d,\"idle\":%d},\"io_workers\":{\"threads\":%d,\"idle\":%d}}",
                        (long)getpid(), format_status_memory(process, pool),
                        process->handles == NULL ? 0 : mc_handles_open(process->handles),
                        mc_workers_count(process->workers), mc_workers_idle(process->workers),
                        mc_workers_count(process->io), mc_workers_idle(process->io));
}

static mc_error *
status_parse(mc_request *request, const mc_call *call, mc_ctx *ctx, apr_pool_t *pool)
{
    static const mc_process nothing = { 0 };
    MC_TRY(mc_operations_check(call, pool));
    const mc_process *process = ctx->process == NULL ? &nothing : ctx->process;
    const mc_config *config = call->config;
    apr_time_t started = mc_metrics_started(process->metrics);
    const char *text = apr_psprintf(
        pool,
        "{\"version\":\"%s\",\"uptime_seconds\":%" APR_TIME_T_FMT ",\"configuration\":{\"modified\":\"%s\","
        "\"layers\":%d,\"caches\":%d,\"grids\":%d},\"process\":%s,\"counters\":{%s}}\n",
        MC_VERSION, started == 0 ? 0 : apr_time_sec(apr_time_now() - started),
        mc_http_date(apr_time_sec(config->mtime), pool), config->tilesets->nelts, config->caches->nelts,
        config->grids->nelts, this_process(process, pool), format_status_counters(process->metrics, pool));
    return mc_operations_respond_text(request, text, "application/json", pool);
}

const mc_service_ops mc_service_status = {
    "status",
    "status",
    mc_service_plain_keys,
    "What the server is doing and has done, as JSON.",
    status_from_config,
    status_parse,
    NULL,
};
