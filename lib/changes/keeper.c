/* See keeper.h. */
#include "changes/keeper.h"

#include <apr_strings.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/backoff.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/wait.h"

/* Microseconds: for a short answer; for reading a long log; for removing tiles; between two signs of life. */
#define ANSWER_TIME (10 * APR_USEC_PER_SEC)
#define READ_TIME (120 * APR_USEC_PER_SEC)
#define SETTLE_TIME (3600 * APR_USEC_PER_SEC)
#define ALIVE_EACH (60 * APR_USEC_PER_SEC)
#define FIRST_PAUSE (1 * APR_USEC_PER_SEC)
#define LONGEST_PAUSE (60 * APR_USEC_PER_SEC)

struct mc_keeper {
    char *connection, *named, *reader;
    apr_interval_time_t poll, delay;
    mc_keeper_client client;
    mc_process *process;
    const mc_log *log;
    pthread_t thread;
    bool running;
    _Atomic bool stopping, leads;
    uint64_t told; /* hash of the failure that was logged last */
};

static bool
is_keeper_stopping(void *baton)
{
    return atomic_load_explicit(&((mc_keeper *)baton)->stopping, memory_order_relaxed);
}

/* Whether this session has the lock of all readers of that name, now or already. */
static mc_error *
take_leadership(bool *taken, const mc_keeper *keeper, mc_postgres_session *session, mc_ctx *ctx, apr_pool_t *pool)
{
    const mc_postgres_param param = { .value = keeper->reader, .type = MC_POSTGRES_TEXT };
    const mc_postgres_query query = {
        .session = session,
        .sql = "SELECT pg_try_advisory_lock(hashtextextended('mapcache_changes ' || $1, 0))::text",
        .params = &param,
        .param_count = 1
    };
    mc_postgres_result *result;
    const mc_postgres_row *row = NULL;
    ctx->deadline = mc_clock_now() + ANSWER_TIME;
    mc_error *error = mc_postgres_start(&result, ctx->process->postgres, &query, ctx, pool);
    if (error == MC_OK)
        error = mc_postgres_next(&row, result);
    *taken = error == MC_OK && row != NULL && row->columns > 0 && strcmp(row->fields[0].data, "true") == 0;
    while (error == MC_OK && row != NULL)
        error = mc_postgres_next(&row, result);
    mc_postgres_end(result);
    return error;
}

/* All that the snapshot sees is applied for good. */
static mc_error *
move_place(const mc_keeper *keeper, const char *snapshot, mc_postgres_session *session, mc_ctx *ctx, apr_pool_t *pool)
{
    const mc_postgres_param params[] = { { .value = keeper->reader, .type = MC_POSTGRES_TEXT },
                                         { .value = snapshot, .type = MC_POSTGRES_TEXT } };
    ctx->deadline = mc_clock_now() + ANSWER_TIME;
    MC_TRY(mc_change_log_run("INSERT INTO mapcache_changes.readers (name, applied) VALUES ($1, $2::pg_snapshot)"
                             " ON CONFLICT (name) DO UPDATE SET applied = excluded.applied, at = clock_timestamp()",
                             params, 2, session, ctx, pool));
    ctx->deadline = mc_clock_now() + READ_TIME;
    return mc_change_log_run("SELECT mapcache_changes.trim_changes()", NULL, 0, session, ctx, pool);
}

static mc_error *
settle_batch(const mc_keeper *keeper, const mc_log_batch *batch, mc_postgres_session *session, mc_ctx *ctx,
             apr_pool_t *pool)
{
    apr_array_header_t *names, *found;
    keeper->client.names(&names, keeper->client.baton, keeper->connection, pool);
    ctx->deadline = mc_clock_now() + ANSWER_TIME;
    MC_TRY(mc_change_log_resolve(&found, names, session, ctx, pool));
    ctx->deadline = mc_clock_now() + SETTLE_TIME;
    return keeper->client.settle(keeper->client.baton, keeper->connection, batch, found, ctx, pool);
}

/* One turn: what has been logged since the last one is given time, and made durable. */
static mc_error *
keep_once(const mc_keeper *keeper, apr_time_t *alive, mc_postgres_session *session, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_log_batch batch;
    mc_log_cursor cursor = { NULL, NULL };
    ctx->deadline = mc_clock_now() + ANSWER_TIME;
    MC_TRY(mc_change_log_find_reader(&cursor.snapshot, keeper->reader, session, ctx, pool));
    ctx->deadline = mc_clock_now() + READ_TIME;
    MC_TRY(mc_change_log_read(&batch, &cursor, keeper->reader, session, ctx, pool));
    bool news = batch.rows > 0 || batch.lost;
    if (!news && mc_clock_now() - *alive < ALIVE_EACH)
        return MC_OK;
    if (news && !mc_wait_pause(keeper->delay, ctx))
        return MC_OK; /* the process ends: another one does it */
    if (news)
        MC_TRY(settle_batch(keeper, &batch, session, ctx, pool));
    *alive = mc_clock_now();
    return move_place(keeper, cursor.snapshot, session, ctx, pool);
}

