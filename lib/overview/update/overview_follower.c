/* See overview_follower.h. */
#include "overview/update/overview_follower.h"

#include <apr_hash.h>
#include <apr_strings.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/backoff.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/thread.h"
#include "base/wait.h"
#include "base/workers.h"
#include "changes/changes.h"
#include "overview/overview_counters.h"
#include "overview/overview_table.h"

/* Microseconds: between two looks at whether something has changed; from a change to the update, so that what changes
 * in the next moment is part of it, both at most; for a look; for an update; between two rounds without any change. */
#define LOOK_EACH (APR_USEC_PER_SEC / 2)
#define GATHER_TIME (2 * APR_USEC_PER_SEC)
#define SHORTEST_PAUSE (APR_USEC_PER_SEC / 50)
#define ANSWER_TIME (10 * APR_USEC_PER_SEC)
#define UPDATE_TIME (600 * APR_USEC_PER_SEC)
#define ROUND_EACH (3600 * APR_USEC_PER_SEC)

/* What has failed is tried again after so long at most. */
#define LONGEST_PAUSE (600 * APR_USEC_PER_SEC)

/* Of the time, updates of a table take a tenth at most; builds of a minute and more are left to the operator. */
#define RESTS 9
static const mc_overview_bounds anew_bounds = { .share = .1, .longest = 60 };

/* A table of a tileset. */
typedef struct followed_table {
    apr_time_t next; /* not before */
    int failures;    /* one after the other */
    uint64_t told;   /* hash of what was logged last of these; 0: nothing */
} followed_table;

struct mc_overview_follower {
    mc_process *process;
    const mc_log *log;
    pthread_mutex_t lock; /* of `running` */
    pthread_t thread;
    bool running;
    _Atomic bool stopping;
    _Atomic apr_interval_time_t interval; /* the shortest that is configured */
    /* Of the thread alone. */
    apr_hash_t *tables; /* followed_table, in a pool of its own */
    apr_time_t again;   /* the next round without any change */
};

/* One look at all tables. */
typedef struct overview_round {
    mc_overview_follower *follower;
    apr_hash_t *tables; /* those that are still followed */
    const mc_following *following;
    const mc_watch *watch;
    const mc_watch_table *table;
    const char *connection; /* of the session, as configured; NULL: there is none */
    mc_postgres_session *session;
    apr_time_t again;
    mc_ctx *ctx;
    apr_pool_t *pool; /* of the table */
} overview_round;

static bool
is_overview_follower_stopping(void *baton)
{
    return atomic_load_explicit(&((mc_overview_follower *)baton)->stopping, memory_order_relaxed);
}

/* ---- What is said of a table ---- */

/* The same is said once. */
static void
tell_of_table(const overview_round *round, followed_table *table, mc_log_level level, const char *what)
{
    const uint64_t hash = mc_hash64(what, strlen(what), 0) | 1;
    if (hash != table->told && !is_overview_follower_stopping(round->follower))
        mc_log_write(round->ctx, level, "the overviews of table \"%s\" (tileset \"%s\") %s", round->table->table,
                     round->watch->tileset, what);
    table->told = hash;
}

static void
try_again_after(overview_round *round, followed_table *table, apr_interval_time_t pause)
{
    table->next = mc_clock_now() + pause;
    round->again = table->next < round->again ? table->next : round->again;
}

/* Somebody else may build, the database may be away, which the log says elsewhere: that passes. */
static void
take_failure(overview_round *round, followed_table *table, const mc_error *error, apr_interval_time_t interval)
{
    const char *why = mc_error_chain(error, round->pool);
    mc_count(round->follower->process->metrics, MC_COUNT_overview_update_failures_total, 1);
    tell_of_table(
        round, table, error->kind == MC_ERR_UNAVAILABLE ? MC_LOG_INFO : MC_LOG_WARN,
        apr_pstrcat(round->pool, "are not updated for now, and maps of what has changed read the table: ", why, NULL));
    try_again_after(round, table, mc_backoff(table->failures++, interval, LONGEST_PAUSE));
}

