/*
 * <service type="jobs">: the queue of seeding jobs as JSON, and a page that shows it. Whoever has the token may change
 * jobs; it comes in a header that no page of another site can send, so there is nothing to forge. Without it the
 * service shows, where the configuration says that it is public, what does not tell of hosts and origins.
 */
#include "service/jobs/jobs.h"

#include <apr_strings.h>
#include <string.h>
#include <strings.h>

#include "base/admission.h"
#include "service/bearer.h"
#include "service/operations/operations.h"
#include "service/page_asset.h"
#include "text/json_writer.h"
#include "text/text.h"

/* Units of a job and seconds of silence of workers that are shown. */
enum { UNITS_SHOWN = 100, SILENCE = 30 };

#define JOBS_SHOWN "100" /* where the client names no number */

typedef struct jobs_service {
    mc_service_base base;
    const char *token;
    bool is_public;
    mc_jobs *jobs;
} jobs_service;

static const mc_key jobs_keys[] = {
    MC_SERVICE_KEYS(jobs_service),
    MC_KEY_TEXT("token", offsetof(jobs_service, token),
                "What `Authorization: Bearer` has to say for everything but reading, at least 16 characters; without "
                "it nothing "
                "can be changed.",
                .flags = MC_KEY_OURS),
    MC_KEY_BOOL("public", offsetof(jobs_service, is_public),
                "Whether jobs are shown without the token: all but owners, workers' names and messages.",
                .flags = MC_KEY_OURS, .fallback = "false"),
    MC_KEY_END,
};

static mc_service *
jobs_from_config(const mc_service_ops *ops, const mc_node *node, mc_build *build)
{
    jobs_service *service = apr_pcalloc(build->pool, sizeof(*service));
    if (!mc_service_read(&service->base, ops, node, build))
        return NULL;
    service->jobs = build->jobs;
    if (service->base.service.cors == NULL)
        service->base.service.cors = "off";
    const char *problem = NULL;
    if (service->jobs == NULL)
        problem = "the service jobs needs <jobs><connection>...</connection></jobs>, which says where the queue is";
    else if (service->token == NULL && !service->is_public)
        problem = "the service jobs needs a <token>, or <public>true</public> to show jobs without changing them";
    else if (service->token != NULL && !mc_bearer_usable(service->token))
        problem = "<token> needs at least 16 printable characters without blanks";
    if (problem == NULL)
        return &service->base.service;
    mc_complain(build->diagnostics, MC_REFUSED, node, "%s", problem);
    return NULL;
}

/* --- who may what ----------------------------------------------------------------------------------------------- */

static mc_error *
may_change(const jobs_service *service, const mc_call *call, apr_pool_t *pool)
{
    if (service->token == NULL)
        return mc_error_create(pool, MC_ERR_FORBIDDEN, "jobs are only shown here: the service has no token");
    if (!mc_bearer_matches(call, service->token))
        return mc_error_create(pool, MC_ERR_FORBIDDEN, "the token is needed: Authorization: Bearer TOKEN");
    return mc_bearer_check_site(call, pool);
}

/* --- answers ---------------------------------------------------------------------------------------------------- */

/* An item of a list, on a line of its own. */
static void
write_jobs_item(mc_json_writer *json, bool first, const char *text)
{
    if (!first)
        mc_json_space(json, "\n");
    mc_json_raw(json, NULL, text);
}

typedef struct jobs_list_params {
    int state, limit;
    int64_t before;
} jobs_list_params;

static const mc_param_row list_params[] = {
    MC_PARAM_CHOICE("state", offsetof(jobs_list_params, state), "open|paused|cancelled|done",
                    "Only jobs of that state.", .locator = "state",
                    .refusal = "state is open, paused, cancelled or done"),
    MC_PARAM_ID("before", offsetof(jobs_list_params, before), "Only jobs whose number is below that.", .min = 1,
                .locator = "before", .refusal = "before is the number of a job"),
    MC_PARAM_INTEGER("limit", offsetof(jobs_list_params, limit), "How many jobs are listed at most, the newest first.",
                     .min = 1, .max = MC_JOBS_LISTED_MAX, .fallback = JOBS_SHOWN, .locator = "limit",
                     .refusal = "limit is a number from {min} to {max}"),
    MC_PARAM_END,
};

static mc_error *
read_filter(mc_jobs_filter *filter, const mc_call *call, apr_pool_t *pool)
{
    jobs_list_params params = { 0 };
    MC_TRY(mc_params_read(&params, list_params, call, pool));
    *filter = (mc_jobs_filter){ .before = params.before, .limit = params.limit, .has_state = params.state >= 0 };
    if (filter->has_state)
        filter->state = (mc_job_state)params.state;
    return MC_OK;
}

