/*
 * The front of the PostgreSQL connections: loads the module at first use, counts, and keeps queries within their
 * bounds, so that the module has to know libpq only.
 */
#include "db/postgres/postgres.h"

#include <apr_strings.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/metrics.h"
#include "base/module.h"
#include "db/postgres/postgres_counters.h"
#include "db/postgres/postgres_engine.h"

/* By connection string; made once, never removed. */
typedef struct path {
    struct path *next;
    char *connection;
    mc_transfer_policy *policy;
} path;

struct mc_postgres {
    int limit, processes;
    apr_interval_time_t idle_time;
    bool threads;
    pthread_mutex_t lock; /* of the list, and of ops and engine while they are not there yet */
    path *paths;
    const mc_postgres_engine_ops *ops;
    mc_postgres_engine *engine;
};

mc_postgres *
mc_postgres_create(int limit, int processes, apr_interval_time_t idle_time, bool threads)
{
    mc_postgres *postgres = calloc(1, sizeof(*postgres));
    MC_ASSERT(postgres != NULL);
    postgres->limit = limit < 1 ? 1 : limit;
    postgres->processes = processes;
    postgres->idle_time = idle_time;
    postgres->threads = threads;
    pthread_mutex_init(&postgres->lock, NULL);
    return postgres;
}

void
mc_postgres_destroy(mc_postgres *postgres)
{
    if (postgres == NULL)
        return;
    if (postgres->engine != NULL)
        postgres->ops->destroy(postgres->engine);
    while (postgres->paths != NULL) {
        path *next = postgres->paths->next;
        mc_transfer_policy_destroy(postgres->paths->policy);
        free(postgres->paths->connection);
        free(postgres->paths);
        postgres->paths = next;
    }
    pthread_mutex_destroy(&postgres->lock);
    free(postgres);
}

/* With the lock held. */
static mc_error *
load_postgres_engine(mc_postgres *postgres, apr_pool_t *pool)
{
    if (postgres->engine != NULL)
        return MC_OK;
    void *symbol;
    MC_TRY(mc_module_symbol(&symbol, "postgres", MC_POSTGRES_ENGINE_SYMBOL, pool));
    postgres->ops = symbol;
    postgres->engine =
        postgres->ops->create(postgres->limit, postgres->processes, postgres->idle_time, postgres->threads);
    return MC_OK;
}

mc_error *
mc_postgres_load(mc_postgres *postgres, apr_pool_t *pool)
{
    pthread_mutex_lock(&postgres->lock);
    mc_error *error = load_postgres_engine(postgres, pool);
    pthread_mutex_unlock(&postgres->lock);
    return error;
}

void
mc_postgres_visit_servers(mc_postgres *postgres, mc_postgres_visit *visit, void *baton)
{
    pthread_mutex_lock(&postgres->lock);
    mc_postgres_engine *engine = postgres->engine;
    pthread_mutex_unlock(&postgres->lock);
    if (engine != NULL)
        postgres->ops->visit(engine, visit, baton);
}

/* With the lock held. */
static mc_transfer_policy *
find_transfer_policy(mc_postgres *postgres, const char *connection)
{
    for (const path *p = postgres->paths; p != NULL; p = p->next)
        if (strcmp(p->connection, connection) == 0)
            return p->policy;
    path *made = calloc(1, sizeof(*made));
    MC_ASSERT(made != NULL);
    made->connection = strdup(connection);
    MC_ASSERT(made->connection != NULL);
    made->policy = mc_transfer_policy_create();
    made->next = postgres->paths;
    postgres->paths = made;
    return made->policy;
}

mc_transfer_policy *
mc_postgres_transfer_policy(mc_postgres *postgres, const char *connection)
{
    pthread_mutex_lock(&postgres->lock);
    mc_transfer_policy *policy = find_transfer_policy(postgres, connection);
    pthread_mutex_unlock(&postgres->lock);
    return policy;
}

static mc_error *
count_error(mc_error *error, const mc_ctx *ctx)
{
    if (error != MC_OK && ctx->process != NULL)
        mc_count(ctx->process->metrics, MC_COUNT_postgres_errors_total, 1);
    return error;
}