/* The planes of an update are as large tomorrow as today. The text has no numbers, so that the same is said once. */
static void
take_refusal_of_memory(overview_round *round, followed_table *table)
{
    mc_count(round->follower->process->metrics, MC_COUNT_overview_update_failures_total, 1);
    tell_of_table(round, table, MC_LOG_WARN,
                  apr_psprintf(round->pool,
                               "are not updated within half of <memory_budget>: run mapcache overviews update -t %s; "
                               "until then maps read the table where it has changed",
                               round->watch->tileset));
    try_again_after(round, table, LONGEST_PAUSE);
}

/* Building anew is put off, or left to the operator. */
static void
take_delay(overview_round *round, followed_table *table, const mc_overview_outcome *outcome)
{
    apr_pool_t *pool = round->pool;
    mc_count(round->follower->process->metrics, MC_COUNT_overview_update_failures_total, 1);
    if (outcome->wait > 0)
        tell_of_table(round, table, MC_LOG_INFO,
                      apr_psprintf(pool,
                                   "have to be built anew, which waits a while, as it took %.1f s the last time: %s",
                                   outcome->seconds, outcome->anew));
    else
        tell_of_table(round, table, MC_LOG_WARN,
                      apr_psprintf(pool,
                                   "have to be built anew (%s), which %s: run mapcache overviews update -t %s; until "
                                   "then maps read the table where it has changed",
                                   outcome->anew,
                                   outcome->seconds < 0
                                       ? "may take long"
                                       : apr_psprintf(pool, "took %.0f s the last time", outcome->seconds),
                                   round->watch->tileset));
    const apr_interval_time_t wait = (apr_interval_time_t)(outcome->wait * APR_USEC_PER_SEC);
    try_again_after(round, table, wait < 0 || wait > LONGEST_PAUSE ? LONGEST_PAUSE : wait + LOOK_EACH);
}

static void
take_update(const overview_round *round, followed_table *table, const mc_overview_outcome *outcome,
            apr_interval_time_t took, apr_interval_time_t interval)
{
    mc_metrics *metrics = round->follower->process->metrics;
    const int milliseconds = (int)(took / 1000);
    mc_count(metrics, MC_COUNT_overview_updates_total, (uint64_t)outcome->updates);
    mc_count(metrics, MC_COUNT_overview_update_rows_total, (uint64_t)outcome->rows);
    mc_observe(metrics, "mapcache_overview_update", took);
    mc_count(metrics, MC_COUNT_overview_builds_total, outcome->anew != NULL);
    table->failures = 0;
    table->told = 0;
    table->next = mc_clock_now() + (interval > RESTS * took ? interval : RESTS * took);
    if (outcome->anew != NULL)
        mc_log_write(round->ctx, MC_LOG_NOTICE,
                     "the overviews of table \"%s\" (tileset \"%s\") were built anew in %d ms: %s", round->table->table,
                     round->watch->tileset, milliseconds, outcome->anew);
    else if (outcome->boxes > 0)
        mc_log_write(round->ctx, MC_LOG_INFO,
                     "the overviews of table \"%s\" (tileset \"%s\") were updated in %d ms: %" APR_INT64_T_FMT
                     " changed boxes, %" APR_INT64_T_FMT " rows looked at",
                     round->table->table, round->watch->tileset, milliseconds, (apr_int64_t)outcome->boxes,
                     (apr_int64_t)outcome->rows);
}

/* ---- A table ---- */

