/*
 * Locks between machines in a PostgreSQL server: advisory locks of a session. Who waits waits in the server's own
 * queue, which wakes the next one at once; a holder that dies has no session any more.
 */
#include <apr_strings.h>
#include <string.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/hash.h"
#include "db/postgres/postgres.h"
#include "lock/locker.h"

/* Microseconds for a connection and a first answer, also at the end of a request; and for giving the lock back. */
#define ANSWER_AT_LEAST (APR_USEC_PER_SEC / 10)
#define ANSWER_AT_MOST (5 * APR_USEC_PER_SEC)
#define RELEASE_AT_MOST (1 * APR_USEC_PER_SEC)

enum { SESSIONS_MAX = 3 /* connections tried where kept ones have ended */ };

typedef struct postgresql_held {
    mc_postgres_session *session;
    uint8_t key[8]; /* as the wire has it */
    mc_ctx ctx;     /* of the session: its deadline is that of the statement under way */
    apr_pool_t *pool;
} postgresql_held;

/* Sends one of the three statements for the lock. *done: what the server says, true where it says nothing. */
static mc_error *
ask_advisory_lock(bool *done, postgresql_held *held, const char *sql, apr_time_t until)
{
    const mc_postgres_param param = { .value = held->key, .size = 8, .binary = true, .type = MC_POSTGRES_INT8 };
    const mc_postgres_query query = {
        .session = held->session, .sql = sql, .params = &param, .param_count = 1, .binary = true
    };
    mc_postgres_result *result;
    const mc_postgres_row *row = NULL;
    held->ctx.deadline = until;
    *done = true;
    mc_error *error = mc_postgres_start(&result, held->ctx.process->postgres, &query, &held->ctx, held->pool);
    if (error == MC_OK)
        error = mc_postgres_next(&row, result);
    if (error == MC_OK && row != NULL && row->fields[0].type == MC_POSTGRES_BOOL)
        *done = row->fields[0].size == 1 && row->fields[0].data[0] != 0;
    while (error == MC_OK && row != NULL)
        error = mc_postgres_next(&row, result);
    mc_postgres_end(result);
    return error;
}

/* A session, and whether it has the lock at once. A kept connection that has ended is replaced. */
static mc_error *
try_postgresql_lock(bool *taken, postgresql_held *held, const char *connection, apr_time_t until)
{
    mc_error *error = MC_OK;
    for (int i = 0; i < SESSIONS_MAX; i++) {
        held->ctx.deadline = until;
        MC_TRY(
            mc_postgres_session_open(&held->session, held->ctx.process->postgres, connection, &held->ctx, held->pool));
        error = ask_advisory_lock(taken, held, "SELECT pg_try_advisory_lock($1)", until);
        if (error == MC_OK)
            return MC_OK;
        mc_postgres_session_close(held->session);
        held->session = NULL;
        if (error->kind != MC_ERR_UNAVAILABLE || mc_clock_now() >= until || mc_ctx_abandoned(&held->ctx))
            break;
    }
    return error;
}

/* The wait ended without the lock: because of the request, or of the server. */
static mc_error *
postgresql_lock_failure(mc_error *error, apr_time_t until, mc_ctx *ctx, apr_pool_t *pool)
{
    if (mc_ctx_abandoned(ctx))
        return mc_error_create(pool, MC_ERR_UNAVAILABLE, "the client has gone");
    if (until != 0 && mc_clock_now() >= until)
        return mc_locker_busy(pool);
    return mc_error_wrap(pool, error, MC_ERR_IO, "the lock server cannot be used");
}

static mc_error *
postgresql_acquire(void **held, bool *waited, mc_locker *locker, const char *name, apr_time_t until, mc_ctx *ctx,
                   apr_pool_t *pool)
{
    postgresql_held *mine = apr_pcalloc(pool, sizeof(*mine));
    uint64_t hash = mc_hash64(name, strlen(name), 0);
    apr_interval_time_t time = mc_ctx_remaining(ctx, ANSWER_AT_MOST);
    bool taken = false;
    if (ctx->process == NULL)
        return mc_error_create(pool, MC_ERR_IO, "there is no connection to the lock server");
    mine->ctx = *ctx;
    mine->pool = pool;
    (void)mc_store_big32(mc_store_big32(mine->key, (uint32_t)(hash >> 32)), (uint32_t)hash);
    apr_time_t first = mc_clock_now() + (time < ANSWER_AT_LEAST ? ANSWER_AT_LEAST : time);
    mc_error *error = try_postgresql_lock(&taken, mine, locker->baton, first);
    if (error != MC_OK)
        return postgresql_lock_failure(error, 0, ctx, pool);
    *waited = !taken;
    if (!taken && mc_clock_now() < until)
        error = ask_advisory_lock(&taken, mine, "SELECT pg_advisory_lock($1)", until);
    if (error == MC_OK && taken) {
        *held = mine;
        return MC_OK;
    }
    mc_postgres_session_close(mine->session); /* a lock that was given at this moment goes with it */
    return error == MC_OK ? mc_locker_busy(pool) : postgresql_lock_failure(error, until, ctx, pool);
}

static void
postgresql_release(mc_locker *locker, void *held, mc_ctx *ctx)
{
    (void)locker;
    postgresql_held *mine = held;
    apr_interval_time_t most = mc_ctx_remaining(ctx, RELEASE_AT_MOST);
    bool done;
    mine->ctx.abandoned = NULL; /* a client that has gone is no reason to keep others out */
    mc_error *error = ask_advisory_lock(&done, mine, "SELECT pg_advisory_unlock($1)",
                                        mc_clock_now() + (most < ANSWER_AT_LEAST ? ANSWER_AT_LEAST : most));
    if (error == MC_OK && done) {
        mc_postgres_session_give_back(mine->session);
        return;
    }
    mc_log_write(ctx, MC_LOG_WARN, "a lock goes with its connection: %s",
                 error == MC_OK ? "the server did not know it" : mc_error_chain(error, ctx->pool));
    mc_postgres_session_close(mine->session);
}

static const mc_locker_ops postgresql_ops = { postgresql_acquire, postgresql_release, NULL, mc_locker_try_any };

/* Connections of their own: who holds a lock may wait for one of the others, never the other way round. */
static const char *
name_lock_connection(const char *connection, apr_pool_t *pool)
{
    bool uri = strncmp(connection, "postgresql://", 13) == 0 || strncmp(connection, "postgres://", 11) == 0;
    const char *mark = !uri ? " " : strchr(connection, '?') == NULL ? "?" : "&";
    return apr_pstrcat(pool, connection, mark, "application_name=mapcache-locks", NULL);
}

mc_locker *
mc_locker_postgresql(const char *connection, double timeout, const mc_node *node, mc_build *build)
{
    mc_locker *locker = apr_pcalloc(build->pool, sizeof(*locker));
    char *own = apr_pstrdup(build->pool, name_lock_connection(connection, build->pool));
    mc_postgres_configure(own, node, build);
    *locker = (mc_locker){ .ops = &postgresql_ops, .baton = own, .timeout = timeout, .pool = build->pool };
    return locker;
}
