/* What a process owns, built after the fork: workers, handles, connections, memory. Its budgets are divided by the
 * number of processes. */
#include <malloc.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>

#include "base/admission.h"
#include "base/budget.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "base/semaphore.h"
#include "base/workers.h"
#include "cache/memory.h"
#include "cache/quota/quota.h"
#include "cache/write_behind.h"
#include "cdn/purgers.h"
#include "changes/changes.h"
#include "config/reload_state.h"
#include "db/postgres/postgres.h"
#include "db/sqlite/handles.h"
#include "draw/raster/plane.h"
#include "footprint/coverage_index.h"
#include "footprint/folder_watch.h"
#include "http/http.h"
#include "map/ahead.h"
#include "mapcache/cache.h"
#include "mapcache/server.h"
#include "memory/clock_cache.h"
#include "memory/scratch.h"
#include "memory/shared_cache.h"
#include "overview/update/overview_follower.h"
#include "remote/remote.h"
#include "server/expire_folder.h"
#include "server/server_private.h"
#include "service/documents.h"
#include "service/operations/probes.h"
#include "telemetry/answers.h"
#include "telemetry/exporter.h"
#include "telemetry/process_reports.h"
#include "tileset/refresh.h"

/* Connections to origins that are kept open while idle. */
#define IDLE_CONNECTIONS 16
#define PROVISIONAL_BYTES (16 << 20) /* of tiles that are not to be stored, at most */

/* Connections to a PostgreSQL server of all processes together: below its default max_connections of 100. */
#define POSTGRES_CONNECTIONS 64

/* One of so many threads of a front end stays free of requests that draw or wait, where it has many. With few, who
 * comes late is better off waiting for a thread than being refused. */
#define SPARE_SHARE 8
#define SPARE_FROM 64

struct mc_runtime {
    mc_process process;
    bool metrics_shared;
};

static int
limit_open_files(const mc_config *config)
{
    struct rlimit limit;
    rlim_t files = (rlim_t)config->open_files;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && files > limit.rlim_cur / 4)
        files = limit.rlim_cur / 4;
    return files < 16 ? 16 : (int)files;
}

/*
 * glibc by default gives memory back after each map and takes it again for the next, and keeps a heap for each thread
 * that ever allocated: a few megabytes kept in a few heaps cost neither time nor memory.
 */
static void
set_up_malloc(void)
{
    mallopt(M_TRIM_THRESHOLD, 4 << 20);
    mallopt(M_MMAP_THRESHOLD, 1 << 20);
    mallopt(M_ARENA_MAX, 2 * mc_processors());
}

apr_int64_t
mc_config_memory(const mc_config *config)
{
    const size_t most = (size_t)4 << 30, share = mc_machine_memory() / 8;
    if (config->memory_cache >= 0)
        return config->memory_cache;
    return (apr_int64_t)(share < most ? share : most);
}

/* Of it, what stored tiles have for themselves where processes share them. Footprints save more than stored tiles. */
static apr_int64_t
shared_memory_of_server(const mc_config *config)
{
    for (int i = 0; i < config->tilesets->nelts; i++)
        if (APR_ARRAY_IDX(config->tilesets, i, const mc_tileset *)->assembly != MC_ASSEMBLE_NONE)
            return mc_config_memory(config) / 4;
    return mc_config_memory(config) / 4 * 3;
}

/* Answers of catalogues are small, and a map asks for the same ones again: a little room for them beside the tiles. */
static mc_clock_cache *
query_results_create(apr_int64_t memory)
{
    const apr_int64_t least = 1 << 20, most = 32 << 20, share = memory / 8;
    if (memory <= 0)
        return NULL;
    return mc_clock_cache_create((size_t)(share < least ? least : share > most ? most : share));
}

static bool
has_sources(const mc_config *config)
{
    for (int i = 0; i < config->tilesets->nelts; i++)
        if (APR_ARRAY_IDX(config->tilesets, i, mc_tileset *)->source != NULL)
            return true;
    return false;
}

int
mc_config_connections(const mc_config *config, int processes)
{
    int connections = config->max_connections < POSTGRES_CONNECTIONS ? config->max_connections : POSTGRES_CONNECTIONS;
    /* Two at least, unless one is configured: a query that is being cancelled does not block the next one. */
    int share = connections / processes;
    return share < 2 && connections > 1 ? 2 : share;
}

/* Loads what the first request would have to wait for. A module that is not to be had is that request's affair. */
static void
load_modules(const mc_process *process, const mc_config *config, const mc_log *log, apr_pool_t *pool)
{
    if (config->databases->nelts == 0)
        return;
    mc_error *error = mc_postgres_load(process->postgres, pool);
    mc_ctx ctx = { .pool = pool, .log = log };
    if (error != MC_OK)
        mc_log_error(&ctx, MC_LOG_WARN, error);
}