mc_error *
mc_postgres_start(mc_postgres_result **result, mc_postgres *postgres, const mc_postgres_query *query, mc_ctx *ctx,
                  apr_pool_t *pool)
{
    *result = NULL;
    MC_ASSERT(query->param_count >= 0 && query->param_count <= (query->copy || query->plain ? 0 : MC_POSTGRES_PARAMS));
    if (postgres == NULL)
        return mc_error_create(pool, MC_ERR_UNAVAILABLE, "databases are switched off");
    MC_TRY(mc_ctx_check(ctx, pool));
    MC_TRY(mc_postgres_load(postgres, pool));
    mc_count(ctx->process == NULL ? NULL : ctx->process->metrics, MC_COUNT_postgres_queries_total, 1);
    return count_error(postgres->ops->start(result, postgres->engine, query, ctx, pool), ctx);
}

mc_error *
mc_postgres_next(const mc_postgres_row **row, mc_postgres_result *result)
{
    return count_error(result->ops->next(row, result), result->ctx);
}

void
mc_postgres_end(mc_postgres_result *result)
{
    if (result != NULL)
        result->ops->end(result);
}

static mc_error *
open_postgres_session(mc_postgres_session **session, mc_postgres *postgres, const char *connection, bool spare,
                      mc_ctx *ctx, apr_pool_t *pool)
{
    *session = NULL;
    if (postgres == NULL)
        return mc_error_create(pool, MC_ERR_UNAVAILABLE, "databases are switched off");
    MC_TRY(mc_ctx_check(ctx, pool));
    MC_TRY(mc_postgres_load(postgres, pool));
    return postgres->ops->session_open(session, postgres->engine, connection, spare, ctx, pool);
}

mc_error *
mc_postgres_session_open(mc_postgres_session **session, mc_postgres *postgres, const char *connection, mc_ctx *ctx,
                         apr_pool_t *pool)
{
    return count_error(open_postgres_session(session, postgres, connection, false, ctx, pool), ctx);
}

mc_error *
mc_postgres_session_spare(mc_postgres_session **session, mc_postgres *postgres, const char *connection, mc_ctx *ctx,
                          apr_pool_t *pool)
{
    return open_postgres_session(session, postgres, connection, true, ctx, pool);
}

void
mc_postgres_session_close(mc_postgres_session *session)
{
    if (session != NULL)
        session->ops->session_close(session);
}

void
mc_postgres_session_give_back(mc_postgres_session *session)
{
    session->ops->session_give_back(session);
}

mc_error *
mc_postgres_session_wait(bool *notified, mc_postgres_session *session)
{
    return count_error(session->ops->session_wait(notified, session), session->ctx);
}

const char *
mc_postgres_named(const char *connection, const char *application, apr_pool_t *pool)
{
    bool uri = strncmp(connection, "postgresql://", 13) == 0 || strncmp(connection, "postgres://", 11) == 0;
    const char *mark = !uri ? " " : strchr(connection, '?') == NULL ? "?" : "&";
    return apr_pstrcat(pool, connection, mark, "application_name=", application, NULL);
}

mc_error *
mc_postgres_copy_begin(mc_postgres_session *session, const char *sql)
{
    return count_error(session->ops->copy_begin(session, sql), session->ctx);
}

mc_error *
mc_postgres_copy_bytes(mc_postgres_session *session, const void *bytes, size_t size)
{
    return count_error(session->ops->copy_bytes(session, bytes, size), session->ctx);
}

mc_error *
mc_postgres_copy_end(mc_postgres_session *session)
{
    return count_error(session->ops->copy_end(session), session->ctx);
}

mc_postgres_traffic
mc_postgres_traffic_of(const mc_postgres_result *result)
{
    return result->traffic;
}

const char *
mc_postgres_sqlstate(const mc_postgres_result *result)
{
    return result == NULL ? "" : result->sqlstate;
}

void
mc_postgres_configure(const char *connection, const mc_node *node, mc_build *build)
{
    bool known = build->databases == NULL;
    for (int i = 0; !known && i < build->databases->nelts; i++)
        known = strcmp(APR_ARRAY_IDX(build->databases, i, const char *), connection) == 0;
    if (!known)
        APR_ARRAY_PUSH(build->databases, const char *) = connection;
    if (strchr(connection, '=') == NULL && strncmp(connection, "postgresql://", 13) != 0 &&
        strncmp(connection, "postgres://", 11) != 0)
        mc_complain(build->diagnostics, MC_WARNING, mc_node_child(node, "connection"),
                    "<connection> should be keyword=value pairs (host=... dbname=... user=...) or a URI "
                    "(postgresql://...): libpq will not take it as it is");
}