static mc_error *
answer_list(mc_request *request, jobs_service *service, const mc_call *call, bool open, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_jobs_filter filter;
    apr_array_header_t *jobs, *workers;
    MC_TRY(read_filter(&filter, call, pool));
    MC_TRY(mc_jobs_list(&jobs, service->jobs, &filter, ctx, pool));
    MC_TRY(mc_jobs_workers(&workers, service->jobs, SILENCE, ctx, pool));
    mc_json_writer *json = mc_json_create(MC_JSON_DENSE, pool);
    mc_json_open_object(json, NULL);
    mc_json_boolean(json, "changeable", open);
    mc_json_open_array(json, "jobs");
    for (int i = 0; i < jobs->nelts; i++)
        write_jobs_item(json, i == 0, mc_job_json(&APR_ARRAY_IDX(jobs, i, mc_job), open, pool));
    mc_json_close(json);
    mc_json_space(json, "\n");
    mc_json_open_array(json, "workers");
    for (int i = 0; i < workers->nelts; i++)
        write_jobs_item(json, i == 0, mc_job_worker_json(&APR_ARRAY_IDX(workers, i, mc_job_worker), open, pool));
    mc_json_close(json);
    mc_json_close(json);
    return mc_operations_respond_json(request, json);
}

static mc_error *
answer_job(mc_request *request, jobs_service *service, int64_t id, bool open, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_job job;
    apr_array_header_t *units;
    MC_TRY(mc_jobs_find(&job, service->jobs, id, false, ctx, pool));
    MC_TRY(mc_jobs_units(&units, service->jobs, id, UNITS_SHOWN, ctx, pool));
    mc_json_writer *json = mc_json_create(MC_JSON_DENSE, pool);
    mc_json_open_object(json, NULL);
    mc_json_raw(json, "job", mc_job_json(&job, open, pool));
    mc_json_space(json, "\n");
    mc_json_open_array(json, "units");
    bool first = true;
    for (int i = 0; i < units->nelts; i++) {
        const mc_job_unit *unit = &APR_ARRAY_IDX(units, i, mc_job_unit);
        if (unit->unit < 0 || unit->unit >= job.units)
            continue;
        write_jobs_item(json, first, mc_job_unit_json(unit, &job, open, pool));
        first = false;
    }
    mc_json_close(json);
    mc_json_close(json);
    return mc_operations_respond_json(request, json);
}

static mc_error *
enqueue_posted_job(mc_request *request, jobs_service *service, const mc_call *call, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_buf *body = NULL;
    mc_job_spec spec;
    mc_job job;
    int64_t id;
    const char *type = mc_call_header(call, "Content-Type");
    if (type == NULL || strncasecmp(type, "application/json", 16) != 0)
        return mc_error_create(pool, MC_ERR_BAD_REQUEST, "a job is sent as Content-Type: application/json");
    if (call->http->read_body != NULL)
        MC_TRY(call->http->read_body(&body, call->http->read_body_baton, MC_JOBS_BODY_MAX, pool));
    if (body == NULL || body->size == 0)
        return mc_error_create(pool, MC_ERR_BAD_REQUEST, "the request has no body");
    MC_TRY(mc_job_spec_parse(&spec, (const char *)body->data, body->size, pool));
    spec.owner = call->http->client;
    const mc_tileset *tileset = spec.tileset == NULL ? NULL : mc_call_tileset(call, spec.tileset, pool);
    if (tileset != NULL)
        mc_tileset_ask_place(tileset, ctx);
    MC_TRY(mc_job_make(&job, &spec, call->config, pool));
    MC_TRY(mc_jobs_enqueue(&id, service->jobs, &job, spec.request, ctx));
    return answer_job(request, service, id, true, ctx, pool);
}

typedef struct jobs_path_params {
    int64_t id;
    int action;
} jobs_path_params;

static const mc_param_row path_params[] = {
    MC_PARAM_ID("number", offsetof(jobs_path_params, id), "The number of a job; without it all jobs are meant.",
                .min = 1, .kind = MC_ERR_NOT_FOUND, .refusal = "jobs have numbers"),
    MC_PARAM_CHOICE("action", offsetof(jobs_path_params, action), "cancel|pause|resume|retry",
                    "What the job is told, by POST.", .kind = MC_ERR_NOT_FOUND,
                    .refusal = "a job can be told: cancel, pause, resume, retry"),
    MC_PARAM_END,
};

static const mc_operation jobs_operations[] = {
    { "the list of jobs",
      "/jobs/api",
      { list_params },
      { { "/jobs", 200, "text/html", "The page.", NULL },
        { "/jobs/api?state=open", 200, "application/json", "The newest jobs first.", NULL } } },
    { "a new job",
      "POST /jobs/api, a JSON object as Content-Type: application/json",
      { mc_job_body_params },
      { { "POST /jobs/api", 200, "application/json", "Needs the token: `Authorization: Bearer TOKEN`.",
          "{\"tileset\": \"roads\", \"minzoom\": 0, \"maxzoom\": 4}" } } },
    { "one job",
      "/jobs/api/<number>/<action>",
      { path_params },
      { { "/jobs/api/1", 200, "application/json", "A job with its units.", NULL },
        { "POST /jobs/api/1/pause", 200, "application/json", "Needs the token.", NULL },
        { "/jobs/api/7", 404, "application/json", "There is no such job.", NULL } } },
    { 0 },
};

