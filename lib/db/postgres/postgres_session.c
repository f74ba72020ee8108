/* A connection that one caller keeps for transactions of its own, and rows that go into a table over it. */
#include <poll.h>

#include "base/clock.h"
#include "db/postgres/postgres_private.h"

/* Microseconds that a step may take where the context has no deadline. */
#define STEP_TIME (600 * APR_USEC_PER_SEC)

typedef struct pg_session {
    mc_postgres_session base; /* first: what the front sees */
    mc_postgres_engine *engine;
    mc_pg_connection *connection; /* NULL once it is closed */
    bool clean;                   /* nothing of the session is left */
    apr_pool_t *pool;
} pg_session;

static mc_pg_wait
wait_of(const pg_session *session)
{
    apr_time_t end = mc_clock_now() + mc_ctx_remaining(session->base.ctx, STEP_TIME);
    return (mc_pg_wait){ session->base.ctx, end, session->pool, NULL, false };
}

static apr_status_t
clean_up_pg_session(void *data)
{
    pg_session *session = data;
    if (session->connection != NULL) {
        /* With its connection the server ends an open transaction, and lets go of locks and settings of the session:
         * it does not go back among the others. */
        session->connection->spoiled |= !session->clean;
        if (session->connection->interrupted)
            mc_pg_cancel_session(session->engine, session->connection);
        else
            mc_pg_release(session->engine, session->connection);
        session->connection = NULL;
    }
    return APR_SUCCESS;
}

mc_error *
mc_pg_session_open(mc_postgres_session **result, mc_postgres_engine *engine, const char *connection, bool spare,
                   mc_ctx *ctx, apr_pool_t *pool)
{
    pg_session *session = apr_pcalloc(pool, sizeof(*session));
    session->base = (mc_postgres_session){ engine->ops, ctx };
    session->engine = engine;
    session->pool = pool;
    mc_pg_wait wait = wait_of(session);
    wait.spare = spare;
    char state[MC_PG_STATE] = "";
    MC_TRY(mc_pg_acquire(&session->connection, engine, connection, false, &wait));
    apr_pool_cleanup_register(pool, session, clean_up_pg_session, apr_pool_cleanup_null);
    MC_TRY(mc_pg_plan(session->connection, false, &wait, state));
    *result = &session->base;
    return MC_OK;
}

void
mc_pg_session_close(mc_postgres_session *session)
{
    apr_pool_cleanup_run(((pg_session *)session)->pool, session, clean_up_pg_session);
}

void
mc_pg_session_give_back(mc_postgres_session *session)
{
    ((pg_session *)session)->clean = true;
    mc_pg_session_close(session);
}

mc_error *
mc_pg_session_wait(bool *notified, mc_postgres_session *base)
{
    pg_session *session = (pg_session *)base;
    mc_pg_connection *connection = session->connection;
    mc_pg_wait wait = wait_of(session);
    for (;;) {
        int64_t arrived = 0;
        mc_pg_take_notifications(connection);
        *notified = connection->notified;
        connection->notified = false;
        if (*notified)
            return MC_OK;
        mc_error *error = mc_pg_wait_socket(connection, POLLIN, &wait);
        if (error != MC_OK)
            return error->kind == MC_ERR_TIMEOUT ? MC_OK : error;
        MC_TRY(mc_pg_take_input(&arrived, MC_PG_WORDS_MAX, connection, &wait));
        if (arrived == 0)
            return mc_error_create(session->pool, MC_ERR_UNAVAILABLE, "the connection to the database has ended");
    }
}

mc_pg_connection *
mc_pg_session_connection(const mc_postgres_session *session)
{
    return ((const pg_session *)session)->connection;
}

/* Reads all results up to one that asks for rows, or to the end. The first failure is what is told. */
static mc_error *
read_session_results(bool *copying, pg_session *session, const mc_pg_wait *wait)
{
    char state[MC_PG_STATE];
    mc_error *error = MC_OK;
    PGresult *result = NULL;
    for (*copying = false; !*copying;) {
        MC_TRY(mc_pg_result(&result, MC_PG_WORDS_MAX, session->connection, wait));
        if (result == NULL)
            break;
        ExecStatusType status = PQresultStatus(result);
        *copying = status == PGRES_COPY_IN;
        session->connection->spoiled |= status == PGRES_COPY_OUT || status == PGRES_COPY_BOTH;
        if (status == PGRES_FATAL_ERROR && error == MC_OK)
            error = mc_pg_server_error(result, session->connection, state, session->pool);
        PQclear(result);
        if (session->connection->spoiled)
            return mc_error_create(session->pool, MC_ERR_UPSTREAM, "the database begins a COPY that was not asked for");
    }
    return error;
}

static mc_error *
broken_session_error(const pg_session *session)
{
    return mc_error_create(session->pool, MC_ERR_UNAVAILABLE, "the connection to the database has ended");
}

mc_error *
mc_pg_copy_begin(mc_postgres_session *base, const char *sql)
{
    pg_session *session = (pg_session *)base;
    mc_pg_wait wait = wait_of(session);
    bool copying;
    session->connection->copies = true;
    if (!mc_pg_sent(session->connection, PQsendQuery(session->connection->pg, sql)))
        return PQstatus(session->connection->pg) != CONNECTION_OK
                   ? broken_session_error(session)
                   : mc_error_create(session->pool, MC_ERR_UNAVAILABLE,
                                     "a session takes no statement: one before was not read to its end");
    MC_TRY(read_session_results(&copying, session, &wait));
    if (!copying)
        return mc_error_create(session->pool, MC_ERR_UPSTREAM, "the database takes no rows for a statement");
    return MC_OK;
}

mc_error *
mc_pg_copy_bytes(mc_postgres_session *base, const void *bytes, size_t size)
{
    pg_session *session = (pg_session *)base;
    mc_pg_connection *connection = session->connection;
    mc_pg_wait wait = wait_of(session);
    int64_t arrived = 0;
    if (mc_pg_sent(connection, PQputCopyData(connection->pg, bytes, (int)size)) <= 0) /* 0: without memory */
        return broken_session_error(session);
    for (;;) {
        int left = mc_pg_flush(connection);
        if (left <= 0)
            return left == 0 ? MC_OK : broken_session_error(session);
        MC_TRY(mc_pg_wait_socket(connection, (short)left, &wait));
        /* A server that says why it stops must not wait for us to listen. */
        MC_TRY(mc_pg_take_input(&arrived, MC_PG_WORDS_MAX, connection, &wait));
    }
}

mc_error *
mc_pg_copy_end(mc_postgres_session *base)
{
    pg_session *session = (pg_session *)base;
    mc_pg_wait wait = wait_of(session);
    bool copying;
    if (mc_pg_sent(session->connection, PQputCopyEnd(session->connection->pg, NULL)) <= 0)
        return broken_session_error(session);
    return read_session_results(&copying, session, &wait);
}
