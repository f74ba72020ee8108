/* What the files of <service type="status"> share. */
#ifndef MC_SERVICE_OPERATIONS_STATUS_H
#define MC_SERVICE_OPERATIONS_STATUS_H

#include <pthread.h>

#include "service/operations/operations.h"
#include "telemetry/incidents.h"

/* What the database of jobs has said last. */
typedef struct mc_status_jobs {
    pthread_mutex_t lock; /* of the rest */
    bool asking;          /* a request asks now: others have what there is */
    apr_time_t next;      /* mc_clock_now() from which the database is asked again */
    char *text;           /* JSON, malloc'ed; NULL: not asked yet */
} mc_status_jobs;

typedef struct mc_status_service {
    mc_service_base base;
    bool has_page;
    mc_status_jobs *jobs;
} mc_status_service;

typedef struct mc_status_params {
    int offset, limit; /* of the list of tilesets */
    const char *find;  /* in their names and titles; NULL: all */
    int64_t request;   /* number of the slow request that is asked for; 0: everything else is */
} mc_status_params;

/* The page, and one of the files that it loads. */
mc_buf *mc_status_page(const mc_call *call, apr_pool_t *pool);
mc_error *mc_status_static(mc_request *request, const char *name, apr_pool_t *pool) MC_CHECKED;

/* What the page shows, as a member of the open object. */
void mc_status_write_requests(mc_json_writer *json, mc_metrics *metrics);
void mc_status_write_tilesets(mc_json_writer *json, const mc_status_params *params, const mc_call *call,
                              mc_metrics *metrics, apr_pool_t *pool);
void mc_status_write_processes(mc_json_writer *json, mc_metrics *metrics, apr_pool_t *pool);
void mc_status_write_errors(mc_json_writer *json, mc_metrics *metrics, apr_pool_t *pool);
void mc_status_write_slow(mc_json_writer *json, mc_metrics *metrics, apr_pool_t *pool);

/* One slow request with its spans. False: it is not kept any more. */
bool mc_status_write_slow_request(mc_json_writer *json, int64_t number, mc_metrics *metrics, apr_pool_t *pool);

/* The jobs that run, as the database says at most every five seconds; it is waited for a second at most. Null without
 * a queue. */
void mc_status_write_jobs(mc_json_writer *json, mc_status_service *service, const mc_config *config, mc_ctx *ctx,
                          apr_pool_t *pool);
mc_status_jobs *mc_status_jobs_create(apr_pool_t *pool);

#endif
