/*
 * Who has which connection: at most `limit` for each connection string; a server that cannot be reached is left alone
 * for a second; one that has no free place is asked by one caller at a time while the others wait.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "base/semaphore.h"
#include "base/wait.h"
#include "db/postgres/postgres_counters.h"
#include "db/postgres/postgres_private.h"

/* Microseconds that a failure to connect is taken for the server's answer. */
#define FAILURE_TIME (1 * APR_USEC_PER_SEC)
/* Microseconds between two attempts at a server whose places are all taken. */
#define CROWDED_TIME (100 * 1000)

/* With the lock held. */
static mc_pg_target *
find_target(mc_postgres_engine *engine, const char *string)
{
    for (mc_pg_target *target = engine->targets; target != NULL; target = target->next)
        if (strcmp(target->connection, string) == 0)
            return target;
    mc_pg_target *target = calloc(1, sizeof(*target));
    MC_ASSERT(target != NULL);
    target->connection = strdup(string);
    MC_ASSERT(target->connection != NULL);
    mc_pg_describe(target);
    mc_clock_condition(&target->changed);
    target->next = engine->targets;
    engine->targets = target;
    return target;
}

/* Waits for a change, at most until `until` and not so long that an abandoned request would go unnoticed. With the lock
 * held. */
static mc_error *
wait_for_change(mc_postgres_engine *engine, mc_pg_target *target, apr_time_t until, const mc_pg_wait *wait)
{
    apr_time_t now = mc_clock_now();
    if (now >= wait->end)
        return mc_error_create(wait->pool, MC_ERR_UNAVAILABLE,
                               target->crowded ? "the database had no free connection before the deadline"
                                               : "all connections to the database are in use");
    if (mc_ctx_abandoned(wait->ctx))
        return mc_error_create(wait->pool, MC_ERR_UNAVAILABLE, "the client has gone");
    apr_interval_time_t left = (until < wait->end ? until : wait->end) - now;
    if (left > MC_WAIT_LOOK)
        left = MC_WAIT_LOOK;
    mc_semaphore_yield(wait->ctx); /* whoever has the connections may wait for this place: see mc_pg_acquire */
    (void)mc_clock_wait(&target->changed, &engine->lock, now + left);
    return MC_OK;
}

/* The idle connection that was used last, of those that plan in the wanted way; any one, where no other may be made.
 * NULL: none. With the lock held. */
static mc_pg_connection *
take_idle_connection(const mc_postgres_engine *engine, mc_pg_target *target, bool by_key)
{
    mc_pg_connection **at = &target->idle;
    while (*at != NULL && (*at)->by_key != by_key)
        at = &(*at)->next;
    if (*at == NULL && (target->open >= engine->limit || target->failure != NULL || target->crowded))
        at = &target->idle;
    mc_pg_connection *taken = *at;
    if (taken != NULL)
        *at = taken->next;
    return taken;
}

/* An idle connection, or (*connection NULL) the right to make one; *probe: on behalf of all others, too. With the lock
 * held. */
static mc_error *
reserve_pg_connection(mc_pg_connection **connection, bool *probe, mc_postgres_engine *engine, mc_pg_target *target,
                      bool by_key, const mc_pg_wait *wait)
{
    for (;;) {
        *connection = take_idle_connection(engine, target, by_key);
        if (*connection != NULL)
            return MC_OK;
        if (wait->spare && (target->open + 1 >= engine->limit || target->failure != NULL || target->crowded))
            return mc_error_create(wait->pool, MC_ERR_LIMIT, "no connection to the database is spare");
        apr_time_t now = mc_clock_now();
        if (target->failure != NULL && (target->probing || now < target->failed_at + FAILURE_TIME)) {
            mc_error *cause = mc_error_repeats(mc_error_create(wait->pool, MC_ERR_UNAVAILABLE, "%s", target->failure));
            return mc_error_wrap(wait->pool, cause, MC_ERR_UNAVAILABLE, "the database cannot be reached");
        }
        bool crowded = target->crowded && (target->probing || now < target->crowded_at + CROWDED_TIME);
        if (target->open < engine->limit && !crowded) {
            target->open++;
            *probe = target->failure != NULL || target->crowded;
            target->probing = target->probing || *probe;
            return MC_OK;
        }
        MC_TRY(wait_for_change(engine, target, crowded ? now + CROWDED_TIME : wait->end, wait));
    }
}

/* What an attempt to connect has shown, for all who come next. */
static void
record_connect_outcome(mc_postgres_engine *engine, mc_pg_target *target, const mc_error *error, bool crowded,
                       bool probe)
{
    pthread_mutex_lock(&engine->lock);
    if (probe)
        target->probing = false;
    if (error != MC_OK)
        target->open--;
    /* A client that goes away says nothing about the server. */
    bool telling = error != MC_OK && error->cause != NULL;
    if (error == MC_OK || telling) {
        free(target->failure);
        target->failure = NULL;
        target->crowded = crowded;
        target->crowded_at = mc_clock_now();
    }
    if (telling && !crowded) {
        target->failure = strdup(error->cause->message);
        MC_ASSERT(target->failure != NULL);
        target->failed_at = mc_clock_now();
    }
    pthread_cond_broadcast(&target->changed);
    pthread_mutex_unlock(&engine->lock);
}

