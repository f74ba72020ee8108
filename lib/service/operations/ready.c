/* <service type="ready">: whether a load balancer may send requests to this process. */
#include <apr_strings.h>
#include <stdatomic.h>
#include <string.h>

#include "base/clock.h"
#include "cdn/purgers.h"
#include "config/reload_state.h"
#include "db/postgres/postgres.h"
#include "http/http.h"
#include "http/http_breakers.h"
#include "remote/remote.h"
#include "service/operations/failing.h"
#include "service/operations/operations.h"
#include "text/time.h"

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
    const apr_time_t since = mc_clock_now() - MC_AWAY_TIME;
    apr_array_header_t *away = apr_array_make(pool, 4, sizeof(const char *));
    if (process != NULL && process->remotes != NULL)
        mc_remotes_visit(process->remotes, since, list_away_server, away);
    if (process != NULL && process->http != NULL)
        mc_http_breakers_visit(mc_http_breakers_of(process->http), since, list_away_server, away);
    if (process != NULL && process->postgres != NULL)
        mc_postgres_visit_servers(process->postgres, list_away_server, away);
    return away;
}

static void
write_names(mc_json_writer *json, const char *key, const apr_array_header_t *names)
{
    mc_json_open_array(json, key);
    for (int i = 0; i < names->nelts; i++)
        mc_json_string(json, NULL, APR_ARRAY_IDX(names, i, const char *));
    mc_json_close(json);
}

/* Seconds since a moment of mc_clock_now(); null: there was none. */
static void
write_age(mc_json_writer *json, const char *key, apr_time_t since)
{
    if (since == 0)
        mc_json_null(json, key);
    else
        mc_json_integer(json, key, apr_time_sec(mc_clock_now() - since));
}

static void
write_failing(mc_json_writer *json, const apr_array_header_t *failing)
{
    enum { NAMES_MAX = 10 };
    mc_json_open_array(json, "failing");
    for (int i = 0; i < failing->nelts; i++) {
        const mc_failing *one = &APR_ARRAY_IDX(failing, i, const mc_failing);
        mc_json_open_object(json, NULL);
        mc_json_string(json, "kind", one->kind);
        mc_json_string(json, "name", one->name);
        mc_json_string(json, "error", mc_error_name(one->error));
        write_age(json, "failed_seconds_ago", one->failed);
        mc_json_open_array(json, "tilesets");
        for (int j = 0; j < one->tilesets->nelts && j < NAMES_MAX; j++)
            mc_json_string(json, NULL, APR_ARRAY_IDX(one->tilesets, j, const char *));
        mc_json_close(json);
        mc_json_integer(json, "tileset_count", one->tilesets->nelts);
        mc_json_close(json);
    }
    mc_json_close(json);
}

static void
write_failing_stores(mc_json_writer *json, const apr_array_header_t *failing)
{
    mc_json_open_array(json, "stores");
    for (int i = 0; i < failing->nelts; i++)
        if (strcmp(APR_ARRAY_IDX(failing, i, const mc_failing).kind, "store") == 0)
            mc_json_string(json, NULL, APR_ARRAY_IDX(failing, i, const mc_failing).name);
    mc_json_close(json);
}

static void
write_change_logs(mc_json_writer *json, const apr_array_header_t *logs)
{
    mc_json_open_array(json, "changes");
    for (int i = 0; i < logs->nelts; i++) {
        const mc_change_log_state *log = &APR_ARRAY_IDX(logs, i, const mc_change_log_state);
        mc_json_open_object(json, NULL);
        mc_json_string(json, "database", log->database);
        mc_json_boolean(json, "connected", log->connected);
        if (log->lag < 0)
            mc_json_null(json, "lag_seconds");
        else
            mc_json_decimals(json, "lag_seconds", log->lag, 3);
        mc_json_close(json);
    }
    mc_json_close(json);
}

static void
write_purger(void *baton, const mc_purger_state *state)
{
    mc_json_writer *json = baton;
    mc_json_open_object(json, NULL);
    mc_json_string(json, "name", state->name);
    mc_json_integer(json, "waiting", state->waiting);
    write_age(json, "failing_seconds", state->failing);
    mc_json_close(json);
}

/* Caches in front that this process has purged: it leads. */
static void
write_purgers(mc_json_writer *json, const mc_process *process)
{
    mc_json_open_array(json, "cdn");
    if (process != NULL)
        mc_purgers_visit(process->purgers, write_purger, json);
    mc_json_close(json);
}

static void
write_configuration_state(mc_json_writer *json, const mc_reload_state *state, apr_pool_t *pool)
{
    mc_json_open_object(json, "configuration");
    if (state->loaded != 0)
        mc_json_string(json, "loaded", mc_time_text(state->loaded, pool));
    if (state->failed) {
        mc_json_string(json, "failed", mc_time_text(state->tried, pool));
        mc_json_string(json, "where", state->where);
    }
    mc_json_close(json);
}

/*
 * A process that has been told to end answers 503, so that new requests go to others while it finishes what it has.
 * Nothing else takes a process out: what a store, a database or an origin fails at fails for all processes that use it,
 * and 503 of each of them would leave nobody to serve what can be served. Neither does a configuration that cannot be
 * loaded: the one before answers. Both are told, "degraded".
 */
static mc_error *
ready_parse(mc_request *request, const mc_call *call, mc_ctx *ctx, apr_pool_t *pool)
{
    MC_TRY(mc_operations_check(call, pool));
    const mc_process *process = ctx->process;
    apr_time_t checked;
    if (process != NULL && atomic_load(&process->draining))
        return mc_error_create(pool, MC_ERR_UNAVAILABLE, "this process is ending");
    const apr_array_header_t *away = find_away_servers(process, pool);
    const apr_array_header_t *logs = mc_change_logs_look(process, pool);
    const apr_array_header_t *failing = mc_failing_find(&checked, call->config, logs, ctx, pool);
    const mc_reload_state reload =
        mc_reload_states_find(process == NULL ? NULL : process->reloads, call->config->file, pool);
    mc_json_writer *json = mc_json_create(MC_JSON_DENSE, pool);
    mc_json_open_object(json, NULL);
    mc_json_string(json, "status", away->nelts + failing->nelts == 0 && !reload.failed ? "ready" : "degraded");
    mc_json_boolean(json, "reload_failed", reload.failed);
    write_configuration_state(json, &reload, pool);
    write_names(json, "away", away);
    write_failing_stores(json, failing);
    write_failing(json, failing);
    write_change_logs(json, logs);
    if (call->config->cdns != NULL)
        write_purgers(json, process);
    write_age(json, "checked_seconds_ago", checked);
    mc_json_close(json);
    return mc_operations_respond_json(request, json);
}

MC_OPERATORS_OPERATION(ready, "application/json", "503 once the process has been told to end.");

const mc_service_ops mc_service_ready = {
    MC_OPERATORS_SERVICE(ready, "Whether a load balancer may send requests to this process, and what does not work."),
};