/* api: the list; api/N: one job; api/N/ACTION */
static mc_error *
answer_api(mc_request *request, jobs_service *service, const mc_call *call, const apr_array_header_t *segments,
           mc_ctx *ctx, apr_pool_t *pool)
{
    bool post = strcmp(call->http->method, "POST") == 0, open = mc_bearer_matches(call, service->token);
    int next = 1;
    jobs_path_params params = { 0 };
    mc_job_state state;
    MC_TRY(mc_params_read_path(&params, path_params, call, segments, &next, pool));
    int64_t id = params.id;
    bool acts = params.action >= 0;
    if (post)
        MC_TRY(may_change(service, call, pool));
    else if (!open && !service->is_public)
        return mc_error_create(pool, MC_ERR_FORBIDDEN, "the token is needed: Authorization: Bearer TOKEN");
    MC_TRY(mc_admission_enter(ctx, pool));
    MC_SLOW(ctx);
    if (acts)
        MC_TRY(mc_jobs_change(&state, service->jobs, id, (mc_job_action)params.action, ctx));
    if (segments->nelts > 1)
        return answer_job(request, service, id, open, ctx, pool);
    return post ? enqueue_posted_job(request, service, call, ctx, pool)
                : answer_list(request, service, call, open, ctx, pool);
}

static mc_error *
answer_static(mc_request *request, const char *name, apr_pool_t *pool)
{
    static const char *const files[] = { "jobs.js", "jobs.css", "base.css" };
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
        if (strcmp(name, files[i]) == 0) {
            request->kind = MC_REQUEST_DOCUMENT;
            mc_page_asset_answer(&request->u.document, mc_page_asset_find(name), pool);
            return MC_OK;
        }
    return mc_error_create(pool, MC_ERR_NOT_FOUND, "the page of the jobs has no such file");
}

static mc_error *
jobs_parse(mc_request *request, const mc_call *call, mc_ctx *ctx, apr_pool_t *pool)
{
    jobs_service *service = (jobs_service *)call->service;
    const apr_array_header_t *segments = mc_path_segments(call->path, pool);
    const char *first = segments->nelts == 0 ? "" : APR_ARRAY_IDX(segments, 0, const char *);
    if (strcmp(first, "api") == 0 && segments->nelts <= 3)
        return answer_api(request, service, call, segments, ctx, pool);
    if (strcmp(first, "static") == 0 && segments->nelts == 2)
        return answer_static(request, APR_ARRAY_IDX(segments, 1, const char *), pool);
    if (*first != '\0' || strncmp(call->full_path, "jobs", 4) != 0 ||
        (call->full_path[4] != '\0' && call->full_path[4] != '/'))
        return mc_error_create(pool, MC_ERR_NOT_FOUND, "the service jobs has a page and an api");
    mc_request_page(request, mc_jobs_page(call, pool));
    return MC_OK;
}

/* A job is told what to do by POST; jobs are listed and added at one address; the rest is only read. What is no address
 * has no methods of its own: that it is not there is the better answer. */
static const char *
jobs_methods(const mc_call *call, apr_pool_t *pool)
{
    static const char *const actions[] = { "cancel", "pause", "resume", "retry" };
    const apr_array_header_t *segments = mc_path_segments(call->path, pool);
    if (segments->nelts == 0 || strcmp(APR_ARRAY_IDX(segments, 0, const char *), "api") != 0)
        return "GET, HEAD";
    if (segments->nelts == 2)
        return "GET, HEAD";
    for (size_t i = 0; segments->nelts == 3 && i < sizeof(actions) / sizeof(actions[0]); i++)
        if (strcmp(APR_ARRAY_IDX(segments, 2, const char *), actions[i]) == 0)
            return "POST";
    return "GET, HEAD, POST";
}

/* Only new jobs have a body. */
static size_t
jobs_body_limit(const mc_call *call)
{
    return strcmp(call->path, "api") == 0 || strcmp(call->path, "api/") == 0 ? MC_JOBS_BODY_MAX : 0;
}

const mc_service_ops mc_service_jobs = {
    MC_SERVICE(jobs, "jobs", jobs_keys, jobs_from_config, "The queue of seeding jobs: a JSON API and a page."),
    .methods = jobs_methods,
    .body_limit = jobs_body_limit,
    .unlisted = true,
    .report = mc_operations_report,
};
