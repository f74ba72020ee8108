/*
 * Cancelling. libpq's call for it blocks, so it happens on a thread of its own, started at first need; the connection
 * is read to its end there and goes back to the pool.
 */
#include <poll.h>
#include <signal.h>

#include "base/clock.h"
#include "base/wait.h"
#include "db/postgres/postgres_private.h"

/* Microseconds that a cancelled query may take to end, before its connection is closed instead. */
#define DRAIN_TIME (5 * APR_USEC_PER_SEC)

static bool
is_stopping(mc_postgres_engine *engine)
{
    pthread_mutex_lock(&engine->lock);
    bool stopping = engine->stopping;
    pthread_mutex_unlock(&engine->lock);
    return stopping;
}

/* PQcancel sends without MSG_NOSIGNAL: a server that goes away at that moment would end a program that does not ignore
 * SIGPIPE. */
static void
send_cancel(mc_pg_connection *connection)
{
    char reason[256]; /* libpq wants somewhere to put it; the connection is closed if it does not come to rest */
    sigset_t broken_pipe, before;
    sigemptyset(&broken_pipe);
    sigaddset(&broken_pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &broken_pipe, &before);
    PGcancel *cancel = PQgetCancel(connection->pg);
    if (cancel != NULL)
        (void)PQcancel(cancel, reason, sizeof(reason));
    PQfreeCancel(cancel);
    if (sigismember(&before, SIGPIPE) == 0)
        (void)sigtimedwait(&broken_pipe, NULL, &(struct timespec){ 0, 0 });
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void
drain_cancelled_query(mc_postgres_engine *engine, mc_pg_connection *connection)
{
    apr_time_t end = mc_clock_now() + DRAIN_TIME;
    while (!mc_pg_drain_arrived(connection) && PQstatus(connection->pg) == CONNECTION_OK && mc_clock_now() < end &&
           !is_stopping(engine)) {
        short events = (short)(PQflush(connection->pg) == 1 ? POLLIN | POLLOUT : POLLIN);
        struct pollfd polled = { .fd = PQsocket(connection->pg), .events = events };
        /* A cancel that comes before its query has begun there has no effect. */
        if (poll(&polled, 1, MC_WAIT_LOOK / 1000) == 0)
            send_cancel(connection);
    }
}

static void
cancel_and_release(mc_postgres_engine *engine, mc_pg_connection *connection)
{
    if (!is_stopping(engine)) {
        send_cancel(connection);
        drain_cancelled_query(engine, connection);
    }
    mc_pg_release(engine, connection);
}

static void *
run_canceller(void *baton)
{
    mc_postgres_engine *engine = baton;
    pthread_mutex_lock(&engine->lock);
    for (;;) {
        while (engine->cancelled == NULL && !engine->stopping)
            pthread_cond_wait(&engine->work, &engine->lock);
        mc_pg_connection *connection = engine->cancelled;
        if (connection == NULL)
            break;
        engine->cancelled = connection->next;
        pthread_mutex_unlock(&engine->lock);
        cancel_and_release(engine, connection);
        pthread_mutex_lock(&engine->lock);
    }
    pthread_mutex_unlock(&engine->lock);
    return NULL;
}

void
mc_pg_cancel(mc_postgres_engine *engine, mc_pg_connection *connection)
{
    pthread_mutex_lock(&engine->lock);
    if (engine->threads && !engine->canceller_runs)
        engine->canceller_runs = pthread_create(&engine->canceller, NULL, run_canceller, engine) == 0;
    bool handed = engine->canceller_runs;
    if (handed) {
        connection->next = engine->cancelled;
        engine->cancelled = connection;
        pthread_cond_signal(&engine->work);
    }
    pthread_mutex_unlock(&engine->lock);
    if (!handed)
        cancel_and_release(engine, connection);
}

void
mc_pg_stop_canceller(mc_postgres_engine *engine)
{
    pthread_mutex_lock(&engine->lock);
    engine->stopping = true;
    pthread_cond_signal(&engine->work);
    bool runs = engine->canceller_runs;
    pthread_mutex_unlock(&engine->lock);
    if (runs)
        pthread_join(engine->canceller, NULL);
}
