/* <service type="status">: what the process that answers is doing, and what all of them have done, as JSON; and the
 * page for operators with its own JSON. */
#include <apr_strings.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "base/workers.h"
#include "cache/memory.h"
#include "config/reload_state.h"
#include "db/sqlite/handles.h"
#include "mapcache/upkeep.h"
#include "memory/clock_cache.h"
#include "memory/shared_cache.h"
#include "service/operations/status.h"
#include "service/page_asset.h"
#include "telemetry/monitor.h"
#include "text/json_writer.h"
#include "text/secret.h"
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

static const mc_process no_process = { 0 };

/* What everybody may see who may see /status. */
static mc_error *
answer_brief_status(mc_request *request, const mc_call *call, mc_ctx *ctx, apr_pool_t *pool)
{
    const mc_process *process = ctx->process == NULL ? &no_process : ctx->process;
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

/* --- the page ----------------------------------------------------------------------------------------------------- */

static const mc_key status_keys[] = {
    MC_SERVICE_KEYS(mc_status_service),
    MC_KEY_BOOL("page", offsetof(mc_status_service, has_page),
                "Whether `/status/` has a page for operators with the last errors, the slowest requests, tilesets, "
                "sources and stores, and `/status/status.json` what the page shows. Both name what strangers should "
                "not see: who may have them is left to the web server (docs/access.md).",
                .flags = MC_KEY_OURS, .fallback = "false"),
    MC_KEY_END,
};

static mc_service *
status_from_config(const mc_service_ops *ops, const mc_node *node, mc_build *build)
{
    mc_status_service *service = apr_pcalloc(build->pool, sizeof(*service));
    if (!mc_service_read(&service->base, ops, node, build))
        return NULL;
    if (service->base.service.cors == NULL)
        service->base.service.cors = "off";
    service->jobs = mc_status_jobs_create(build->pool);
    build->status_page = build->status_page || service->has_page;
    return &service->base.service;
}

enum { REASON_MAX = 2000 /* bytes of the text of an error */ };

#define TILESETS_LISTED "30" /* where the client names no number */

static const mc_param_row page_params[] = {
    MC_PARAM_INTEGER("offset", offsetof(mc_status_params, offset), "How many tilesets of the list are left out.",
                     .min = 0, .max = 1000000, .fallback = "0", .locator = "offset",
                     .refusal = "offset is a number from {min} to {max}"),
    MC_PARAM_INTEGER("limit", offsetof(mc_status_params, limit),
                     "How many tilesets are listed at most, those with the most requests first.", .min = 0, .max = 200,
                     .fallback = TILESETS_LISTED, .locator = "limit",
                     .refusal = "limit is a number from {min} to {max}"),
    MC_PARAM_TEXT("find", offsetof(mc_status_params, find), "Only tilesets with that text in their name or title.",
                  .max = 100, .flags = MC_PARAM_EMPTY, .locator = "find", .refusal = "find has at most {max} bytes"),
    MC_PARAM_ID("request", offsetof(mc_status_params, request),
                "The number of one of the slow requests: it is answered alone, with its spans.", .min = 1,
                .locator = "request", .refusal = "request is the number of a slow request"),
    MC_PARAM_END,
};

static const mc_operation status_operations[] = {
    { "the request",
      "/status",
      { NULL },
      { { "/status", 200, "application/json", "Uptime, memory, threads, stores and whether they work, counters.",
          NULL } } },
    { "the page for operators",
      "/status/status.json",
      { page_params },
      { { "/status/", 200, "text/html", "The page; where `<page>` is true.", NULL },
        { "/status/status.json?limit=10", 200, "application/json", "What the page shows.", NULL },
        { "/status/status.json?request=1000000", 404, "application/json", "No such request is kept any more.",
          NULL } } },
    { 0 },
};

/* Why the configuration file cannot be used as it is now. */
static void
write_reload_failure(mc_json_writer *json, const mc_reload_state *state, apr_pool_t *pool)
{
    mc_json_open_object(json, "failure");
    mc_json_integer(json, "time", state->tried / 1000);
    mc_json_string(json, "where", state->where);
    mc_json_string(json, "reason", mc_hide_passwords(apr_pstrndup(pool, state->error, REASON_MAX), NULL, pool));
    mc_json_close(json);
}

static void
write_page_configuration(mc_json_writer *json, const mc_call *call, const mc_process *process, apr_pool_t *pool)
{
    const mc_reload_state reload = mc_reload_states_find(process->reloads, call->config->file, pool);
    char file[128];
    mc_monitor_copy_path(file, sizeof(file), call->config->file);
    mc_json_open_object(json, "configuration");
    mc_json_string(json, "file", file);
    mc_json_string(json, "modified", mc_http_date(apr_time_sec(call->config->mtime), pool));
    mc_json_integer(json, "layers", call->config->tilesets->nelts);
    if (reload.failed)
        write_reload_failure(json, &reload, pool);
    mc_json_close(json);
}

static mc_error *
answer_page_overview(mc_request *request, const mc_status_params *params, const mc_call *call, mc_ctx *ctx,
                     apr_pool_t *pool)
{
    const mc_process *process = ctx->process == NULL ? &no_process : ctx->process;
    mc_json_writer *json = mc_json_create(MC_JSON_DENSE, pool);
    mc_json_open_object(json, NULL);
    mc_json_string(json, "version", MC_VERSION);
    mc_json_integer(json, "time", apr_time_now() / 1000);
    mc_json_integer(json, "clock_ms", mc_clock_now() / 1000);
    mc_json_integer(json, "started", mc_metrics_started(process->metrics) / 1000);
    write_page_configuration(json, call, process, pool);
    mc_status_write_requests(json, process->metrics);
    mc_status_write_tilesets(json, params, call, process->metrics, pool);
    mc_status_write_processes(json, process->metrics, pool);
    write_status_shared_memory(json, process);
    mc_status_write_jobs(json, (mc_status_service *)call->service, call->config, ctx, pool);
    mc_status_write_slow(json, process->metrics, pool);
    mc_status_write_errors(json, process->metrics, pool);
    write_status_counters(json, process->metrics);
    mc_json_close(json);
    return mc_operations_respond_json(request, json);
}

static mc_error *
answer_page_json(mc_request *request, const mc_call *call, mc_ctx *ctx, apr_pool_t *pool)
{
    const mc_process *process = ctx->process == NULL ? &no_process : ctx->process;
    mc_status_params params = { 0 };
    MC_TRY(mc_params_read(&params, page_params, call, pool));
    if (params.request == 0)
        return answer_page_overview(request, &params, call, ctx, pool);
    mc_json_writer *json = mc_json_create(MC_JSON_DENSE, pool);
    mc_json_open_object(json, NULL);
    if (!mc_status_write_slow_request(json, params.request, process->metrics, pool))
        return mc_error_create(pool, MC_ERR_NOT_FOUND, "no such request is kept any more");
    mc_json_close(json);
    return mc_operations_respond_json(request, json);
}

static mc_error *
status_parse(mc_request *request, const mc_call *call, mc_ctx *ctx, apr_pool_t *pool)
{
    const char *path = call->full_path;
    if (strcmp(path, "status") == 0)
        return answer_brief_status(request, call, ctx, pool);
    if (((const mc_status_service *)call->service)->has_page && strncmp(path, "status/", 7) == 0) {
        if (path[7] == '\0') {
            mc_request_page(request, mc_status_page(call, pool));
            request->u.document.momentary = true;
            return MC_OK;
        }
        if (strcmp(path + 7, "status.json") == 0)
            return answer_page_json(request, call, ctx, pool);
        if (strncmp(path + 7, "static/", 7) == 0)
            return mc_status_static(request, path + 14, pool);
    }
    return mc_error_create(pool, MC_ERR_NOT_FOUND, "no service answers to the path \"%s\"", path);
}

const mc_service_ops mc_service_status = {
    MC_SERVICE(status, "status", status_keys, status_from_config,
               "What the server is doing and has done: as JSON, and as a page for operators."),
    .unlisted = true,
    .report = mc_operations_report,
};
