/* Generations of a configuration, and the way of a request through one of them. */
#include "mapcache/server.h"

#include <apr_file_info.h>
#include <apr_strings.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/admission.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "base/references.h"
#include "data/expand.h"
#include "map/ahead.h"
#include "mapcache/service.h"
#include "mapcache/trace.h"
#include "server/account.h"
#include "server/monitoring.h"
#include "server/server_counters.h"
#include "server/server_private.h"

/* A model that was built again when data that had not been there came: its pool, and the one before it. */
typedef struct later_model {
    apr_pool_t *pool;
    struct later_model *before;
} later_model;

struct mc_server {
    mc_owner owner;              /* of what requests leave to do */
    apr_pool_t *pool;            /* a root pool: the last reference may go on any thread */
    _Atomic(mc_config *) config; /* the latest; requests keep the one they began with, and all live as long as this */
    _Atomic unsigned references;
    pthread_mutex_t looking; /* of who looks for data that are not there: guards the rest */
    apr_time_t next_look;    /* by mc_clock_now() */
    later_model *later;
};

/* Between two looks for data that are not there: microseconds; and seconds that one look may take. */
static const apr_interval_time_t between_looks = 2 * APR_USEC_PER_SEC, after_slow_look = 10 * APR_USEC_PER_SEC;
#define LOOK_SECONDS 1.5

static apr_status_t
unref_server_on_cleanup(void *data)
{
    mc_server_unref(data);
    return APR_SUCCESS;
}

static void
take_server(void *server)
{
    mc_server_ref(server);
}

static void
drop_server(void *server)
{
    mc_server_unref(server);
}

/* A pool that shares its allocator with no other one. */
static apr_pool_t *
root_pool(void)
{
    apr_allocator_t *allocator;
    apr_pool_t *pool;
    MC_ASSERT(apr_allocator_create(&allocator) == APR_SUCCESS);
    MC_ASSERT(apr_pool_create_ex(&pool, NULL, mc_memory_exhausted, allocator) == APR_SUCCESS);
    apr_allocator_owner_set(allocator, pool);
    return pool;
}

mc_error *
mc_server_load(mc_server **server, const char *file, mc_diagnostics *diagnostics, apr_pool_t *parent_pool)
{
    apr_pool_t *pool = root_pool();
    mc_config *config;
    mc_error *error = mc_config_load(&config, file, diagnostics, pool);
    if (error != MC_OK) {
        error = mc_error_copy(error, parent_pool);
        apr_pool_destroy(pool);
        return error;
    }
    *server = apr_pcalloc(pool, sizeof(**server));
    (*server)->owner = (mc_owner){ take_server, drop_server, *server };
    (*server)->pool = pool;
    atomic_init(&(*server)->config, config);
    atomic_init(&(*server)->references, 1);
    pthread_mutex_init(&(*server)->looking, NULL);
    apr_pool_cleanup_register(parent_pool, *server, unref_server_on_cleanup, apr_pool_cleanup_null);
    return MC_OK;
}

void
mc_server_ref(mc_server *server)
{
    mc_references_take(&server->references);
}

void
mc_server_unref(mc_server *server)
{
    if (!mc_references_drop(&server->references))
        return;
    for (later_model *later = server->later; later != NULL;) {
        later_model *before = later->before;
        apr_pool_destroy(later->pool);
        later = before;
    }
    pthread_mutex_destroy(&server->looking);
    apr_pool_destroy(server->pool);
}

const mc_config *
mc_server_config(const mc_server *server)
{
    return atomic_load_explicit(&server->config, memory_order_acquire);
}

void
mc_server_follow(mc_server *server, mc_process *process)
{
    mc_monitoring_follow(mc_server_config(server), process);
    mc_config_follow_changes(mc_server_config(server), &server->owner, process);
    mc_ahead_begin(process->ahead, mc_server_config(server)->tilesets, &server->owner);
}

static mc_error *
answer_request(mc_result *result, mc_request *request, mc_call *call, mc_server_account *account,
               const mc_http_request *http, mc_ctx *ctx, apr_pool_t *pool)
{
    const mc_config *config = call->config;
    memset(request, 0, sizeof(*request));
    request->kind = MC_REQUEST_DOCUMENT;
    mc_error *error = mc_service_dispatch(call, request, config, http, ctx, pool);
    if (call->service != NULL)
        account->account.service = call->service->ops->type;
    if (error != MC_OK)
        return error;
    mc_server_account_name(account, request, pool);
    MC_TRY(mc_server_result(result, config, call, request, mc_request_tag(http), ctx, pool));
    if (result->age > 0)
        mc_account_mark(ctx, MC_EVENT_STALE);
    result->warnings = request->warnings;
    if (request->vary != NULL)
        result->vary = request->vary;
    if (result->status == 0 && request->headers != NULL)
        result->headers = request->headers;
    return result->negotiated ? mc_result_negotiate(result, http, pool) : MC_OK;
}

static void
count_response(mc_metrics *metrics, const mc_http_response *response)
{
    mc_count(metrics, MC_COUNT_requests_total, 1);
    if (response->status == 304)
        mc_count(metrics, MC_COUNT_not_modified_total, 1);
    else if (response->status >= 500)
        mc_count(metrics, MC_COUNT_server_errors_total, 1);
    else if (response->status >= 400)
        mc_count(metrics, MC_COUNT_client_errors_total, 1);
    if (response->body != NULL)
        mc_count(metrics, MC_COUNT_response_bytes_total, response->body->size);
}

