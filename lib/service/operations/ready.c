/* <service type="ready">: whether a load balancer may send requests to this process. */
#include <apr_strings.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "config/reload_state.h"
#include "db/postgres/postgres.h"
#include "http/http.h"
#include "http/http_breakers.h"
#include "remote/remote.h"
#include "service/operations/operations.h"

/* Microseconds: a server that nobody has asked for so long is of no interest any more, like a node that a cluster has
 * lost, or a store of an older configuration. */
#define AWAY_TIME (300 * APR_USEC_PER_SEC)

/* As messages of the log name it (const char *); one that nobody has asked yet counts as being there. */
static void
list_away_server(void *baton, const char *name, bool works)
{
    apr_array_header_t *away = baton;
    if (!works)
        APR_ARRAY_PUSH(away, const char *) = apr_pstrdup(away->pool, name);
}

static apr_array_header_t *
find_away_servers(const mc_process *process, apr_pool_t *pool)
{
    const apr_time_t since = mc_clock_now() - AWAY_TIME;
    apr_array_header_t *away = apr_array_make(pool, 4, sizeof(const char *));
    if (process != NULL && process->remotes != NULL)
        mc_remotes_visit(process->remotes, since, list_away_server, away);
    if (process != NULL && process->http != NULL)
        mc_http_breakers_visit(mc_http_breakers_of(process->http), since, list_away_server, away);
    if (process != NULL && process->postgres != NULL)
        mc_postgres_visit_servers(process->postgres, list_away_server, away);
    return away;
}

/* Names (const char *) of the caches of the configuration whose last operation found their store away. */
static apr_array_header_t *
find_away_stores(const mc_config *config, apr_pool_t *pool)
{
    const apr_time_t since = mc_clock_now() - AWAY_TIME;
    apr_array_header_t *stores = apr_array_make(pool, 4, sizeof(const char *));
    for (int i = 0; i < config->caches->nelts; i++) {
        const mc_cache *cache = APR_ARRAY_IDX(config->caches, i, const mc_cache *);
        if (mc_cache_fails(cache, since))
            APR_ARRAY_PUSH(stores, const char *) = cache->name;
    }
    return stores;
}

static void
write_names(mc_json_writer *json, const char *key, const apr_array_header_t *names)
{
    mc_json_open_array(json, key);
    for (int i = 0; i < names->nelts; i++)
        mc_json_string(json, NULL, APR_ARRAY_IDX(names, i, const char *));
    mc_json_close(json);
}

/* A process that has been told to end answers 503, so that new requests go to others while it finishes what it has. One
 * whose newest configuration cannot be loaded goes on with the one before, and says so. So does one that a store or a
 * lock server does not answer, "degraded": what it can serve is served, and the others have the same servers, so that
 * 503 of each of them would leave nobody to serve anything. */
static mc_error *
ready_parse(mc_request *request, const mc_call *call, mc_ctx *ctx, apr_pool_t *pool)
{
    MC_TRY(mc_operations_check(call, pool));
    const mc_process *process = ctx->process;
    if (process != NULL && atomic_load(&process->draining))
        return mc_error_create(pool, MC_ERR_UNAVAILABLE, "this process is ending");
    const apr_array_header_t *away = find_away_servers(process, pool);
    const apr_array_header_t *stores = find_away_stores(call->config, pool);
    const mc_reload_state reload =
        mc_reload_states_find(process == NULL ? NULL : process->reloads, call->config->file, pool);
    mc_json_writer *json = mc_json_create(MC_JSON_DENSE, pool);
    mc_json_open_object(json, NULL);
    mc_json_string(json, "status", away->nelts + stores->nelts == 0 ? "ready" : "degraded");
    mc_json_boolean(json, "reload_failed", reload.failed);
    write_names(json, "away", away);
    write_names(json, "stores", stores);
    mc_json_close(json);
    return mc_operations_respond_json(request, json);
}

MC_OPERATORS_OPERATION(ready, "application/json", "503 once the process has been told to end.");

const mc_service_ops mc_service_ready = {
    MC_OPERATORS_SERVICE(ready, "Whether a load balancer may send requests to this process."),
};
