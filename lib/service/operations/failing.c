/* See failing.h. */
#include "service/operations/failing.h"

#include <apr_strings.h>
#include <stdatomic.h>
#include <string.h>

#include "base/clock.h"
#include "changes/changes.h"
#include "changes/watch.h"
#include "mapcache/source.h"
#include "mapcache/tileset.h"
#include "mapcache/upkeep.h"
#include "service/operations/probes.h"

/* A log that was not read for so many times the pause between two looks, and for so many seconds, is not followed. */
#define LATE_POLLS 3
#define LATE_SECONDS 15.0

/* ---- who needs it */

typedef struct needs {
    const char *name; /* of the cache, or the connection string */
    bool found;
} needs;

static void
compare_cache(void *baton, mc_cache *part)
{
    needs *wanted = baton;
    wanted->found = wanted->found || strcmp(part->name, wanted->name) == 0;
}

static void
compare_table(void *baton, const mc_source_table *table)
{
    needs *wanted = baton;
    wanted->found = wanted->found || strcmp(table->connection, wanted->name) == 0;
}

static void
compare_source(void *baton, mc_source *source)
{
    if (source->ops->tables != NULL)
        source->ops->tables(source, compare_table, baton);
    if (source->ops->parts != NULL)
        source->ops->parts(source, compare_source, baton);
}

static void
compare_source_name(void *baton, mc_source *source)
{
    needs *wanted = baton;
    wanted->found = wanted->found || strcmp(source->name, wanted->name) == 0;
    if (source->ops->parts != NULL)
        source->ops->parts(source, compare_source_name, baton);
}

static bool
needs_store(const mc_tileset *tileset, const char *cache)
{
    needs wanted = { cache, false };
    if (tileset->cache != NULL)
        mc_cache_parts(tileset->cache, compare_cache, &wanted);
    return wanted.found || (tileset->cache != NULL && strcmp(tileset->cache->name, cache) == 0);
}

static bool
needs_database(const mc_tileset *tileset, const char *connection)
{
    needs wanted = { connection, false };
    if (tileset->source != NULL)
        compare_source(&wanted, tileset->source);
    return wanted.found;
}

static bool
needs_change_log(const mc_tileset *tileset, const char *connection)
{
    bool found = false;
    for (int i = 0; tileset->watch != NULL && i < tileset->watch->tables->nelts; i++)
        found = found || strcmp(APR_ARRAY_IDX(tileset->watch->tables, i, mc_watch_table).connection, connection) == 0;
    return found;
}

static apr_array_header_t *
find_needing_tilesets(const mc_config *config, bool (*need)(const mc_tileset *tileset, const char *name),
                      const char *name, apr_pool_t *pool)
{
    apr_array_header_t *names = apr_array_make(pool, 4, sizeof(const char *));
    for (int i = 0; i < config->tilesets->nelts; i++) {
        const mc_tileset *tileset = APR_ARRAY_IDX(config->tilesets, i, const mc_tileset *);
        if (need(tileset, name))
            APR_ARRAY_PUSH(names, const char *) = tileset->name;
    }
    return names;
}

/* ---- what fails */

/* By the last operation of a request, or the last probe. */
static void
find_failing_stores(apr_array_header_t *failing, const mc_config *config, apr_pool_t *pool)
{
    const apr_time_t since = mc_clock_now() - MC_AWAY_TIME;
    for (int i = 0; i < config->caches->nelts; i++) {
        const mc_cache *cache = APR_ARRAY_IDX(config->caches, i, const mc_cache *);
        if (mc_cache_fails(cache, since))
            APR_ARRAY_PUSH(failing, mc_failing) =
                (mc_failing){ "store", cache->name, (mc_error_kind)atomic_load(&cache->state.kind),
                              atomic_load(&cache->state.failed),
                              find_needing_tilesets(config, needs_store, cache->name, pool) };
    }
}

/* Whether the tileset draws from that source, or from one that does. */
static bool
needs_source(const mc_tileset *tileset, const char *name)
{
    needs wanted = { name, false };
    if (tileset->source != NULL)
        compare_source_name(&wanted, tileset->source);
    return wanted.found;
}