static void
write_options_response(mc_http_response *response, mc_call *call, mc_server_account *account, apr_pool_t *pool)
{
    mc_service_find(call, call->config, call->http, pool);
    if (call->service != NULL)
        account->account.service = call->service->ops->type;
    mc_response_options(response, call, pool);
    account->account.status = response->status;
}

static void
write_http_response(mc_http_response *response, const mc_config *config, const mc_http_request *http,
                    mc_server_account *account, mc_ctx *ctx, apr_pool_t *pool)
{
    MC_SPAN_AS(span, ctx, "mapcache_handler");
    mc_result result = { 0 };
    mc_call call = { .config = config, .http = http };
    if (strcmp(http->method, "OPTIONS") == 0) {
        write_options_response(response, &call, account, pool);
        return;
    }
    mc_request wanted;
    mc_error *error = answer_request(&result, &wanted, &call, account, http, ctx, pool);
    if (error == MC_OK) {
        mc_response_success(response, &result, &call, pool);
    } else {
        mc_span_note(&span, "ERROR");
        account->account.status = mc_error_status(error->kind); /* for the log; the service may have another one */
        mc_response_failure(response, error, &call, ctx, pool);
    }
    mc_response_cors(response, &call, pool);
    account->account.status = response->status;
    if (config->cache_status)
        mc_response_cache_status(response, &account->account, &result, pool);
    if (config->cdns != NULL)
        mc_response_surrogates(response, config->cdns, &wanted, &account->account, &result, pool);
    if (ctx->trace != NULL)
        mc_trace_say_request(ctx->trace);
}

size_t
mc_server_body_limit(const mc_server *server, const mc_http_request *request, apr_pool_t *pool)
{
    mc_call call;
    if (strcmp(request->method, "POST") != 0)
        return 0;
    mc_service_find(&call, mc_server_config(server), request, pool);
    return call.service == NULL || call.service->ops->body_limit == NULL ? 0 : call.service->ops->body_limit(&call);
}

/* Builds the model again, of the file as it was read before, and puts it in force if more of its data are there. */
static void
build_again(mc_server *server, const mc_config *old, mc_ctx *ctx)
{
    apr_pool_t *pool = root_pool();
    mc_config *config;
    mc_error *error = mc_config_load_within(&config, old->file, LOOK_SECONDS, mc_diagnostics_create(pool), pool);
    if (error != MC_OK || config->mtime != old->mtime || config->pending->nelts >= old->pending->nelts) {
        apr_pool_destroy(pool);
        return;
    }
    later_model *later = apr_pcalloc(pool, sizeof(*later));
    *later = (later_model){ pool, server->later };
    server->later = later;
    atomic_store_explicit(&server->config, config, memory_order_release);
    mc_server_follow(server, ctx->process);
    mc_log_write(ctx, MC_LOG_NOTICE, "%s: %d of the data that were not there are served now", config->file,
                 old->pending->nelts - config->pending->nelts);
}

/* Of tilesets whose data were not there when the configuration was read. One request at a time looks, the others have
 * what there is. */
static void
look_for_data(mc_server *server, mc_ctx *ctx)
{
    const mc_config *config = mc_server_config(server);
    if (config->pending->nelts == 0 || ctx->process->brief || pthread_mutex_trylock(&server->looking) != 0)
        return;
    config = mc_server_config(server);
    apr_time_t now = mc_clock_now();
    if (config->pending->nelts > 0 && now >= server->next_look) {
        if (mc_data_is_back(config->pending, ctx->pool))
            build_again(server, config, ctx);
        apr_time_t after = mc_clock_now();
        server->next_look = after + (after - now > APR_USEC_PER_SEC / 10 ? after_slow_look : between_looks);
    }
    pthread_mutex_unlock(&server->looking);
}

void
mc_server_handle(mc_http_response **response, mc_server *server, const mc_http_request *request, mc_ctx *ctx,
                 apr_pool_t *pool)
{
    look_for_data(server, ctx);
    const mc_config *config = mc_server_config(server);
    *response = apr_pcalloc(pool, sizeof(**response));
    (*response)->headers = apr_table_make(pool, 8);
    apr_interval_time_t most = (apr_interval_time_t)(config->deadline * APR_USEC_PER_SEC);
    if (ctx->deadline == 0)
        ctx->deadline = mc_clock_now() + most;
    ctx->allowance = mc_ctx_remaining(ctx, most);
    if (ctx->headers == NULL)
        ctx->headers = request->headers;
    mc_server_account account;
    mc_server_account_begin(&account, config, request, ctx, pool);
    if (ctx->owner == NULL)
        ctx->owner = &server->owner;
    mc_admission admission = { .admissions = ctx->process->admissions,
                               .client = request->client,
                               .most_origin_requests = config->max_origin_requests };
    if (ctx->admission == NULL)
        ctx->admission = &admission;
    write_http_response(*response, config, request, &account, ctx, pool);
    mc_admission_leave(&admission);
    if (ctx->admission == &admission)
        ctx->admission = NULL;
    mc_server_account_end(&account, *response, config, ctx, pool);
    count_response(ctx->process->metrics, *response);
}
