/*
 * Cancelling. libpq's call for it blocks, so it happens on a thread of its own, started at first need; the connection
 * is read to its end there and goes back to the pool. The call itself has one more thread: of a server that takes the
 * request and never ends its connection nobody waits for the end.
 */
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/wait.h"
#include "db/postgres/postgres_private.h"

/* Microseconds that a cancelled query may take to end, before its connection is closed instead. */
#define DRAIN_TIME (5 * APR_USEC_PER_SEC)
/* Microseconds that are waited for the server to take the request. */
#define CALL_TIME (2 * APR_USEC_PER_SEC)
/* Calls of the process that do not come back; with so many no other is made. */
#define STUCK_MAX 4
/* Connections that are waited for at a time. */
enum { POLLED_MAX = 64 };

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
call_cancel(PGcancel *cancel)
{
    char reason[256]; /* libpq wants somewhere to put it; the connection is closed if it does not come to rest */
    sigset_t broken_pipe, before;
    sigemptyset(&broken_pipe);
    sigaddset(&broken_pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &broken_pipe, &before);
    (void)PQcancel(cancel, reason, sizeof(reason));
    PQfreeCancel(cancel);
    if (sigismember(&before, SIGPIPE) == 0)
        (void)sigtimedwait(&broken_pipe, NULL, &(struct timespec){ 0, 0 });
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* A call on its way; freed by whoever leaves it last. */
typedef struct pg_cancel_call {
    PGcancel *cancel;
    pthread_mutex_t lock; /* of `left` */
    pthread_cond_t ended;
    bool left; /* one of the two has gone */
} pg_cancel_call;

static atomic_int stuck;

/* True for the last one. */
static bool
leave_call(pg_cancel_call *call)
{
    bool last = call->left;
    call->left = true;
    pthread_cond_signal(&call->ended);
    pthread_mutex_unlock(&call->lock);
    if (last) {
        pthread_cond_destroy(&call->ended);
        pthread_mutex_destroy(&call->lock);
        free(call);
    }
    return last;
}

static void *
run_cancel_call(void *baton)
{
    pg_cancel_call *call = baton;
    call_cancel(call->cancel);
    pthread_mutex_lock(&call->lock);
    if (leave_call(call))
        atomic_fetch_sub(&stuck, 1);
    return NULL;
}

/* The call on a thread of its own; what it takes longer than others it takes alone. False: the server did not take it.
 */
static bool
send_cancel(mc_postgres_engine *engine, mc_pg_connection *connection)
{
    pthread_t thread;
    if (atomic_load(&stuck) >= STUCK_MAX)
        return false;
    pg_cancel_call *call = calloc(1, sizeof(*call));
    MC_ASSERT(call != NULL);
    call->cancel = PQgetCancel(connection->pg);
    pthread_mutex_init(&call->lock, NULL);
    mc_clock_condition(&call->ended);
    if (call->cancel == NULL || !engine->threads || pthread_create(&thread, NULL, run_cancel_call, call) != 0) {
        if (call->cancel != NULL)
            call_cancel(call->cancel);
        call->left = true;
        pthread_mutex_lock(&call->lock);
        leave_call(call);
        return true;
    }
    pthread_detach(thread);
    apr_time_t end = mc_clock_now() + CALL_TIME;
    pthread_mutex_lock(&call->lock);
    while (!call->left && mc_clock_now() < end)
        mc_clock_wait(&call->ended, &call->lock, end);
    bool taken = call->left;
    if (!taken)
        atomic_fetch_add(&stuck, 1);
    leave_call(call);
    return taken;
}

/* *deaf: the connection's target, if its server did not take the call; then the connection is not waited for. */
static void
ask_for_cancel(const mc_pg_target **deaf, mc_postgres_engine *engine, mc_pg_connection *connection)
{
    if (!send_cancel(engine, connection)) {
        connection->until = 0;
        *deaf = connection->target;
    }
    connection->asked = mc_clock_now();
}

/* Asks for all of a list before any is waited for, and has them wait from then on, all for as long. Of a server that
 * did not take one call, the others are asked for later: each such call takes CALL_TIME. */
static void
ask_for_cancels(mc_pg_connection **waiting, mc_postgres_engine *engine, mc_pg_connection *list)
{
    mc_pg_connection *last = NULL;
    const mc_pg_target *deaf = NULL;
    for (mc_pg_connection *at = list; at != NULL; last = at, at = at->next) {
        at->drained = 0;
        at->pause = MC_WAIT_LOOK;
        at->asked = mc_clock_now();
        at->until = is_stopping(engine) ? 0 : at->asked;
        if (at->until != 0 && at->target != deaf)
            ask_for_cancel(&deaf, engine, at);
    }
    for (mc_pg_connection *at = list; at != NULL; at = at->next)
        at->until = at->until == 0 ? 0 : mc_clock_now() + DRAIN_TIME;
    if (last != NULL) {
        last->next = *waiting;
        *waiting = list;
    }
}

/* Whether what was cancelled has ended, or is not waited for any more. Takes what has arrived. */
static bool
is_drained(mc_postgres_engine *engine, mc_pg_connection *connection)
{
    return connection->until == 0 || mc_pg_drain_arrived(connection) || connection->spoiled ||
           PQstatus(connection->pg) != CONNECTION_OK || mc_clock_now() >= connection->until || is_stopping(engine);
}

/* A cancel that comes before its query has begun at the server has no effect: where nothing comes, it is sent again,
 * after longer and longer pauses, for each makes a connection of its own. */
static void
ask_again(const mc_pg_target **deaf, mc_postgres_engine *engine, mc_pg_connection *connection)
{
    if (connection->target == *deaf || mc_clock_now() < connection->asked + connection->pause)
        return;
    connection->pause *= 2;
    ask_for_cancel(deaf, engine, connection);
}

/* Lets go of those that have ended, and waits a moment for the others, all at a time. */
static void
drain_cancelled_queries(mc_pg_connection **waiting, mc_postgres_engine *engine)
{
    struct pollfd polled[POLLED_MAX];
    int count = 0;
    for (mc_pg_connection **at = waiting; *at != NULL;) {
        mc_pg_connection *connection = *at;
        if (is_drained(engine, connection)) {
            *at = connection->next;
            mc_pg_release(engine, connection);
            continue;
        }
        if (count < POLLED_MAX) {
            int left = mc_pg_flush(connection);
            polled[count++] = (struct pollfd){ .fd = mc_pg_pump_socket(&connection->pump, connection->pg),
                                               .events = (short)(left > 0 ? left : POLLIN) };
        }
        at = &connection->next;
    }
    if (count == 0 || poll(polled, (nfds_t)count, MC_WAIT_LOOK / 1000) < 0)
        return;
    mc_pg_connection *connection = *waiting;
    const mc_pg_target *deaf = NULL;
    for (int i = 0; i < count; i++, connection = connection->next)
        if (polled[i].revents == 0)
            ask_again(&deaf, engine, connection);
}

static void
cancel_and_release(mc_postgres_engine *engine, mc_pg_connection *connection)
{
    mc_pg_connection *waiting = NULL;
    connection->next = NULL;
    ask_for_cancels(&waiting, engine, connection);
    while (waiting != NULL)
        drain_cancelled_queries(&waiting, engine);
}

static void *
run_canceller(void *baton)
{
    mc_postgres_engine *engine = baton;
    mc_pg_connection *waiting = NULL;
    pthread_mutex_lock(&engine->lock);
    for (;;) {
        while (engine->cancelled == NULL && waiting == NULL && !engine->stopping)
            pthread_cond_wait(&engine->work, &engine->lock);
        mc_pg_connection *list = engine->cancelled;
        if (list == NULL && waiting == NULL)
            break;
        engine->cancelled = NULL;
        pthread_mutex_unlock(&engine->lock);
        ask_for_cancels(&waiting, engine, list);
        drain_cancelled_queries(&waiting, engine);
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
mc_pg_cancel_session(mc_postgres_engine *engine, mc_pg_connection *connection)
{
    connection->spoiled = PQstatus(connection->pg) != CONNECTION_OK;
    if (connection->spoiled)
        mc_pg_release(engine, connection);
    else
        mc_pg_cancel(engine, connection);
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
