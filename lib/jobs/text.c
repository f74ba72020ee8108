/* Jobs, units and workers as JSON objects: the same from the command line and from the server. */
#include <apr_strings.h>
#include <stdio.h>

#include "mapcache/jobs.h"
#include "text/text.h"

#define N APR_INT64_T_FMT

/* A time as a number of seconds, or null. */
static const char *
job_json_seconds(apr_time_t time, apr_pool_t *pool)
{
    return time == 0 ? "null"
                     : apr_psprintf(pool, "%" N ".%03d", (apr_int64_t)(time / 1000000), (int)(time / 1000 % 1000));
}

static const char *
job_json_real(double number, apr_pool_t *pool)
{
    char text[40];
    snprintf(text, sizeof(text), "%.12g", number);
    return apr_pstrdup(pool, text);
}

/* A string in quotes. */
static const char *
job_json_string(const char *text, apr_pool_t *pool)
{
    return apr_pstrcat(pool, "\"", mc_json_escape(text, pool), "\"", NULL);
}

static const char *
job_json_extent(const mc_job *job, apr_pool_t *pool)
{
    const mc_extent *e = &job->extent;
    return !job->has_extent
               ? "null"
               : apr_pstrcat(pool, "[", job_json_real(e->minx, pool), ",", job_json_real(e->miny, pool), ",",
                             job_json_real(e->maxx, pool), ",", job_json_real(e->maxy, pool), "]", NULL);
}

static const char *
dimensions_of(const mc_job *job, apr_pool_t *pool)
{
    const apr_array_header_t *pairs = apr_table_elts(mc_query_parse(job->dimensions, 64, pool));
    const char *text = "{";
    for (int i = 0; i < pairs->nelts; i++) {
        const apr_table_entry_t *pair = &APR_ARRAY_IDX(pairs, i, apr_table_entry_t);
        text = apr_pstrcat(pool, text, i == 0 ? "" : ",", job_json_string(pair->key, pool), ":",
                           job_json_string(pair->val, pool), NULL);
    }
    return apr_pstrcat(pool, text, "}", NULL);
}

static const char *
what_of(const mc_job *job, apr_pool_t *pool)
{
    return apr_psprintf(
        pool,
        "\"mode\":\"%s\",\"order\":\"%s\",\"tileset\":%s,\"grid\":%s,\"target\":%s,\"dimensions\":%s,\"older\":%s,"
        "\"minzoom\":%d,\"maxzoom\":%d,\"extent\":%s,\"area\":%s,\"metatile\":[%d,%d],\"side\":%d,\"rate\":%s,"
        "\"priority\":%d,\"attempts\":%d",
        mc_job_mode_name(job->mode), mc_job_order_name(job->order), job_json_string(job->tileset, pool),
        job_json_string(job->grid, pool), *job->target == '\0' ? "null" : job_json_string(job->target, pool),
        dimensions_of(job, pool), job_json_seconds(job->older, pool), job->minzoom, job->maxzoom,
        job_json_extent(job, pool), job->has_area ? "true" : "false", job->columns, job->rows, job->side,
        job_json_real(job->rate, pool), job->priority, job->attempts);
}

const char *
mc_job_json(const mc_job *job, bool open, apr_pool_t *pool)
{
    const mc_job_counts *counts = &job->counts;
    return apr_psprintf(pool,
                        "{\"id\":%" N ",\"state\":\"%s\",%s,\"units\":%" N ",\"units_finished\":%" N
                        ",\"units_failed\":%" N ",\"metatiles\":%" N ",\"done\":%" N ",\"skipped\":%" N
                        ",\"failed\":%" N ",\"tiles\":%" N ",\"workers\":%d,\"created\":%s,\"started\":%s,"
                        "\"ended\":%s,\"now\":%s%s}",
                        (apr_int64_t)job->id, mc_job_state_name(job->state), what_of(job, pool),
                        (apr_int64_t)job->units, (apr_int64_t)job->finished, (apr_int64_t)job->failed_units,
                        (apr_int64_t)job->metatiles, (apr_int64_t)counts->done, (apr_int64_t)counts->skipped,
                        (apr_int64_t)job->failed, (apr_int64_t)counts->tiles, job->workers,
                        job_json_seconds(job->created, pool), job_json_seconds(job->started, pool),
                        job_json_seconds(job->ended, pool), job_json_seconds(job->now, pool),
                        open ? apr_pstrcat(pool, ",\"owner\":", job_json_string(job->owner, pool), NULL) : "");
}

const char *
mc_job_unit_json(const mc_job_unit *unit, const mc_job *job, bool open, apr_pool_t *pool)
{
    const mc_job_counts *counts = &unit->counts;
    mc_job_block block = mc_job_block_of(job, unit->unit);
    const char *more = "";
    if (open)
        more = apr_pstrcat(pool, ",\"worker\":", job_json_string(unit->worker, pool),
                           ",\"message\":", job_json_string(unit->message, pool), NULL);
    return apr_psprintf(pool,
                        "{\"unit\":%" N ",\"state\":\"%s\",\"z\":%d,\"x\":%d,\"y\":%d,\"columns\":%d,\"rows\":%d,"
                        "\"attempt\":%d,\"position\":%d,\"again\":%d,\"done\":%" N ",\"skipped\":%" N ",\"tiles\":%" N
                        ",\"until\":%s%s}",
                        (apr_int64_t)unit->unit, unit->state, block.z, block.column * job->columns,
                        block.row * job->rows, block.columns, block.rows, unit->attempt, unit->position,
                        unit->again_count, (apr_int64_t)counts->done, (apr_int64_t)counts->skipped,
                        (apr_int64_t)counts->tiles, job_json_seconds(unit->until, pool), more);
}

const char *
mc_job_worker_json(const mc_job_worker *worker, bool open, apr_pool_t *pool)
{
    return apr_psprintf(
        pool, "{%s%s%s\"threads\":%d,\"job\":%s,\"tiles_per_second\":%s,\"tiles\":%" N ",\"started\":%s,\"seen\":%s}",
        open ? "\"name\":" : "", open ? job_json_string(worker->name, pool) : "", open ? "," : "", worker->threads,
        worker->job == 0 ? "null" : apr_psprintf(pool, "%" N, (apr_int64_t)worker->job),
        job_json_real(worker->rate, pool), (apr_int64_t)worker->tiles, job_json_seconds(worker->started, pool),
        job_json_seconds(worker->seen, pool));
}
