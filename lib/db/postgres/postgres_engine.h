/*
 * What the core asks of the module that speaks to PostgreSQL (mapcache-postgres.so). Kept apart from postgres.h so that
 * callers need not know that there is a module.
 */
#ifndef MC_DB_POSTGRES_POSTGRES_ENGINE_H
#define MC_DB_POSTGRES_POSTGRES_ENGINE_H

#include "db/postgres/postgres.h"

typedef struct mc_postgres_engine mc_postgres_engine;

typedef struct mc_postgres_engine_ops {
    mc_postgres_engine *(*create)(int limit, int processes, apr_interval_time_t idle_time, bool threads);
    void (*destroy)(mc_postgres_engine *engine);
    void (*visit)(mc_postgres_engine *engine, mc_postgres_visit *visit, void *baton); /* mc_postgres_visit_servers */
    /* As mc_postgres_start; *answer is set also on an error, for its SQLSTATE. Called from any number of threads. */
    mc_error *(*start)(mc_postgres_result **result, mc_postgres_engine *engine, const mc_postgres_query *query,
                       mc_ctx *ctx, apr_pool_t *pool);
    mc_error *(*next)(const mc_postgres_row **row, mc_postgres_result *result);
    void (*end)(mc_postgres_result *result);
    mc_error *(*session_open)(mc_postgres_session **session, mc_postgres_engine *engine, const char *connection,
                              bool spare, mc_ctx *ctx, apr_pool_t *pool);
    void (*session_close)(mc_postgres_session *session);
    void (*session_give_back)(mc_postgres_session *session);
    mc_error *(*session_wait)(bool *notified, mc_postgres_session *session);
    mc_error *(*copy_begin)(mc_postgres_session *session, const char *sql);
    mc_error *(*copy_bytes)(mc_postgres_session *session, const void *bytes, size_t size);
    mc_error *(*copy_end)(mc_postgres_session *session);
} mc_postgres_engine_ops;

/* What the front sees of an answer; the module's own struct begins with it. */
struct mc_postgres_result {
    const mc_postgres_engine_ops *ops;
    mc_ctx *ctx;
    char sqlstate[6];
    mc_postgres_traffic traffic;
};

/* What the front sees of a session; the module's own struct begins with it. */
struct mc_postgres_session {
    const mc_postgres_engine_ops *ops;
    mc_ctx *ctx;
};

/* The module's one symbol. */
#define MC_POSTGRES_ENGINE_SYMBOL "mc_postgres_libpq_ops"
extern const mc_postgres_engine_ops mc_postgres_libpq_ops;

#endif