static void
forget_idle_memory(void)
{
    mc_scratch_forget();
    mc_planes_forget();
}

static _Atomic(mc_metrics *) refusal_metrics; /* NULL: not counted */

static void
count_memory_refusal(void)
{
    mc_count(atomic_load(&refusal_metrics), MC_COUNT_memory_refused_total, 1);
}

static const mc_budget_hooks budget_hooks = { forget_idle_memory, count_memory_refusal };

/* What large allocations of a process may take: the configured budget's share, and room for the tiles that memory
 * keeps, so that they never leave requests without any. */
static size_t
budget_of_process(const mc_config *config, int processes)
{
    const size_t least = (size_t)256 << 20;
    size_t kept = (size_t)(mc_config_memory(config) / processes);
    if (config->memory_budget > 0)
        return (size_t)config->memory_budget / (size_t)processes + kept;
    size_t share = mc_machine_memory() / 4 * 3 / (size_t)processes;
    return (share > least ? share : least) + kept;
}

/* Room for capabilities: those of a thousand layers take ten megabytes, and as much for each address of clients. */
static size_t
documents_of_process(const mc_config *config, int processes)
{
    const size_t most = (size_t)64 << 20, share = budget_of_process(config, processes) / 8;
    return share < most ? share : most;
}

mc_error *
mc_runtime_create(mc_runtime **runtime, const mc_config *config, int processes, bool threads, const mc_log *log,
                  apr_pool_t *pool)
{
    if (processes < 1)
        processes = 1;
    *runtime = apr_pcalloc(pool, sizeof(**runtime));
    set_up_malloc();
    if (threads)
        mc_environment_close();
    mc_process *process = &(*runtime)->process;
    int workers = !threads ? 0 : config->workers >= 0 ? config->workers : mc_processors() / processes;
    int io = threads && has_sources(config) ? config->io_workers : 0;
    process->handles = mc_handles_create(limit_open_files(config)); /* makes room for its files: before any thread */
    MC_TRY(mc_workers_create(&process->workers, workers, pool));
    MC_TRY(mc_workers_create(&process->io, io, pool));
    process->admissions = mc_admissions_create();
    process->drawing = mc_semaphore_create(mc_processors() / processes + 1);
    process->metrics = mc_runtime_metrics_create();
    process->exporter = threads ? mc_exporter_create(process) : NULL;
    process->http = mc_http_create(IDLE_CONNECTIONS);
    process->postgres =
        mc_postgres_create(mc_config_connections(config, processes), processes, config->idle_connection_time, threads);
    process->remotes = mc_remotes_create();
    process->flights = mc_flights_create();
    atomic_store(&refusal_metrics, process->metrics);
    mc_budget_set(budget_of_process(config, processes), &budget_hooks);
    process->memory = mc_memory_create(mc_config_memory(config) / processes);
    process->watches = threads ? mc_folder_watches_create() : NULL;
    process->coverages = mc_coverage_index_create(config->lock_dir);
    process->query_results = query_results_create(mc_config_memory(config) / processes);
    process->provisional = threads && has_sources(config) ? mc_clock_cache_create(PROVISIONAL_BYTES) : NULL;
    process->documents = mc_documents_create(threads ? documents_of_process(config, processes) : 0);
    process->write_behinds = threads ? mc_write_behinds_create() : NULL;
    process->quotas = mc_quotas_create();
    process->refreshes = threads ? mc_refreshes_create(mc_processors() / processes / 2 + 1, process, log) : NULL;
    process->purgers = mc_purgers_create(process, log);
    process->changes = threads ? mc_changes_create(process, log) : NULL;
    process->overviews = threads ? mc_overview_follower_create(process, log) : NULL;
    process->reloads = mc_reload_states_create();
    process->probes = threads ? mc_probes_create(process, log) : NULL;
    process->expire_folders = threads ? mc_expire_folders_create(process, log) : NULL;
    process->ahead = threads ? mc_ahead_create(process, log) : NULL;
    process->brief = !threads;
    if (threads)
        load_modules(process, config, log, pool);
    return MC_OK;
}

void
mc_runtime_drain(mc_runtime *runtime)
{
    mc_write_behinds_drain(runtime->process.write_behinds);
}

bool
mc_runtime_stores_behind(mc_runtime *runtime)
{
    return mc_write_behinds_waiting(runtime->process.write_behinds) > 0;
}

/* Microseconds that the end of such a process waits for caches in front. */
#define BRIEF_PURGE_TIME (30 * APR_USEC_PER_SEC)