/* Once for each server: there may come a time when it refuses connections. */
static void
warn_of_places(mc_postgres_engine *engine, const mc_pg_connection *connection, const mc_pg_wait *wait)
{
    mc_pg_target *target = connection->target;
    int wanted = engine->limit * engine->processes;
    if (connection->places == 0 || wanted <= connection->places)
        return;
    pthread_mutex_lock(&engine->lock);
    bool warned = target->warned;
    target->warned = true;
    pthread_mutex_unlock(&engine->lock);
    if (!warned)
        mc_log_write(
            wait->ctx, MC_LOG_WARN,
            "PostgreSQL (%s) has room for %d connections (max_connections without the reserved ones); %d may be "
            "wanted, %d by each process: see <connection_pool>",
            target->label, connection->places, wanted, engine->limit);
}

static mc_error *
connect_reserved(mc_pg_connection **connection, mc_postgres_engine *engine, mc_pg_target *target, bool by_key,
                 bool probe, bool *crowded, const mc_pg_wait *wait)
{
    mc_error *error = mc_pg_connect(connection, target, by_key, wait, crowded);
    record_connect_outcome(engine, target, error, *crowded, probe);
    if (error == MC_OK)
        warn_of_places(engine, *connection, wait);
    if (error == MC_OK && wait->ctx->process != NULL)
        mc_count(wait->ctx->process->metrics, MC_COUNT_postgres_connections_total, 1);
    return error;
}

static void
drop_pg_connection(mc_postgres_engine *engine, mc_pg_connection *connection)
{
    mc_pg_target *target = connection->target;
    mc_pg_close(connection);
    pthread_mutex_lock(&engine->lock);
    target->open--;
    pthread_cond_signal(&target->changed);
    pthread_mutex_unlock(&engine->lock);
}

mc_error *
mc_pg_acquire(mc_pg_connection **connection, mc_postgres_engine *engine, const char *string, bool by_key,
              const mc_pg_wait *wait)
{
    mc_semaphore *semaphore = wait->ctx->inside;
    for (;;) {
        bool probe = false, crowded = false;
        *connection = NULL;
        pthread_mutex_lock(&engine->lock);
        mc_pg_target *target = find_target(engine, string);
        mc_error *error = reserve_pg_connection(connection, &probe, engine, target, by_key, wait);
        pthread_mutex_unlock(&engine->lock);
        if (wait->ctx->inside != semaphore)
            mc_semaphore_resume(semaphore, wait->ctx);
        MC_TRY(error);
        if (*connection == NULL) {
            error = connect_reserved(connection, engine, target, by_key, probe, &crowded, wait);
            if (!crowded)
                return error;
        } else if (mc_pg_is_alive(*connection)) {
            return MC_OK;
        } else {
            drop_pg_connection(engine, *connection);
        }
    }
}

mc_error *
mc_pg_replace(mc_pg_connection **connection, mc_postgres_engine *engine, const mc_pg_wait *wait)
{
    mc_pg_target *target = (*connection)->target;
    const bool by_key = (*connection)->by_key;
    bool crowded = false;
    mc_pg_close(*connection);
    *connection = NULL;
    mc_error *error = connect_reserved(connection, engine, target, by_key, false, &crowded, wait);
    return crowded ? mc_pg_acquire(connection, engine, target->connection, by_key, wait) : error;
}

/* Takes all connections out that have been idle for too long. With the lock held. */
static mc_pg_connection *
take_expired(mc_postgres_engine *engine)
{
    apr_time_t oldest = mc_clock_now() - engine->idle_time;
    mc_pg_connection *expired = NULL;
    for (mc_pg_target *target = engine->targets; target != NULL; target = target->next) {
        mc_pg_connection **at = &target->idle; /* the latest first: the rest of the list is as old or older */
        while (*at != NULL && (*at)->used > oldest)
            at = &(*at)->next;
        while (*at != NULL) {
            mc_pg_connection *old = *at;
            *at = old->next;
            old->next = expired;
            expired = old;
            target->open--;
        }
    }
    return expired;
}

void
mc_pg_release(mc_postgres_engine *engine, mc_pg_connection *connection)
{
    if (!mc_pg_is_at_rest(connection)) {
        drop_pg_connection(engine, connection);
        return;
    }
    mc_pg_target *target = connection->target;
    connection->used = mc_clock_now();
    connection->reused = true;
    pthread_mutex_lock(&engine->lock);
    connection->next = target->idle;
    target->idle = connection;
    mc_pg_connection *expired = take_expired(engine);
    pthread_cond_signal(&target->changed);
    pthread_mutex_unlock(&engine->lock);
    while (expired != NULL) {
        mc_pg_connection *next = expired->next;
        mc_pg_close(expired);
        expired = next;
    }
}
