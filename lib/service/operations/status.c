/* <service type="status">: what the process that answers is doing, and what all of them have done, as JSON. */
#include <apr_strings.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "base/workers.h"
#include "cache/memory.h"
#include "db/sqlite/handles.h"
#include "mapcache/upkeep.h"
#include "memory/clock_cache.h"
#include "memory/shared_cache.h"
#include "service/operations/operations.h"
#include "text/json_writer.h"
#include "text/text.h"

static void
write_status_counters(mc_json_writer *json, const mc_metrics *metrics)
{
    mc_json_open_object(json, "counters");
    for (int i = 0; mc_counter_at(i) != NULL; i++)
        mc_json_integer(json, mc_counter_at(i)->name, (int64_t)mc_counter_value(metrics, mc_counter_at(i)));
    mc_json_close(json);
}

static void
write_status_memory(mc_json_writer *json, const mc_process *process)
{
    mc_clock_cache_statistics known = { 0 };
    mc_memory_stat(process->memory, &known);
    mc_json_open_object(json, "memory");
    mc_json_integer(json, "bytes", (int64_t)known.bytes);
    mc_json_integer(json, "most_bytes", (int64_t)known.max_bytes);
    mc_json_integer(json, "entries", (int64_t)known.entries);
    mc_json_close(json);
}

/* Of all processes together, where they share it. */
static void
write_status_shared_memory(mc_json_writer *json, const mc_process *process)
{
    const struct mc_shared_cache *shared = process->memory == NULL ? NULL : mc_memory_shared(process->memory);
    mc_shared_statistics known;
    if (shared == NULL)
        return;
    mc_shared_cache_stat(&known, shared);
    mc_json_open_object(json, "shared_memory");
    mc_json_integer(json, "bytes", (int64_t)known.bytes);
    mc_json_integer(json, "most_bytes", (int64_t)known.max_bytes);
    mc_json_integer(json, "entries", (int64_t)known.entries);
    mc_json_integer(json, "evictions", (int64_t)known.evictions);
    mc_json_integer(json, "emptied", (int64_t)known.emptied);
    mc_json_integer(json, "given_up", (int64_t)known.busy);
    mc_json_close(json);
}

static void
write_status_workers(mc_json_writer *json, const char *key, const mc_workers *workers)
{
    mc_json_open_object(json, key);
    mc_json_integer(json, "threads", mc_workers_count(workers));
    mc_json_integer(json, "idle", mc_workers_idle(workers));
    mc_json_close(json);
}

static void
write_status_process(mc_json_writer *json, const mc_process *process)
{
    mc_json_open_object(json, "process");
    mc_json_integer(json, "id", getpid());
    write_status_memory(json, process);
    mc_json_integer(json, "open_files", process->handles == NULL ? 0 : mc_handles_open(process->handles));
    write_status_workers(json, "workers", process->workers);
    write_status_workers(json, "io_workers", process->io);
    mc_json_close(json);
}

static void
write_status_configuration(mc_json_writer *json, const mc_config *config, apr_pool_t *pool)
{
    mc_json_open_object(json, "configuration");
    mc_json_string(json, "modified", mc_http_date(apr_time_sec(config->mtime), pool));
    mc_json_integer(json, "layers", config->tilesets->nelts);
    mc_json_integer(json, "caches", config->caches->nelts);
    mc_json_integer(json, "grids", config->grids->nelts);
    mc_json_close(json);
}

/* Of each cache of the configuration, as this process has found its store. No path, no server: who asks may be a
 * stranger. */
static void
write_status_stores(mc_json_writer *json, const mc_config *config)
{
    mc_json_open_array(json, "stores");
    for (int i = 0; i < config->caches->nelts; i++) {
        const mc_cache *cache = APR_ARRAY_IDX(config->caches, i, const mc_cache *);
        const mc_store_state *state = &cache->state;
        const bool asked = atomic_load(&state->asked), fails = atomic_load(&state->fails);
        mc_json_open_object(json, NULL);
        mc_json_string(json, "cache", cache->name);
        mc_json_string(json, "type", cache->ops->type);
        mc_json_string(json, "state", !asked ? "unasked" : fails ? "fails" : "works");
        mc_json_integer(json, "failures", (int64_t)atomic_load(&state->failures));
        if (fails) {
            mc_json_integer(json, "failed_seconds_ago", apr_time_sec(mc_clock_now() - atomic_load(&state->failed)));
            mc_json_string(json, "failure", mc_error_name((mc_error_kind)atomic_load(&state->kind)));
        }
        mc_json_close(json);
    }
    mc_json_close(json);
}

/* Of caches with <max_size>. */
static void
write_status_quotas(mc_json_writer *json, const mc_config *config, mc_ctx *ctx)
{
    mc_json_open_array(json, "quotas");
    for (int i = 0; i < config->caches->nelts; i++) {
        const mc_cache *cache = APR_ARRAY_IDX(config->caches, i, mc_cache *);
        mc_cache_quota state;
        if (cache->quota == NULL)
            continue;
        mc_error *error = mc_cache_quota_look(&state, cache, ctx);
        mc_json_open_object(json, NULL);
        mc_json_string(json, "cache", cache->name);
        mc_json_integer(json, "limit_bytes", cache->max_size);
        if (error == MC_OK) {
            mc_json_integer(json, "bytes", state.bytes);
            mc_json_integer(json, "removed_tiles", state.removed);
            if (state.oldest >= 0)
                mc_json_integer(json, "oldest_seconds", state.oldest);
            mc_json_boolean(json, "looked_through", state.complete);
        } else {
            mc_log_error(ctx, MC_LOG_INFO, error);
            mc_json_string(json, "failure", mc_error_name(error->kind)); /* no path: who asks may be a stranger */
        }
        mc_json_close(json);
    }
    mc_json_close(json);
}

static mc_error *
status_parse(mc_request *request, const mc_call *call, mc_ctx *ctx, apr_pool_t *pool)
{
    static const mc_process nothing = { 0 };
    MC_TRY(mc_operations_check(call, pool));
    const mc_process *process = ctx->process == NULL ? &nothing : ctx->process;
    apr_time_t started = mc_metrics_started(process->metrics);
    mc_json_writer *json = mc_json_create(MC_JSON_DENSE, pool);
    mc_json_open_object(json, NULL);
    mc_json_string(json, "version", MC_VERSION);
    mc_json_integer(json, "uptime_seconds", started == 0 ? 0 : apr_time_sec(apr_time_now() - started));
    write_status_configuration(json, call->config, pool);
    write_status_process(json, process);
    write_status_shared_memory(json, process);
    write_status_stores(json, call->config);
    write_status_quotas(json, call->config, ctx);
    write_status_counters(json, process->metrics);
    mc_json_close(json);
    return mc_operations_respond_json(request, json);
}

MC_OPERATORS_OPERATION(status, "application/json", "Uptime, memory, threads, stores and whether they work, counters.");

const mc_service_ops mc_service_status = {
    MC_OPERATORS_SERVICE(status, "What the server is doing and has done, as JSON."),
};
