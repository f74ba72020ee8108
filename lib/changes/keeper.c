/* See keeper.h. */
#include "changes/keeper.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/wait.h"
#include "changes/follower.h"

/* Microseconds: for a short answer; for reading a long log; for removing tiles; between two signs of life. */
#define ANSWER_TIME (10 * APR_USEC_PER_SEC)
#define READ_TIME (120 * APR_USEC_PER_SEC)
#define SETTLE_TIME (3600 * APR_USEC_PER_SEC)
#define ALIVE_EACH (60 * APR_USEC_PER_SEC)
#define FIRST_PAUSE (1 * APR_USEC_PER_SEC)

struct mc_keeper {
    mc_follower *follower;
    char *connection, *reader;
    apr_interval_time_t poll, delay;
    mc_keeper_client client;
    _Atomic bool leads;
};

/* Whether this session has the lock of all readers of that name, now or already. */
static mc_error *
take_leadership(bool *taken, const mc_keeper *keeper, mc_postgres_session *session, mc_ctx *ctx, apr_pool_t *pool)
{
    const mc_postgres_param param = { .value = keeper->reader, .type = MC_POSTGRES_TEXT };
    ctx->deadline = mc_clock_now() + ANSWER_TIME;
    return mc_change_log_ask(taken, "SELECT pg_try_advisory_lock(hashtextextended('mapcache_changes ' || $1, 0))::text",
                             &param, 1, session, ctx, pool);
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

/* *done: false where the configuration has changed meanwhile, or not all could be done. */
static mc_error *
hand_to_step(bool *done, mc_keeper_step *step, const mc_keeper *keeper, const mc_log_batch *batch,
             mc_postgres_session *session, mc_ctx *ctx, apr_pool_t *pool)
{
    apr_array_header_t *names, *found;
    unsigned number = keeper->client.names(&names, keeper->client.baton, keeper->connection, pool);
    ctx->deadline = mc_clock_now() + ANSWER_TIME;
    MC_TRY(mc_change_log_resolve(&found, names, session, ctx, pool));
    ctx->deadline = mc_clock_now() + SETTLE_TIME;
    return step(done, keeper->client.baton, keeper->connection, batch, found, number, ctx, pool);
}

/* Where the readers have got to. Who has applied nothing is noted: what it has not applied stays in the log. */
static mc_error *
find_log_place(mc_log_cursor *cursor, const mc_keeper *keeper, mc_postgres_session *session, mc_ctx *ctx,
               apr_pool_t *pool)
{
    ctx->deadline = mc_clock_now() + ANSWER_TIME;
    MC_TRY(mc_change_log_find_reader(&cursor->snapshot, keeper->reader, session, ctx, pool));
    if (strcmp(cursor->snapshot, MC_LOG_BEGINNING) == 0)
        MC_TRY(mc_change_log_enter_reader(keeper->reader, session, ctx, pool));
    return MC_OK;
}

/* One turn: what has been logged since the last one is given time, and made durable. *begun: false in the first one. */
static mc_error *
keep_once(const mc_keeper *keeper, bool *begun, apr_time_t *alive, mc_postgres_session *session, mc_ctx *ctx,
          apr_pool_t *pool)
{
    mc_log_batch batch;
    mc_log_cursor cursor = { NULL, NULL };
    bool done = true;
    MC_TRY(find_log_place(&cursor, keeper, session, ctx, pool));
    ctx->deadline = mc_clock_now() + READ_TIME;
    MC_TRY(mc_change_log_read(&batch, &cursor, keeper->reader, session, ctx, pool));
    bool news = batch.rows > 0 || batch.lost;
    if (news && !*begun)
        MC_TRY(hand_to_step(&done, keeper->client.begin, keeper, &batch, session, ctx, pool));
    *begun = *begun || done;
    if (!news && mc_clock_now() - *alive < ALIVE_EACH)
        return MC_OK;
    if (news && !mc_wait_pause(keeper->delay, ctx))
        return MC_OK; /* the process ends: another one does it */
    if (news)
        MC_TRY(hand_to_step(&done, keeper->client.settle, keeper, &batch, session, ctx, pool));
    if (!done)
        return MC_OK; /* the next turn does it */
    *alive = mc_clock_now();
    return move_place(keeper, cursor.snapshot, session, ctx, pool);
}

/* Until the connection ends. */
static mc_error *
keep_changes(void *baton, mc_follower *follower, mc_postgres_session *session, mc_ctx *ctx)
{
    mc_keeper *keeper = baton;
    apr_time_t alive = mc_clock_now() - ALIVE_EACH;
    mc_error *error = MC_OK;
    bool begun = false;
    while (error == MC_OK && !mc_ctx_abandoned(ctx)) {
        apr_pool_t *pool;
        bool leads = atomic_load(&keeper->leads);
        apr_pool_create(&pool, ctx->pool);
        if (!leads)
            error = take_leadership(&leads, keeper, session, ctx, pool);
        atomic_store(&keeper->leads, leads);
        if (error == MC_OK && leads)
            error = keep_once(keeper, &begun, &alive, session, ctx, pool);
        error = mc_error_copy(error, ctx->pool);
        apr_pool_destroy(pool);
        if (error == MC_OK) {
            mc_follower_note_success(follower, ctx);
            (void)mc_wait_pause(keeper->poll, ctx);
        }
    }
    atomic_store(&keeper->leads, false);
    return error;
}

mc_keeper *
mc_keeper_start(const char *connection, const char *reader, apr_interval_time_t poll, apr_interval_time_t delay,
                const mc_keeper_client *client, mc_process *process, const mc_log *log)
{
    mc_keeper *keeper = calloc(1, sizeof(*keeper));
    MC_ASSERT(keeper != NULL);
    keeper->connection = mc_follower_copy_text(connection);
    keeper->reader = mc_follower_copy_text(reader);
    keeper->poll = poll;
    keeper->delay = delay;
    keeper->client = *client;
    /* That there is no log, or no database, the listener says. */
    const mc_follower_work work = { .follow = keep_changes,
                                    .baton = keeper,
                                    .application = "mapcache-keeper",
                                    .first_pause = FIRST_PAUSE,
                                    .level = MC_LOG_INFO,
                                    .failure = "old tiles stay in their stores for now" };
    keeper->follower = mc_follower_start(connection, &work, process, log);
    return keeper;
}

void
mc_keeper_stop(mc_keeper *keeper)
{
    mc_follower_stop(keeper->follower);
    free(keeper->connection);
    free(keeper->reader);
    free(keeper);
}

bool
mc_keeper_leads(const mc_keeper *keeper)
{
    return atomic_load(&keeper->leads);
}
