/* What the module mapcache-postgres.so offers the front: the table of its functions, and the engine's start and end. */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "db/postgres/postgres_private.h"

static mc_postgres_engine *
postgres_engine_create(int limit, int processes, apr_interval_time_t idle_time, bool threads)
{
    mc_postgres_engine *engine = calloc(1, sizeof(*engine));
    MC_ASSERT(engine != NULL);
    engine->ops = &mc_postgres_libpq_ops;
    engine->limit = limit;
    engine->processes = processes;
    engine->idle_time = idle_time;
    engine->threads = threads;
    pthread_mutex_init(&engine->lock, NULL);
    mc_clock_condition(&engine->work);
    return engine;
}

static void
postgres_engine_destroy(mc_postgres_engine *engine)
{
    mc_pg_stop_canceller(engine);
    while (engine->targets != NULL) {
        mc_pg_target *target = engine->targets;
        engine->targets = target->next;
        while (target->idle != NULL) {
            mc_pg_connection *next = target->idle->next;
            mc_pg_close(target->idle);
            target->idle = next;
        }
        pthread_cond_destroy(&target->changed);
        free(target->failure);
        free(target->label);
        free(target->connection);
        free(target);
    }
    pthread_cond_destroy(&engine->work);
    pthread_mutex_destroy(&engine->lock);
    free(engine);
}

static void
postgres_engine_visit(mc_postgres_engine *engine, mc_postgres_visit *visit, void *baton)
{
    char name[400];
    pthread_mutex_lock(&engine->lock);
    for (const mc_pg_target *target = engine->targets; target != NULL; target = target->next) {
        snprintf(name, sizeof(name), "PostgreSQL (%s)", target->label == NULL ? "?" : target->label);
        visit(baton, name, target->failure == NULL);
    }
    pthread_mutex_unlock(&engine->lock);
}

const mc_postgres_engine_ops mc_postgres_libpq_ops = {
    .create = postgres_engine_create,
    .destroy = postgres_engine_destroy,
    .visit = postgres_engine_visit,
    .start = mc_pg_start,
    .next = mc_pg_next,
    .end = mc_pg_end,
    .session_open = mc_pg_session_open,
    .session_close = mc_pg_session_close,
    .session_give_back = mc_pg_session_give_back,
    .session_wait = mc_pg_session_wait,
    .copy_begin = mc_pg_copy_begin,
    .copy_bytes = mc_pg_copy_bytes,
    .copy_end = mc_pg_copy_end,
};