/* Looks at tables share a connection, as long as these stand in one database. */
static mc_error *
find_table_lag(mc_overview_lag *lag, overview_round *round)
{
    const char *connection = round->table->connection;
    mc_ctx *ctx = round->ctx;
    ctx->deadline = mc_clock_now() + ANSWER_TIME;
    if (round->session != NULL && strcmp(round->connection, connection) != 0) {
        mc_postgres_session_close(round->session);
        round->session = NULL;
    }
    if (round->session == NULL) {
        round->connection = connection;
        MC_TRY(mc_postgres_session_open(&round->session, ctx->process->postgres,
                                        mc_postgres_named(connection, "mapcache-overviews", ctx->pool), ctx,
                                        ctx->pool));
    }
    return mc_overview_find_lag(lag, round->table->table, round->session, ctx, round->pool);
}

static void
update_table(overview_round *round, followed_table *table, apr_interval_time_t interval)
{
    const mc_watch_table *shown = round->table;
    mc_overview_outcome outcome = { 0 };
    const mc_overview_options options = {
        .connection = mc_postgres_named(shown->connection, "mapcache-overviews", round->pool),
        .bounds = &anew_bounds,
        .outcome = &outcome,
    };
    const apr_time_t begun = mc_clock_now();
    mc_ctx ctx = *round->ctx;
    ctx.pool = round->pool;
    ctx.deadline = begun + UPDATE_TIME;
    mc_error *error =
        mc_overview_update_layers(round->watch->subject, shown->connection, shown->table, &options, &ctx, round->pool);
    if (error != MC_OK && error->kind == MC_ERR_NO_MEMORY)
        take_refusal_of_memory(round, table);
    else if (error != MC_OK)
        take_failure(round, table, error, interval);
    else if (outcome.wait != 0)
        take_delay(round, table, &outcome);
    else
        take_update(round, table, &outcome, mc_clock_now() - begun, interval);
}

static void
look_at_table(overview_round *round, followed_table *table)
{
    const apr_interval_time_t interval = (apr_interval_time_t)(round->following->config->overviews * APR_USEC_PER_SEC);
    mc_overview_lag lag;
    mc_error *error = find_table_lag(&lag, round);
    table->next = mc_clock_now() + interval;
    if (error != MC_OK) {
        mc_postgres_session_close(round->session);
        round->session = NULL;
        take_failure(round, table, error, interval);
    } else if (lag.levels > 0 && lag.behind && !lag.owned) {
        tell_of_table(round, table, MC_LOG_NOTICE,
                      "are not updated by this server, whose role does not own them: mapcache overviews update does, "
                      "or GRANT that role the owner's");
        table->next += LONGEST_PAUSE;
    } else if (lag.levels > 0 && lag.behind) {
        update_table(round, table, interval);
    }
}

/* The table of an earlier round, or a new one; NULL: this round has seen it. */
static followed_table *
find_followed_table(overview_round *round)
{
    apr_pool_t *pool = apr_hash_pool_get(round->tables);
    const char *key = apr_pstrcat(pool, round->following->file, "\n", round->watch->tileset, "\n",
                                  round->table->connection, "\n", round->table->table, NULL);
    if (apr_hash_get(round->tables, key, APR_HASH_KEY_STRING) != NULL)
        return NULL;
    const followed_table none = { 0 }, *before = apr_hash_get(round->follower->tables, key, APR_HASH_KEY_STRING);
    followed_table *table = apr_pmemdup(pool, before == NULL ? &none : before, sizeof(*table));
    apr_hash_set(round->tables, key, APR_HASH_KEY_STRING, table);
    return table;
}

static void
visit_table(overview_round *round)
{
    const mc_watch_table *shown = round->table;
    followed_table *table;
    if (mc_ctx_abandoned(round->ctx) ||
        !mc_overview_shows_table(round->watch->subject, shown->connection, shown->table) ||
        !mc_changes_is_leader(round->follower->process->changes, shown->connection) ||
        (table = find_followed_table(round)) == NULL)
        return;
    if (mc_clock_now() >= table->next)
        look_at_table(round, table);
    else
        round->again = table->next < round->again ? table->next : round->again;
}

/* ---- A round ---- */

