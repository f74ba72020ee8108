/* What the files of the service jobs share. */
#ifndef MC_SERVICE_JOBS_JOBS_H
#define MC_SERVICE_JOBS_JOBS_H

#include "mapcache/jobs.h"
#include "service/param.h"
#include "service/service_base.h"

enum { MC_JOBS_BODY_MAX = 65536 }; /* bytes */

/* The fields of a new job. */
extern const mc_param_row mc_job_body_params[];

/* The job specification in the body of a request. MC_ERR_BAD_REQUEST, or MC_ERR_INVALID_PARAMETER with the field as
 * locator. */
mc_error *mc_job_spec_parse(mc_job_spec *spec, const char *bytes, size_t size, apr_pool_t *pool) MC_CHECKED;

/* The page; nothing of the queue is in it. */
mc_buf *mc_jobs_page(const mc_call *call, apr_pool_t *pool);

#endif
