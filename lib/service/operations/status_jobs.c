/* The jobs that run, for the status page: what their database has said, kept for some seconds for all who look. */
#include <apr_strings.h>
#include <stdlib.h>
#include <string.h>

#include "base/admission.h"
#include "base/clock.h"
#include "mapcache/jobs.h"
#include "mapcache/server.h"
#include "service/operations/status.h"

/* Jobs that are listed, and seconds of silence of workers that are. */
enum { JOBS_LISTED = 20, WORKER_SILENCE = 30 };

/* Microseconds: how long an answer is good, one that there was none too; how long the database is waited for. */
static const apr_interval_time_t jobs_good = 5 * APR_USEC_PER_SEC, jobs_waited = APR_USEC_PER_SEC;

static apr_status_t
destroy_status_jobs(void *data)
{
    mc_status_jobs *jobs = data;
    free(jobs->text);
    pthread_mutex_destroy(&jobs->lock);
    return APR_SUCCESS;
}

mc_status_jobs *
mc_status_jobs_create(apr_pool_t *pool)
{
    mc_status_jobs *jobs = apr_pcalloc(pool, sizeof(*jobs));
    pthread_mutex_init(&jobs->lock, NULL);
    apr_pool_cleanup_register(pool, jobs, destroy_status_jobs, apr_pool_cleanup_null);
    return jobs;
}

static mc_error *
list_running_jobs(const char **text, mc_jobs *queue, mc_ctx *ctx, apr_pool_t *pool)
{
    const mc_jobs_filter filter = { .has_state = true, .state = MC_JOB_OPEN, .limit = JOBS_LISTED };
    apr_array_header_t *jobs, *workers;
    MC_TRY(mc_admission_enter(ctx, pool));
    MC_SLOW(ctx);
    MC_TRY(mc_jobs_list(&jobs, queue, &filter, ctx, pool));
    MC_TRY(mc_jobs_workers(&workers, queue, WORKER_SILENCE, ctx, pool));
    mc_json_writer *json = mc_json_create(MC_JSON_DENSE, pool);
    mc_json_open_object(json, NULL);
    mc_json_integer(json, "workers", workers->nelts);
    mc_json_open_array(json, "items");
    for (int i = 0; i < jobs->nelts; i++)
        mc_json_raw(json, NULL, mc_job_json(&APR_ARRAY_IDX(jobs, i, mc_job), false, pool));
    mc_json_close(json);
    mc_json_close(json);
    *text = mc_json_finish_text(json);
    return MC_OK;
}

/* The database's own words stay in the log. */
static const char *
describe_jobs_failure(const mc_error *error, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_log_error(ctx, MC_LOG_INFO, error);
    mc_json_writer *json = mc_json_create(MC_JSON_DENSE, pool);
    mc_json_open_object(json, NULL);
    mc_json_string(json, "failure", error->message);
    mc_json_close(json);
    return mc_json_finish_text(json);
}

static void
ask_for_jobs(mc_status_jobs *jobs, mc_jobs *queue, mc_ctx *ctx, apr_pool_t *pool)
{
    const char *text = NULL;
    mc_ctx limited = *ctx;
    const apr_time_t end = mc_clock_now() + jobs_waited;
    if (limited.deadline == 0 || end < limited.deadline)
        limited.deadline = end;
    mc_error *error = list_running_jobs(&text, queue, &limited, pool);
    if (error != MC_OK)
        text = describe_jobs_failure(error, ctx, pool);
    pthread_mutex_lock(&jobs->lock);
    free(jobs->text);
    jobs->text = strdup(text);
    jobs->next = mc_clock_now() + jobs_good;
    jobs->asking = false;
    pthread_mutex_unlock(&jobs->lock);
}

void
mc_status_write_jobs(mc_json_writer *json, mc_status_service *service, const mc_config *config, mc_ctx *ctx,
                     apr_pool_t *pool)
{
    mc_status_jobs *jobs = service->jobs;
    if (config->jobs == NULL) {
        mc_json_null(json, "jobs");
        return;
    }
    pthread_mutex_lock(&jobs->lock);
    const bool asks = !jobs->asking && mc_clock_now() >= jobs->next;
    jobs->asking = jobs->asking || asks;
    pthread_mutex_unlock(&jobs->lock);
    if (asks)
        ask_for_jobs(jobs, config->jobs, ctx, pool);
    pthread_mutex_lock(&jobs->lock);
    const char *text = jobs->text == NULL ? "null" : apr_pstrdup(pool, jobs->text);
    pthread_mutex_unlock(&jobs->lock);
    mc_json_raw(json, "jobs", text);
}