/* By the last call of a request: nobody asks an origin for the sake of a probe. */
static void
find_failing_sources(apr_array_header_t *failing, const mc_config *config, apr_pool_t *pool)
{
    const apr_time_t since = mc_clock_now() - MC_AWAY_TIME;
    for (apr_hash_index_t *i = config->sources == NULL ? NULL : apr_hash_first(pool, config->sources); i != NULL;
         i = apr_hash_next(i)) {
        const mc_source *source = apr_hash_this_val(i);
        const apr_time_t failed = atomic_load(&source->state.failed);
        if (atomic_load(&source->state.fails) && failed >= since)
            APR_ARRAY_PUSH(failing, mc_failing) =
                (mc_failing){ "source", source->name, (mc_error_kind)atomic_load(&source->state.kind), failed,
                              find_needing_tilesets(config, needs_source, source->name, pool) };
    }
}

static void
find_failing_databases(apr_array_header_t *failing, const mc_config *config, const mc_probe_round *round,
                       apr_pool_t *pool)
{
    for (int i = 0; i < round->results->nelts; i++) {
        const mc_probe_result *result = &APR_ARRAY_IDX(round->results, i, const mc_probe_result);
        if (result->fails)
            APR_ARRAY_PUSH(failing, mc_failing) =
                (mc_failing){ "database", mc_database_name(result->connection, pool), result->error, result->failed,
                              find_needing_tilesets(config, needs_database, result->connection, pool) };
    }
}

static void
find_late_change_logs(apr_array_header_t *failing, const mc_config *config, const apr_array_header_t *logs,
                      apr_pool_t *pool)
{
    const double polls = config->changes == NULL ? 0 : LATE_POLLS * config->changes->poll;
    const double most = polls > LATE_SECONDS ? polls : LATE_SECONDS;
    for (int i = 0; i < logs->nelts; i++) {
        const mc_change_log_state *log = &APR_ARRAY_IDX(logs, i, const mc_change_log_state);
        if (log->connected && log->lag <= most)
            continue;
        APR_ARRAY_PUSH(failing, mc_failing) =
            (mc_failing){ "changes", log->database, log->connected ? MC_ERR_TIMEOUT : MC_ERR_UNAVAILABLE,
                          log->lag < 0 ? 0 : mc_clock_now() - (apr_time_t)(log->lag * APR_USEC_PER_SEC),
                          find_needing_tilesets(config, needs_change_log, log->connection, pool) };
    }
}

static void
copy_change_log_state(void *baton, const mc_changes_state *state)
{
    apr_array_header_t *logs = baton;
    const double lag = state->read == 0 ? -1 : (double)(mc_clock_now() - state->read) / (double)APR_USEC_PER_SEC;
    APR_ARRAY_PUSH(logs, mc_change_log_state) =
        (mc_change_log_state){ apr_pstrdup(logs->pool, state->connection),
                               mc_database_name(state->connection, logs->pool), state->connected, lag };
}

apr_array_header_t *
mc_change_logs_look(const mc_process *process, apr_pool_t *pool)
{
    apr_array_header_t *logs = apr_array_make(pool, 2, sizeof(mc_change_log_state));
    if (process != NULL)
        mc_changes_visit(process->changes, copy_change_log_state, logs);
    return logs;
}

apr_array_header_t *
mc_failing_find(apr_time_t *checked, const mc_config *config, const apr_array_header_t *change_logs, const mc_ctx *ctx,
                apr_pool_t *pool)
{
    apr_array_header_t *failing = apr_array_make(pool, 4, sizeof(mc_failing));
    const mc_probe_round round = mc_probes_ask(ctx->process == NULL ? NULL : ctx->process->probes, config, ctx, pool);
    *checked = round.ended;
    find_failing_stores(failing, config, pool);
    find_failing_sources(failing, config, pool);
    find_failing_databases(failing, config, &round, pool);
    find_late_change_logs(failing, config, change_logs, pool);
    return failing;
}