/* A process that serves one request, or one command, is the only one that knows what caches in front have to drop. */
static void
finish_brief_purges(mc_process *process)
{
    apr_pool_t *pool;
    if (!process->brief)
        return;
    apr_pool_create(&pool, NULL);
    mc_ctx ctx = {
        .pool = pool, .process = process, .log = &mc_log_stderr, .deadline = mc_clock_now() + BRIEF_PURGE_TIME
    };
    if (!mc_purgers_finish(process->purgers, &ctx))
        mc_log_write(&ctx, MC_LOG_WARN,
                     "a cache in front was not told of all tiles that have changed, and may show old "
                     "ones for their time");
    apr_pool_destroy(pool);
}

void
mc_runtime_destroy(mc_runtime *runtime)
{
    mc_process *process = &runtime->process;
    finish_brief_purges(process);
    mc_ahead_destroy(process->ahead);                   /* it uses all the rest, and holds configurations */
    mc_probes_destroy(process->probes);                 /* they use all the rest, and hold a configuration */
    mc_refreshes_destroy(process->refreshes);           /* they use all the rest, and hold configurations */
    mc_expire_folders_destroy(process->expire_folders); /* they use all the rest, and hold configurations */
    mc_overview_follower_destroy(process->overviews);   /* uses all the rest, and holds configurations */
    mc_changes_destroy(process->changes);               /* they hold configurations */
    mc_purgers_destroy(process->purgers);               /* they use the HTTP client */
    mc_exporter_destroy(process->exporter);             /* it uses the HTTP client */
    mc_write_behinds_destroy(process->write_behinds);   /* they use all the rest */
    mc_quotas_destroy(process->quotas);                 /* these, too */
    mc_workers_destroy(process->io);
    mc_workers_destroy(process->workers);
    if (process->memory != NULL)
        mc_memory_destroy(process->memory);
    mc_folder_watches_destroy(process->watches);
    mc_coverage_index_destroy(process->coverages);
    mc_clock_cache_destroy(process->query_results);
    mc_clock_cache_destroy(process->provisional);
    mc_documents_destroy(process->documents);
    mc_handles_destroy(process->handles);
    mc_http_destroy(process->http);
    mc_postgres_destroy(process->postgres);
    mc_remotes_destroy(process->remotes);
    mc_flights_destroy(process->flights);
    mc_budget_set(0, NULL);
    atomic_store(&refusal_metrics, NULL);
    mc_process_reports_leave(mc_monitor_of(process->metrics));
    if (!runtime->metrics_shared)
        mc_metrics_destroy(process->metrics);
    mc_reload_states_destroy(process->reloads);
    mc_semaphore_destroy(process->drawing);
    mc_admissions_destroy(process->admissions);
    *process = (mc_process){ 0 };
}

void
mc_runtime_limit_requests(mc_runtime *runtime, const mc_config *config, int threads)
{
    int most = config->max_slow_requests;
    if (threads >= SPARE_FROM && (most == 0 || most > threads - threads / SPARE_SHARE))
        most = threads - threads / SPARE_SHARE;
    mc_admissions_limit(runtime->process.admissions, most, config->max_slow_requests_per_client);
}

struct mc_metrics *
mc_runtime_metrics_create(void)
{
    mc_metrics *metrics = mc_metrics_create_with(mc_answers_size() + mc_monitor_size());
    mc_monitor_init(metrics);
    return metrics;
}

void
mc_runtime_share_metrics(mc_runtime *runtime, struct mc_metrics *shared)
{
    MC_ASSERT(!runtime->metrics_shared);
    atomic_store(&refusal_metrics, shared);
    mc_metrics_destroy(runtime->process.metrics);
    runtime->process.metrics = shared;
    runtime->metrics_shared = true;
}

struct mc_shared_cache *
mc_runtime_memory_create(const mc_config *config, int processes, struct mc_shared_cache *former)
{
    size_t bytes = processes > 1 ? (size_t)shared_memory_of_server(config) : 0;
    if (former != NULL && mc_shared_cache_bound(former) == bytes)
        return former;
    mc_shared_cache_destroy(former);
    return mc_shared_cache_create(bytes);
}

void
mc_runtime_share_memory(mc_runtime *runtime, const mc_config *config, int processes, struct mc_shared_cache *shared)
{
    mc_process *process = &runtime->process;
    if (shared == NULL)
        return;
    mc_memory_destroy(process->memory);
    process->memory = mc_memory_create((mc_config_memory(config) - shared_memory_of_server(config)) / processes);
    mc_memory_share(process->memory, shared);
}

mc_process *
mc_runtime_process(mc_runtime *runtime)
{
    return &runtime->process;
}
