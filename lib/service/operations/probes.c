/* See probes.h. */
#include "service/operations/probes.h"

#include <apr_strings.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/workers.h"
#include "db/postgres/postgres.h"
#include "mapcache/tileset.h"
#include "mapcache/upkeep.h"
#include "text/secret.h"

/* Microseconds between two rounds of a configuration; for one store or database; and for a round. */
#define BETWEEN_ROUNDS (3 * APR_USEC_PER_SEC)
#define AFTER_FAILURES (1 * APR_USEC_PER_SEC)
#define ONE_PROBE (2 * APR_USEC_PER_SEC)
#define ONE_ROUND (10 * APR_USEC_PER_SEC)

enum { PROBED_FILES_MAX = 16, RESULTS_MAX = 128 };

/* Of one configuration file, from its first round on. */
typedef struct probed_file {
    apr_pool_t *pool; /* of all of it; another one after each round */
    mc_probe_round round;
} probed_file;

struct mc_probes {
    mc_process *process;
    const mc_log *log;
    _Atomic bool ending;
    pthread_mutex_t lock; /* of the rest */
    char *names[PROBED_FILES_MAX];
    probed_file files[PROBED_FILES_MAX];
    int count;
    bool running; /* from the beginning of a round until nothing of it is left but the end of its thread */
    bool started; /* `thread` is to be joined */
    pthread_t thread;
};

/* A round, from its beginning to its end. */
typedef struct probing {
    mc_probes *probes;
    int file;
    const mc_config *config;
    const mc_owner *owner; /* taken */
    apr_pool_t *pool;      /* of the results */
    apr_pool_t *scratch;   /* of the round */
    apr_hash_t *seen;      /* caches */
    apr_time_t end;
    apr_array_header_t *results;
} probing;

mc_probes *
mc_probes_create(mc_process *process, const mc_log *log)
{
    mc_probes *probes = calloc(1, sizeof(*probes));
    MC_ASSERT(probes != NULL);
    probes->process = process;
    probes->log = log;
    pthread_mutex_init(&probes->lock, NULL);
    return probes;
}

void
mc_probes_destroy(mc_probes *probes)
{
    if (probes == NULL)
        return;
    atomic_store(&probes->ending, true);
    if (probes->started)
        pthread_join(probes->thread, NULL);
    for (int i = 0; i < probes->count; i++) {
        if (probes->files[i].pool != NULL)
            apr_pool_destroy(probes->files[i].pool);
        free(probes->names[i]);
    }
    pthread_mutex_destroy(&probes->lock);
    free(probes);
}

/* ---- a round */

static bool
are_probes_ending(void *probes)
{
    return atomic_load(&((mc_probes *)probes)->ending);
}

static const mc_probe_result *
find_probe_result(const apr_array_header_t *results, const char *connection)
{
    for (int i = 0; results != NULL && i < results->nelts; i++) {
        const mc_probe_result *result = &APR_ARRAY_IDX(results, i, const mc_probe_result);
        if (strcmp(result->connection, connection) == 0)
            return result;
    }
    return NULL;
}

/* A context for one store or database. False: the round is over. */
static bool
begin_probe(mc_ctx *ctx, const probing *round)
{
    const apr_time_t now = mc_clock_now();
    *ctx = (mc_ctx){ .pool = round->scratch,
                     .process = round->probes->process,
                     .log = round->probes->log,
                     .owner = round->owner,
                     .deadline = now + ONE_PROBE < round->end ? now + ONE_PROBE : round->end,
                     .abandoned = are_probes_ending,
                     .abandoned_baton = round->probes };
    return now < round->end && !are_probes_ending(round->probes);
}

/* The state of the cache tells later; the log tells where it is another one than before. */
static void
probe_store(void *baton, mc_cache *cache)
{
    probing *round = baton;
    mc_ctx ctx;
    if (cache->ops->reach == NULL || apr_hash_get(round->seen, &cache, sizeof(cache)) != NULL)
        return;
    apr_hash_set(round->seen, apr_pmemdup(round->scratch, &cache, sizeof(cache)), sizeof(cache), cache);
    if (!begin_probe(&ctx, round))
        return;
    const bool failed = mc_cache_fails(cache, 0);
    mc_error *error = mc_cache_reach(cache, &ctx);
    if (error != MC_OK && !failed)
        mc_log_write(&ctx, MC_LOG_WARN, "readiness: %s", mc_error_chain(error, ctx.pool));
    else if (error == MC_OK && failed)
        mc_log_write(&ctx, MC_LOG_NOTICE, "readiness: cache \"%s\" works again", cache->name);
}

static mc_error *
ask_database(const char *connection, mc_ctx *ctx)
{
    const mc_postgres_query query = { .connection = connection, .sql = "SELECT 1" };
    mc_postgres_result *result;
    const mc_postgres_row *row = NULL;
    MC_TRY(mc_postgres_start(&result, ctx->process->postgres, &query, ctx, ctx->pool));
    do
        MC_TRY(mc_postgres_next(&row, result));
    while (row != NULL);
    return MC_OK;
}

