/* See monitoring.h. */
#include "server/monitoring.h"

#include <apr_strings.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/account.h"
#include "base/budget.h"
#include "base/clock.h"
#include "base/workers.h"
#include "cache/memory.h"
#include "cache/write_behind.h"
#include "changes/changes.h"
#include "config/reload_state.h"
#include "db/postgres/postgres.h"
#include "db/sqlite/handles.h"
#include "http/http.h"
#include "http/http_breakers.h"
#include "memory/clock_cache.h"
#include "remote/remote.h"
#include "telemetry/incidents.h"
#include "telemetry/process_reports.h"
#include "text/secret.h"

/* Microseconds between two reports of a process: usually, and where requests fail. Who refuses thousands of requests a
 * second has no time for as many reports. */
#define REPORT_PAUSE APR_USEC_PER_SEC
#define ERROR_PAUSE (APR_USEC_PER_SEC / 100)

/* A server that nobody has asked for so long is of no interest: microseconds. */
#define AWAY_TIME (300 * APR_USEC_PER_SEC)

const char *
mc_monitoring_position(const mc_config *config, const char *tileset, apr_pool_t *pool)
{
    if (tileset == NULL || config->tilesets_by_name == NULL)
        return NULL;
    const mc_tileset *found = apr_hash_get(config->tilesets_by_name, tileset, APR_HASH_KEY_STRING);
    if (found == NULL)
        found = apr_hash_get(config->tilesets_by_name, tileset, (apr_ssize_t)strcspn(tileset, ","));
    if (found == NULL || found->position.file == NULL)
        return NULL;
    return apr_psprintf(pool, "%s:%d", found->position.file, found->position.line);
}

/* The mc_log_tap. */
static void
note_incident(const mc_ctx *ctx, mc_log_level level, const char *message)
{
    mc_monitor *monitor = mc_monitor_of(ctx->process->metrics);
    if (monitor == NULL)
        return;
    const mc_account *account = ctx->account;
    const char *position = account == NULL || account->config == NULL
                               ? NULL
                               : mc_monitoring_position(account->config, account->tileset, ctx->pool);
    mc_incident *incident = apr_palloc(ctx->pool, sizeof(*incident));
    mc_incident_describe(incident, level, message, account, position, ctx->pool);
    mc_incidents_add(monitor, incident);
}

/* --- how this process is ------------------------------------------------------------------------------------------ */

/* The next free place of a report; NULL: all are taken. */
static mc_backend_report *
add_backend_report(mc_process_report *report, mc_backend_kind kind, mc_backend_state state, const char *name)
{
    if (report->count == MC_BACKEND_REPORTS_MAX) {
        report->apart++;
        return NULL;
    }
    mc_backend_report *backend = &report->backends[report->count++];
    memset(backend, 0, sizeof(*backend));
    backend->kind = kind;
    backend->state = state;
    mc_monitor_copy_text(backend->name, sizeof(backend->name), name);
    return backend;
}

static void
describe_backend_position(mc_backend_report *backend, const mc_position *position, apr_pool_t *pool)
{
    if (position->file != NULL)
        mc_monitor_copy_path(backend->position, sizeof(backend->position),
                             apr_psprintf(pool, "%s:%d", position->file, position->line));
}

static void
report_stores(mc_process_report *report, const mc_config *config, uint32_t model, bool failing, apr_pool_t *pool)
{
    for (int i = 0; i < config->caches->nelts; i++) {
        const mc_cache *cache = APR_ARRAY_IDX(config->caches, i, const mc_cache *);
        const bool fails = atomic_load(&cache->state.fails), asked = atomic_load(&cache->state.asked);
        mc_backend_report *backend = fails != failing ? NULL
                                                      : add_backend_report(report, MC_BACKEND_STORE,
                                                                           fails   ? MC_BACKEND_FAILS
                                                                           : asked ? MC_BACKEND_WORKS
                                                                                   : MC_BACKEND_UNASKED,
                                                                           cache->name);
        if (backend == NULL)
            continue;
        backend->model = model;
        backend->error = atomic_load(&cache->state.kind);
        backend->failures = atomic_load(&cache->state.failures);
        backend->failed = atomic_load(&cache->state.failed);
        mc_monitor_copy_text(backend->type, sizeof(backend->type), cache->ops->type);
        describe_backend_position(backend, &cache->position, pool);
    }
}

static void
report_sources(mc_process_report *report, const mc_config *config, uint32_t model, bool failing, apr_pool_t *pool)
{
    for (apr_hash_index_t *i = apr_hash_first(pool, config->sources); i != NULL; i = apr_hash_next(i)) {
        const mc_source *source = apr_hash_this_val(i);
        const bool fails = atomic_load(&source->state.fails);
        const uint64_t calls = atomic_load(&source->state.calls);
        mc_backend_report *backend = fails != failing ? NULL
                                                      : add_backend_report(report, MC_BACKEND_SOURCE,
                                                                           fails       ? MC_BACKEND_FAILS
                                                                           : calls > 0 ? MC_BACKEND_WORKS
                                                                                       : MC_BACKEND_UNASKED,
                                                                           source->name);
        if (backend == NULL)
            continue;
        backend->model = model;
        backend->calls = calls;
        backend->error = atomic_load(&source->state.kind);
        backend->failures = atomic_load(&source->state.failures);
        backend->failed = atomic_load(&source->state.failed);
        mc_monitor_copy_text(backend->type, sizeof(backend->type), source->ops->type);
        describe_backend_position(backend, &source->position, pool);
    }
}