/* Until the connection ends. */
static mc_error *
keep_changes(mc_keeper *keeper, mc_ctx *ctx)
{
    mc_postgres_session *session;
    apr_time_t alive = mc_clock_now() - ALIVE_EACH;
    mc_error *error = MC_OK;
    ctx->deadline = mc_clock_now() + ANSWER_TIME;
    MC_TRY(mc_postgres_session_open(&session, keeper->process->postgres, keeper->named, ctx, ctx->pool));
    while (error == MC_OK && !is_keeper_stopping(keeper)) {
        apr_pool_t *pool;
        bool leads = atomic_load(&keeper->leads);
        apr_pool_create(&pool, ctx->pool);
        if (!leads)
            error = take_leadership(&leads, keeper, session, ctx, pool);
        atomic_store(&keeper->leads, leads);
        if (error == MC_OK && leads)
            error = keep_once(keeper, &alive, session, ctx, pool);
        error = mc_error_copy(error, ctx->pool);
        apr_pool_destroy(pool);
        if (error == MC_OK)
            (void)mc_wait_pause(keeper->poll, ctx);
    }
    atomic_store(&keeper->leads, false);
    mc_postgres_session_close(session);
    return error;
}

/* The same failure is said once. That there is no log, or no database, the listener says. */
static void
tell_keeper_failure(mc_keeper *keeper, const mc_error *error, mc_ctx *ctx)
{
    const char *why = mc_error_chain(error, ctx->pool);
    const uint64_t hash = mc_hash64(why, strlen(why), 0) | 1;
    if (hash != keeper->told && !is_keeper_stopping(keeper))
        mc_log_write(ctx, MC_LOG_INFO, "old tiles stay in their stores for now: %s", why);
    keeper->told = hash;
}

static void *
run_keeper(void *baton)
{
    mc_keeper *keeper = baton;
    apr_allocator_t *allocator;
    apr_pool_t *pool;
    MC_ASSERT(apr_allocator_create(&allocator) == APR_SUCCESS);
    MC_ASSERT(apr_pool_create_ex(&pool, NULL, mc_memory_exhausted, allocator) == APR_SUCCESS);
    apr_allocator_owner_set(allocator, pool);
    mc_ctx ctx = { .pool = pool,
                   .process = keeper->process,
                   .log = keeper->log,
                   .abandoned = is_keeper_stopping,
                   .abandoned_baton = keeper };
    for (int attempt = 0; !is_keeper_stopping(keeper);) {
        apr_time_t begun = mc_clock_now();
        mc_error *error = keep_changes(keeper, &ctx);
        attempt = mc_clock_now() - begun > LONGEST_PAUSE ? 0 : attempt + 1;
        if (error != MC_OK)
            tell_keeper_failure(keeper, error, &ctx);
        apr_pool_clear(pool);
        (void)mc_wait_pause(mc_backoff(attempt, FIRST_PAUSE, LONGEST_PAUSE), &ctx);
    }
    apr_pool_destroy(pool);
    return NULL;
}

static char *
copy_keeper_text(const char *text)
{
    char *copy = strdup(text);
    MC_ASSERT(copy != NULL);
    return copy;
}

mc_keeper *
mc_keeper_start(const char *connection, const char *reader, apr_interval_time_t poll, apr_interval_time_t delay,
                const mc_keeper_client *client, mc_process *process, const mc_log *log)
{
    mc_keeper *keeper = calloc(1, sizeof(*keeper));
    apr_pool_t *scratch;
    MC_ASSERT(keeper != NULL);
    apr_pool_create(&scratch, NULL);
    keeper->connection = copy_keeper_text(connection);
    keeper->named = copy_keeper_text(mc_postgres_named(connection, "mapcache-keeper", scratch));
    keeper->reader = copy_keeper_text(reader);
    apr_pool_destroy(scratch);
    keeper->poll = poll;
    keeper->delay = delay;
    keeper->client = *client;
    keeper->process = process;
    keeper->log = log;
    sigset_t all, before; /* signals belong to the host's threads */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    keeper->running = pthread_create(&keeper->thread, NULL, run_keeper, keeper) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return keeper;
}

void
mc_keeper_stop(mc_keeper *keeper)
{
    atomic_store(&keeper->stopping, true);
    if (keeper->running)
        pthread_join(keeper->thread, NULL);
    free(keeper->connection);
    free(keeper->named);
    free(keeper->reader);
    free(keeper);
}

bool
mc_keeper_leads(const mc_keeper *keeper)
{
    return atomic_load(&keeper->leads);
}