/* Only the round's own thread changes the results of the round before. Where the time is over, those stay. */
static void
probe_database(probing *round, const char *connection)
{
    const mc_probe_result *before = find_probe_result(round->probes->files[round->file].round.results, connection);
    const bool failed = before != NULL && before->fails;
    mc_probe_result now = { 0 };
    mc_ctx ctx;
    if (begin_probe(&ctx, round)) {
        mc_error *error = ask_database(connection, &ctx);
        if (error != MC_OK)
            now = (mc_probe_result){ .fails = true, .error = error->kind, .failed = mc_clock_now() };
        if (error != MC_OK && !failed)
            mc_log_write(&ctx, MC_LOG_WARN, "readiness: %s", mc_error_chain(error, ctx.pool));
        else if (error == MC_OK && failed)
            mc_log_write(&ctx, MC_LOG_NOTICE, "readiness: the database works again: %s",
                         mc_hide_address_password(connection, ctx.pool));
    } else if (before != NULL) {
        now = *before;
    }
    now.connection = apr_pstrdup(round->pool, connection);
    APR_ARRAY_PUSH(round->results, mc_probe_result) = now;
}

static void
probe_all(probing *round)
{
    const mc_config *config = round->config;
    for (int i = 0; i < config->tilesets->nelts; i++) {
        mc_cache *cache = APR_ARRAY_IDX(config->tilesets, i, mc_tileset *)->cache;
        if (cache != NULL)
            mc_cache_parts(cache, probe_store, round);
    }
    for (int i = 0; i < config->databases->nelts && i < RESULTS_MAX; i++)
        probe_database(round, APR_ARRAY_IDX(config->databases, i, const char *));
}

static void *
run_probes(void *baton)
{
    probing *round = baton;
    mc_probes *probes = round->probes;
    const mc_owner *owner = round->owner;
    apr_pool_t *scratch = round->scratch;
    probe_all(round);
    pthread_mutex_lock(&probes->lock);
    probed_file *file = &probes->files[round->file];
    apr_pool_t *before = file->pool;
    *file = (probed_file){ round->pool, { mc_clock_now(), round->results } };
    pthread_mutex_unlock(&probes->lock);
    if (before != NULL)
        apr_pool_destroy(before);
    mc_task_pool_release(scratch); /* the round, too */
    owner->drop(owner->thing);     /* may end a configuration, and take its time */
    pthread_mutex_lock(&probes->lock);
    probes->running = false;
    pthread_mutex_unlock(&probes->lock);
    return NULL;
}

/* With the lock held, and no round under way. */
static void
begin_probe_round(mc_probes *probes, int file, const mc_config *config, const mc_owner *owner)
{
    apr_pool_t *scratch = mc_task_pool_acquire(), *pool;
    apr_pool_create_unmanaged_ex(&pool, mc_memory_exhausted, NULL);
    if (probes->started)
        pthread_join(probes->thread, NULL); /* it has come to its end */
    probing *round = apr_palloc(scratch, sizeof(*round));
    *round = (probing){ .probes = probes,
                        .file = file,
                        .config = config,
                        .owner = owner,
                        .pool = pool,
                        .scratch = scratch,
                        .seen = apr_hash_make(scratch),
                        .end = mc_clock_now() + ONE_ROUND,
                        .results = apr_array_make(pool, 8, sizeof(mc_probe_result)) };
    owner->take(owner->thing);
    probes->running = probes->started = pthread_create(&probes->thread, NULL, run_probes, round) == 0;
    if (probes->running)
        return;
    owner->drop(owner->thing);
    apr_pool_destroy(pool);
    mc_task_pool_release(scratch);
}

/* ---- who asks */

/* The number of a file; -1: there are too many. With the lock held. */
static int
find_probed_file(mc_probes *probes, const char *name)
{
    for (int i = 0; i < probes->count; i++)
        if (strcmp(probes->names[i], name) == 0)
            return i;
    if (probes->count == PROBED_FILES_MAX)
        return -1;
    probes->names[probes->count] = strdup(name);
    MC_ASSERT(probes->names[probes->count] != NULL);
    return probes->count++;
}

static mc_probe_round
copy_probe_round(const mc_probe_round *round, apr_pool_t *pool)
{
    mc_probe_round copy = { round->ended, apr_array_make(pool, 8, sizeof(mc_probe_result)) };
    for (int i = 0; round->results != NULL && i < round->results->nelts; i++) {
        mc_probe_result result = APR_ARRAY_IDX(round->results, i, const mc_probe_result);
        result.connection = apr_pstrdup(pool, result.connection);
        APR_ARRAY_PUSH(copy.results, mc_probe_result) = result;
    }
    return copy;
}

static bool
is_round_due(const mc_probe_round *last)
{
    apr_interval_time_t pause = BETWEEN_ROUNDS;
    for (int i = 0; last->results != NULL && i < last->results->nelts; i++)
        if (APR_ARRAY_IDX(last->results, i, const mc_probe_result).fails)
            pause = AFTER_FAILURES;
    return last->ended == 0 || mc_clock_now() - last->ended >= pause;
}

mc_probe_round
mc_probes_ask(mc_probes *probes, const mc_config *config, const mc_ctx *ctx, apr_pool_t *pool)
{
    mc_probe_round found = { 0, apr_array_make(pool, 1, sizeof(mc_probe_result)) };
    if (probes == NULL || config->file == NULL)
        return found;
    pthread_mutex_lock(&probes->lock);
    const int file = find_probed_file(probes, config->file);
    if (file >= 0) {
        const mc_probe_round *last = &probes->files[file].round;
        if (!probes->running && ctx->owner != NULL && !atomic_load(&probes->ending) && is_round_due(last))
            begin_probe_round(probes, file, config, ctx->owner);
        found = copy_probe_round(last, pool);
    }
    pthread_mutex_unlock(&probes->lock);
    return found;
}
