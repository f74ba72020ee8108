/* See follower.h. */
#include "changes/follower.h"

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

/* Microseconds: for a connection and a short answer; between two connections at most. */
#define ANSWER_TIME (10 * APR_USEC_PER_SEC)
#define LONGEST_PAUSE (30 * APR_USEC_PER_SEC)

struct mc_follower {
    char *connection, *named;
    mc_follower_work work;
    mc_process *process;
    const mc_log *log;
    pthread_t thread;
    bool running;
    _Atomic bool stopping, succeeds;
    uint64_t told; /* of the thread: hash of the failure that was logged last; 0: it works */
};

static bool
is_follower_stopping(void *baton)
{
    return atomic_load_explicit(&((mc_follower *)baton)->stopping, memory_order_relaxed);
}

/* A standby server has the log, but no notifications, nor places of readers; and what it shows comes later. */
static mc_error *
refuse_standby(mc_postgres_session *session, mc_ctx *ctx, apr_pool_t *pool)
{
    bool standby = false;
    MC_TRY(mc_change_log_ask(&standby, "SELECT pg_is_in_recovery()::text", NULL, 0, session, ctx, pool));
    if (standby)
        return mc_error_create(pool, MC_ERR_UNAVAILABLE,
                               "the database is a standby server, on which nothing can be followed: the connection has "
                               "to lead to the primary server (target_session_attrs=read-write)");
    return MC_OK;
}

static mc_error *
follow_once(mc_follower *follower, mc_ctx *ctx)
{
    mc_postgres_session *session;
    ctx->deadline = mc_clock_now() + ANSWER_TIME;
    MC_TRY(mc_postgres_session_open(&session, follower->process->postgres, follower->named, ctx, ctx->pool));
    mc_error *error = refuse_standby(session, ctx, ctx->pool);
    if (error == MC_OK)
        error = follower->work.follow(follower->work.baton, follower, session, ctx);
    mc_postgres_session_close(session);
    return error;
}

static void
tell_follower_failure(mc_follower *follower, const mc_error *error, mc_ctx *ctx)
{
    const char *why = mc_error_chain(error, ctx->pool);
    const uint64_t hash = mc_hash64(why, strlen(why), 0) | 1;
    if (hash != follower->told && !is_follower_stopping(follower))
        mc_log_write(ctx, follower->work.level, "%s: %s", follower->work.failure, why);
    follower->told = hash;
}

void
mc_follower_note_success(mc_follower *follower, mc_ctx *ctx)
{
    bool before = atomic_exchange(&follower->succeeds, true);
    if (!before && follower->told != 0 && follower->work.again != NULL)
        mc_log_write(ctx, MC_LOG_NOTICE, "%s", follower->work.again);
    follower->told = 0;
}

bool
mc_follower_succeeds(const mc_follower *follower)
{
    return atomic_load(&follower->succeeds);
}

static void *
run_follower(void *baton)
{
    mc_follower *follower = baton;
    apr_pool_t *pool = mc_task_pool_acquire();
    int attempt = 0;
    mc_ctx ctx = { .pool = pool,
                   .process = follower->process,
                   .log = follower->log,
                   .abandoned = is_follower_stopping,
                   .abandoned_baton = follower };
    while (!is_follower_stopping(follower)) {
        mc_error *error = follow_once(follower, &ctx);
        if (atomic_exchange(&follower->succeeds, false))
            attempt = 0;
        if (error != MC_OK)
            tell_follower_failure(follower, error, &ctx);
        apr_pool_clear(pool);
        (void)mc_wait_pause(mc_backoff(attempt++, follower->work.first_pause, LONGEST_PAUSE), &ctx);
    }
    mc_task_pool_release(pool);
    return NULL;
}

char *
mc_follower_copy_text(const char *text)
{
    char *copy = strdup(text);
    MC_ASSERT(copy != NULL);
    return copy;
}

mc_follower *
mc_follower_start(const char *connection, const mc_follower_work *work, mc_process *process, const mc_log *log)
{
    mc_follower *follower = calloc(1, sizeof(*follower));
    apr_pool_t *scratch;
    MC_ASSERT(follower != NULL);
    apr_pool_create(&scratch, NULL);
    follower->connection = mc_follower_copy_text(connection);
    follower->named = mc_follower_copy_text(mc_postgres_named(connection, work->application, scratch));
    apr_pool_destroy(scratch);
    follower->work = *work;
    follower->process = process;
    follower->log = log;
    follower->running = mc_thread_start(&follower->thread, NULL, run_follower, follower) == 0;
    return follower;
}

void
mc_follower_stop(mc_follower *follower)
{
    atomic_store(&follower->stopping, true);
    if (follower->running)
        pthread_join(follower->thread, NULL);
    free(follower->connection);
    free(follower->named);
    free(follower);
}

const char *
mc_follower_connection(const mc_follower *follower)
{
    return follower->connection;
}
