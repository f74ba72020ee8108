/*
 * Locks between machines in a PostgreSQL server: advisory locks of a session. Who waits waits in the server's own
 * queue, which wakes the next one at once; a holder that dies has no session any more.
 */
#include <apr_strings.h>
#include <pthread.h>
#include <string.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/wait.h"
#include "db/postgres/postgres.h"
#include "lock/locker.h"

/* Microseconds for a connection and a first answer, also at the end of a request; and for giving the lock back. */
#define ANSWER_AT_LEAST (APR_USEC_PER_SEC / 10)
#define ANSWER_AT_MOST (5 * APR_USEC_PER_SEC)
#define RELEASE_AT_MOST (1 * APR_USEC_PER_SEC)

enum { SESSIONS_MAX = 3 /* connections tried where kept ones have ended */ };

/* Microseconds between two questions for a lock in a session that has others, at first and at most. */
#define SHARED_FIRST_PAUSE (APR_USEC_PER_SEC / 200)
#define SHARED_LONGEST_PAUSE (APR_USEC_PER_SEC / 10)

/* A session at the server, for one statement at a time. */
typedef struct lock_connection {
    mc_postgres_session *session;
    mc_ctx ctx; /* of the session: its deadline is that of the statement under way */
    apr_pool_t *pool;
    int locks;    /* that it has */
    bool spoiled; /* one of them may be left there: the session has to end */
} lock_connection;

/*
 * A lock that is held. Who holds one and needs another one (a tileset whose source is a tileset) takes that one in the
 * same session, which has nothing else to do meanwhile: if each needed a second session, all could have their first and
 * wait for ever for the second. Workers that do a part of the request have copies of its context, and see its locks:
 * the session, its pool and its trace are those of the thread that has opened it, and of no other.
 */
typedef struct mc_lock_session {
    lock_connection *connection;
    const char *server;             /* its connection string */
    uint8_t key[8];                 /* as the wire has it */
    pthread_t thread;               /* who may use the session */
    bool lent;                      /* another lock has the session's attention; only for that thread to look at */
    struct mc_lock_session *lender; /* of the session; NULL: it is the lock's own */
    struct mc_lock_session *outer;  /* of the same request */
} postgresql_held;

/* Sends one of the three statements for the lock. *done: what the server says, true where it says nothing. */
static mc_error *
ask_advisory_lock(bool *done, const postgresql_held *held, const char *sql, apr_time_t until)
{
    lock_connection *connection = held->connection;
    const mc_postgres_param param = { .value = held->key, .size = 8, .binary = true, .type = MC_POSTGRES_INT8 };
    const mc_postgres_query query = {
        .session = connection->session, .sql = sql, .params = &param, .param_count = 1, .binary = true
    };
    mc_postgres_result *result;
    const mc_postgres_row *row = NULL;
    connection->ctx.deadline = until;
    *done = true;
    mc_error *error =
        mc_postgres_start(&result, connection->ctx.process->postgres, &query, &connection->ctx, connection->pool);
    if (error == MC_OK)
        error = mc_postgres_next(&row, result);
    if (error == MC_OK && row != NULL && row->fields[0].type == MC_POSTGRES_BOOL)
        *done = row->fields[0].size == 1 && row->fields[0].data[0] != 0;
    while (error == MC_OK && row != NULL)
        error = mc_postgres_next(&row, result);
    mc_postgres_end(result);
    return error;
}