static void
report_away_server(void *baton, const char *name, bool works)
{
    (void)add_backend_report(baton, MC_BACKEND_SERVER, works ? MC_BACKEND_WORKS : MC_BACKEND_FAILS, name);
}

static void
report_servers(mc_process_report *report, const mc_process *process)
{
    const apr_time_t since = mc_clock_now() - AWAY_TIME;
    if (process->remotes != NULL)
        mc_remotes_visit(process->remotes, since, report_away_server, report);
    if (process->http != NULL)
        mc_http_breakers_visit(mc_http_breakers_of(process->http), since, report_away_server, report);
    if (process->postgres != NULL)
        mc_postgres_visit_servers(process->postgres, report_away_server, report);
}

typedef struct log_reporting {
    mc_process_report *report;
    apr_pool_t *pool;
} log_reporting;

static void
report_change_log(void *baton, const mc_changes_state *state)
{
    const log_reporting *reporting = baton;
    mc_backend_report *backend =
        add_backend_report(reporting->report, MC_BACKEND_LOG, state->connected ? MC_BACKEND_WORKS : MC_BACKEND_FAILS,
                           mc_hide_address_password(state->connection, reporting->pool));
    if (backend == NULL)
        return;
    backend->leads = state->leads;
    backend->read = state->read;
}

/* Bytes of the memory of this process, by the kernel; 0: it does not tell. */
static int64_t
resident_memory(void)
{
    char line[128], *end;
    FILE *file = fopen("/proc/self/statm", "re");
    const bool read = file != NULL && fgets(line, sizeof(line), file) != NULL;
    if (file != NULL)
        fclose(file);
    if (!read)
        return 0;
    (void)strtoll(line, &end, 10); /* of all addresses */
    return (int64_t)strtoll(end, NULL, 10) * sysconf(_SC_PAGESIZE);
}

static void
report_process(mc_process_report *report, const mc_config *config, const mc_process *process)
{
    mc_clock_cache_statistics known = { 0 };
    mc_memory_stat(process->memory, &known);
    report->modified = config->mtime;
    report->draining = atomic_load(&process->draining);
    report->reload_failed = mc_reload_states_any_failed(process->reloads);
    report->resident = resident_memory();
    report->budget_used = (int64_t)mc_budget_used();
    report->budget = (int64_t)mc_budget_limit();
    report->memory_used = (int64_t)known.bytes;
    report->memory = (int64_t)known.max_bytes;
    report->behind = (int64_t)mc_write_behinds_waiting(process->write_behinds);
    report->workers = mc_workers_count(process->workers);
    report->workers_idle = mc_workers_idle(process->workers);
    report->io_workers = mc_workers_count(process->io);
    report->io_workers_idle = mc_workers_idle(process->io);
    report->open_files = process->handles == NULL ? 0 : mc_handles_open(process->handles);
}

/* Of many things those that fail come first, before there is no more room. */
static void
report_everything(const mc_config *config, mc_process *process, mc_monitor *monitor, apr_pool_t *pool)
{
    mc_process_report *report = apr_pcalloc(pool, sizeof(*report));
    log_reporting logs = { report, pool };
    const uint32_t model = mc_process_reports_model(config->file);
    report_process(report, config, process);
    if (process->changes != NULL) {
        mc_changes_visit(process->changes, report_change_log, &logs);
        const mc_marks_statistics marks = mc_changes_marks(process->changes);
        report->marks = marks.entries + marks.rectangles;
    }
    for (int failing = 1; failing >= 0; failing--) {
        report_stores(report, config, model, failing == 1, pool);
        report_sources(report, config, model, failing == 1, pool);
        if (failing == 1)
            report_servers(report, process);
    }
    mc_process_reports_put(monitor, report, model);
}

static void
report_after(apr_interval_time_t pause, const mc_config *config, mc_process *process, apr_pool_t *pool)
{
    mc_monitor *monitor = mc_monitor_of(process->metrics);
    if (monitor == NULL || !mc_process_reports_due(mc_clock_now(), pause))
        return;
    apr_pool_t *scratch;
    apr_pool_create(&scratch, pool);
    report_everything(config, process, monitor, scratch);
    apr_pool_destroy(scratch);
}

void
mc_monitoring_report(const mc_config *config, mc_process *process, bool failed, apr_pool_t *pool)
{
    report_after(failed ? ERROR_PAUSE : REPORT_PAUSE, config, process, pool);
}

void
mc_monitoring_follow(const mc_config *config, mc_process *process)
{
    if (config->status_page)
        atomic_store(&process->tap, note_incident);
    if (!mc_monitoring_on(process))
        return;
    apr_pool_t *pool;
    apr_pool_create_unmanaged_ex(&pool, mc_memory_exhausted, NULL);
    report_after(0, config, process, pool);
    apr_pool_destroy(pool);
}
