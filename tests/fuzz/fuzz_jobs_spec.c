/* A job that a client asks for: JSON to a job specification, and that to a job of a small configuration. What becomes
 * one is sound. */
#include <apr_strings.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fuzz_support.h"
#include "mapcache/server.h"
#include "service/jobs/jobs.h"

static const char configuration[] =
    "<mapcache><source name='s' type='dummy'/><cache name='c' type='disk'><base>/nowhere</base></cache>"
    "<tileset name='t'><source>s</source><cache>c</cache><grid>GoogleMapsCompatible</grid><grid>WGS84</grid>"
    "<format>PNG</format><metatile>3 2</metatile><dimensions><dimension type='values' name='d' default='1'>"
    "<value>1</value></dimension></dimensions></tileset>"
    "<tileset name='u'><source>s</source><cache>c</cache><grid>WGS84</grid><format>PNG</format></tileset>"
    "<service type='wmts' enabled='true'/></mapcache>";

static const mc_config *
model(void)
{
    static mc_config *made;
    static apr_pool_t *pool; /* kept: the model is in it */
    if (made != NULL)
        return made;
    apr_pool_create(&pool, NULL);
    char name[] = "/tmp/mapcache-fuzz-XXXXXX";
    int file = mkstemp(name);
    MC_ASSERT(file >= 0 && write(file, configuration, sizeof(configuration) - 1) == (ssize_t)sizeof(configuration) - 1);
    close(file);
    MC_ASSERT(mc_config_load(&made, name, mc_diagnostics_create(pool), pool) == MC_OK);
    unlink(name);
    return made;
}

static void
check(const mc_job *job)
{
    MC_ASSERT(job->metatiles > 0 && job->units > 0 && job->units == mc_job_units(job));
    MC_ASSERT(job->metatiles <= mc_job_metatiles(job));
    MC_ASSERT(job->side >= 1 && job->side <= MC_JOBS_SIDE_MAX);
    const int64_t some[] = { 0, job->units / 2, job->units - 1 };
    for (int i = 0; i < 3; i++) {
        mc_job_block block = mc_job_block_of(job, some[i]);
        MC_ASSERT(block.columns >= 1 && block.columns <= job->side && block.rows >= 1 && block.rows <= job->side);
        MC_ASSERT(block.z >= job->minzoom && block.z <= job->maxzoom && block.column >= 0 && block.row >= 0);
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const mc_config *config = model();
    apr_pool_t *pool;
    apr_pool_create(&pool, NULL);
    mc_job_spec spec;
    mc_job job, same;
    mc_seed_task task;
    mc_seed_area area;
    /* A block of its own, so that a byte read beyond it is noticed. */
    char *body = malloc(size == 0 ? 1 : size);
    memcpy(body, data, size);
    mc_error *error = mc_job_spec_parse(&spec, body, size, pool);
    MC_ASSERT(error == MC_OK || mc_error_status(error->kind) == 400);
    if (error == MC_OK) {
        error = mc_job_make(&job, &spec, config, pool);
        MC_ASSERT(error == MC_OK || mc_error_status(error->kind) == 400);
    }
    if (error == MC_OK) {
        check(&job);
        MC_ASSERT(mc_job_task(&task, &area, &job, config, pool) == MC_OK);
        MC_ASSERT(mc_job_make(&same, &spec, config, pool) == MC_OK && same.units == job.units);
        MC_ASSERT(mc_job_json(&job, true, pool) != NULL);
    }
    free(body);
    apr_pool_destroy(pool);
    return 0;
}