static void
visit_watches(overview_round *round)
{
    const apr_array_header_t *watches = round->following->watches;
    for (int i = 0; i < watches->nelts; i++) {
        round->watch = APR_ARRAY_IDX(watches, i, const mc_watch *);
        for (int k = 0; k < round->watch->tables->nelts; k++) {
            round->table = &APR_ARRAY_IDX(round->watch->tables, k, const mc_watch_table);
            visit_table(round);
            apr_pool_clear(round->pool);
        }
    }
}

static void
go_round(mc_overview_follower *follower, mc_ctx *ctx)
{
    overview_round round = { .follower = follower, .again = mc_clock_now() + ROUND_EACH, .ctx = ctx };
    round.tables = apr_hash_make(mc_task_pool_acquire());
    apr_pool_create(&round.pool, ctx->pool);
    const apr_array_header_t *held = mc_changes_hold(follower->process->changes, ctx->pool);
    for (int i = 0; i < held->nelts; i++) {
        round.following = &APR_ARRAY_IDX(held, i, const mc_following);
        if (round.following->config->overviews > 0)
            visit_watches(&round);
    }
    mc_postgres_session_close(round.session);
    mc_changes_release(held);
    mc_task_pool_release(apr_hash_pool_get(follower->tables));
    follower->tables = round.tables;
    follower->again = round.again;
}

/* Who wants updates more often is told of changes sooner. */
static apr_interval_time_t
shorten_pause(apr_interval_time_t pause, mc_overview_follower *follower)
{
    const apr_interval_time_t interval = atomic_load(&follower->interval) / 4;
    return interval > pause ? pause : interval < SHORTEST_PAUSE ? SHORTEST_PAUSE : interval;
}

static void *
run_overview_follower(void *baton)
{
    mc_overview_follower *follower = baton;
    apr_pool_t *pool = mc_task_pool_acquire();
    mc_ctx ctx = { .pool = pool,
                   .process = follower->process,
                   .log = follower->log,
                   .abandoned = is_overview_follower_stopping,
                   .abandoned_baton = follower };
    uint64_t seen = 0;
    follower->tables = apr_hash_make(mc_task_pool_acquire());
    while (mc_wait_pause(shorten_pause(LOOK_EACH, follower), &ctx)) {
        const uint64_t number = mc_changes_number(follower->process->changes);
        if (number == seen && mc_clock_now() < follower->again)
            continue;
        if (number != seen && !mc_wait_pause(shorten_pause(GATHER_TIME, follower), &ctx))
            break;
        seen = mc_changes_number(follower->process->changes);
        go_round(follower, &ctx);
        apr_pool_clear(pool);
    }
    mc_task_pool_release(apr_hash_pool_get(follower->tables));
    mc_task_pool_release(pool);
    return NULL;
}

mc_overview_follower *
mc_overview_follower_create(mc_process *process, const mc_log *log)
{
    mc_overview_follower *follower = calloc(1, sizeof(*follower));
    MC_ASSERT(follower != NULL);
    follower->process = process;
    follower->log = log;
    pthread_mutex_init(&follower->lock, NULL);
    return follower;
}

void
mc_overview_follower_want(mc_overview_follower *follower, const mc_changes_config *config)
{
    if (follower == NULL || config->overviews <= 0)
        return;
    const apr_interval_time_t interval = (apr_interval_time_t)(config->overviews * APR_USEC_PER_SEC);
    pthread_mutex_lock(&follower->lock);
    if (!follower->running || interval < atomic_load(&follower->interval))
        atomic_store(&follower->interval, interval);
    if (!follower->running)
        follower->running = mc_thread_start(&follower->thread, NULL, run_overview_follower, follower) == 0;
    pthread_mutex_unlock(&follower->lock);
}

void
mc_overview_follower_destroy(mc_overview_follower *follower)
{
    if (follower == NULL)
        return;
    atomic_store(&follower->stopping, true);
    if (follower->running)
        pthread_join(follower->thread, NULL);
    pthread_mutex_destroy(&follower->lock);
    free(follower);
}