/* A session of the lock's own, and whether it has the lock at once. A kept connection that has ended is replaced. */
static mc_error *
try_postgresql_lock(bool *taken, postgresql_held *held, apr_time_t until)
{
    lock_connection *connection = held->connection;
    mc_error *error = MC_OK;
    for (int i = 0; i < SESSIONS_MAX; i++) {
        connection->ctx.deadline = until;
        MC_TRY(mc_postgres_session_open(&connection->session, connection->ctx.process->postgres, held->server,
                                        &connection->ctx, connection->pool));
        error = ask_advisory_lock(taken, held, "SELECT pg_try_advisory_lock($1)", until);
        if (error == MC_OK)
            return MC_OK;
        mc_postgres_session_close(connection->session);
        connection->session = NULL;
        if (error->kind != MC_ERR_UNAVAILABLE || mc_clock_now() >= until || mc_ctx_abandoned(&connection->ctx))
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

/* The request's lock whose session this thread can use, too; NULL: there is none. Who has the very lock already waits
 * for it in another session, as everybody does. */
static postgresql_held *
find_lender(const postgresql_held *mine, const mc_ctx *ctx)
{
    postgresql_held *found = NULL;
    for (postgresql_held *held = ctx->locks; held != NULL; held = held->outer) {
        if (strcmp(held->server, mine->server) != 0)
            continue;
        if (memcmp(held->key, mine->key, sizeof(mine->key)) == 0)
            return NULL;
        if (found == NULL && pthread_equal(held->thread, mine->thread) && !held->lent && !held->connection->spoiled)
            found = held;
    }
    return found;
}

/* By asking again and again: a wait at the server could only be given up together with the session. */
static mc_error *
wait_in_shared_session(bool *taken, bool *waited, postgresql_held *mine, apr_time_t until, mc_ctx *ctx)
{
    *waited = false;
    for (apr_interval_time_t pause = SHARED_FIRST_PAUSE;; pause = 2 * pause) {
        MC_TRY(ask_advisory_lock(taken, mine, "SELECT pg_try_advisory_lock($1)", mc_clock_now() + ANSWER_AT_MOST));
        if (*taken || mc_clock_now() >= until)
            return MC_OK;
        *waited = true;
        pause = pause < SHARED_LONGEST_PAUSE ? pause : SHARED_LONGEST_PAUSE;
        if (!mc_wait_pause(pause, ctx))
            return MC_OK;
    }
}

static mc_error *
acquire_in_shared_session(postgresql_held *mine, bool *waited, postgresql_held *lender, apr_time_t until, mc_ctx *ctx,
                          apr_pool_t *pool)
{
    bool taken = false;
    mine->connection = lender->connection;
    mine->lender = lender;
    lender->lent = true;
    mc_error *error = wait_in_shared_session(&taken, waited, mine, until, ctx);
    if (error == MC_OK && taken) {
        mine->connection->locks++;
        return MC_OK;
    }
    lender->lent = false;
    mine->connection->spoiled |= error != MC_OK; /* the lock may have been given all the same */
    if (error == MC_OK && mc_ctx_abandoned(ctx))
        return mc_error_create(pool, MC_ERR_UNAVAILABLE, "the client has gone");
    return error == MC_OK ? mc_locker_busy(pool) : postgresql_lock_failure(error, until, ctx, pool);
}

static mc_error *
acquire_in_own_session(postgresql_held *mine, bool *waited, apr_time_t until, mc_ctx *ctx, apr_pool_t *pool)
{
    apr_interval_time_t time = mc_ctx_remaining(ctx, ANSWER_AT_MOST);
    bool taken = false;
    mine->connection = apr_pcalloc(pool, sizeof(*mine->connection));
    mine->connection->ctx = *ctx;
    mine->connection->pool = pool;
    apr_time_t first = mc_clock_now() + (time < ANSWER_AT_LEAST ? ANSWER_AT_LEAST : time);
    mc_error *error = try_postgresql_lock(&taken, mine, first);
    if (error != MC_OK)
        return postgresql_lock_failure(error, 0, ctx, pool);
    *waited = !taken;
    if (!taken && mc_clock_now() < until)
        error = ask_advisory_lock(&taken, mine, "SELECT pg_advisory_lock($1)", until);
    if (error == MC_OK && taken) {
        mine->connection->locks = 1;
        return MC_OK;
    }
    mc_postgres_session_close(mine->connection->session); /* a lock that was given at this moment goes with it */
    return error == MC_OK ? mc_locker_busy(pool) : postgresql_lock_failure(error, until, ctx, pool);
}

static mc_error *
postgresql_acquire(void **held, bool *waited, mc_locker *locker, const char *name, apr_time_t until, mc_ctx *ctx,
                   apr_pool_t *pool)
{
    postgresql_held *mine = apr_pcalloc(pool, sizeof(*mine));
    uint64_t hash = mc_hash64(name, strlen(name), 0);
    if (ctx->process == NULL)
        return mc_error_create(pool, MC_ERR_IO, "there is no connection to the lock server");
    mine->server = locker->baton;
    mine->thread = pthread_self();
    (void)mc_store_big32(mc_store_big32(mine->key, (uint32_t)(hash >> 32)), (uint32_t)hash);
    postgresql_held *lender = find_lender(mine, ctx);
    MC_TRY(lender != NULL ? acquire_in_shared_session(mine, waited, lender, until, ctx, pool)
                          : acquire_in_own_session(mine, waited, until, ctx, pool));
    mine->outer = ctx->locks;
    ctx->locks = mine;
    *held = mine;
    return MC_OK;
}

/* The request has it no more. */
static void
forget_held_lock(const postgresql_held *mine, mc_ctx *ctx)
{
    for (postgresql_held **at = &ctx->locks; *at != NULL; at = &(*at)->outer)
        if (*at == mine) {
            *at = mine->outer;
            break;
        }
    if (mine->lender != NULL)
        mine->lender->lent = false;
}

static void
postgresql_release(mc_locker *locker, void *held, mc_ctx *ctx)
{
    (void)locker;
    postgresql_held *mine = held;
    lock_connection *connection = mine->connection;
    apr_interval_time_t most = mc_ctx_remaining(ctx, RELEASE_AT_MOST);
    bool done;
    bool (*abandoned)(void *) = connection->ctx.abandoned;
    connection->ctx.abandoned = NULL; /* a client that has gone is no reason to keep others out */
    mc_error *error = ask_advisory_lock(&done, mine, "SELECT pg_advisory_unlock($1)",
                                        mc_clock_now() + (most < ANSWER_AT_LEAST ? ANSWER_AT_LEAST : most));
    connection->ctx.abandoned = abandoned;
    forget_held_lock(mine, ctx);
    if (error != MC_OK || !done) {
        connection->spoiled = true;
        mc_log_write(ctx, MC_LOG_WARN, "a lock goes with its connection: %s",
                     error == MC_OK ? "the server did not know it" : mc_error_chain(error, ctx->pool));
    }
    if (--connection->locks > 0)
        return;
    if (connection->spoiled)
        mc_postgres_session_close(connection->session);
    else
        mc_postgres_session_give_back(connection->session);
}

static const mc_locker_ops postgresql_ops = { postgresql_acquire, postgresql_release, NULL, mc_locker_try_any };

mc_locker *
mc_locker_postgresql(const char *connection, double timeout, const mc_node *node, mc_build *build)
{
    mc_locker *locker = apr_pcalloc(build->pool, sizeof(*locker));
    /* connections of their own: who holds a lock may wait for one of the others, never the other way round */
    char *own = apr_pstrdup(build->pool, mc_postgres_named(connection, "mapcache-locks", build->pool));
    mc_postgres_configure(own, node, build);
    *locker = (mc_locker){ .ops = &postgresql_ops, .baton = own, .timeout = timeout, .pool = build->pool };
    return locker;
}
