/* Jobs, units and workers as JSON objects: the same from the command line and from the server. */
#include <apr_strings.h>

#include "mapcache/jobs.h"
#include "text/json_writer.h"
#include "text/text.h"

enum { REAL_DIGITS = 12 };

/* A time as a number of seconds, or null. */
static void
write_job_time(mc_json_writer *json, const char *key, apr_time_t time, apr_pool_t *pool)
{
    const char *text = time == 0 ? NULL
                                 : apr_psprintf(pool, "%" APR_INT64_T_FMT ".%03d", (apr_int64_t)(time / 1000000),
                                                (int)(time / 1000 % 1000));
    mc_json_raw(json, key, text == NULL ? "null" : text);
}

static void
write_job_extent(mc_json_writer *json, const mc_job *job)
{
    const double numbers[] = { job->extent.minx, job->extent.miny, job->extent.maxx, job->extent.maxy };
    if (!job->has_extent) {
        mc_json_null(json, "extent");
        return;
    }
    mc_json_open_array(json, "extent");
    for (int i = 0; i < 4; i++)
        mc_json_digits(json, NULL, numbers[i], REAL_DIGITS);
    mc_json_close(json);
}

static void
write_job_dimension_text(mc_json_writer *json, const mc_job *job, apr_pool_t *pool)
{
    const apr_array_header_t *pairs = apr_table_elts(mc_query_parse(job->dimensions, 64, pool));
    mc_json_open_object(json, "dimensions");
    for (int i = 0; i < pairs->nelts; i++) {
        const apr_table_entry_t *pair = &APR_ARRAY_IDX(pairs, i, apr_table_entry_t);
        mc_json_string(json, pair->key, pair->val);
    }
    mc_json_close(json);
}

/* The work that was asked for. */
static void
write_job_task(mc_json_writer *json, const mc_job *job, apr_pool_t *pool)
{
    mc_json_string(json, "mode", mc_job_mode_name(job->mode));
    mc_json_string(json, "order", mc_job_order_name(job->order));
    mc_json_string(json, "tileset", job->tileset);
    mc_json_string(json, "grid", job->grid);
    mc_json_string(json, "target", *job->target == '\0' ? NULL : job->target);
    write_job_dimension_text(json, job, pool);
    write_job_time(json, "older", job->older, pool);
    mc_json_integer(json, "minzoom", job->minzoom);
    mc_json_integer(json, "maxzoom", job->maxzoom);
    write_job_extent(json, job);
    mc_json_boolean(json, "area", job->has_area);
    mc_json_open_array(json, "metatile");
    mc_json_integer(json, NULL, job->columns);
    mc_json_integer(json, NULL, job->rows);
    mc_json_close(json);
    mc_json_integer(json, "side", job->side);
    mc_json_digits(json, "rate", job->rate, REAL_DIGITS);
    mc_json_integer(json, "priority", job->priority);
    mc_json_integer(json, "attempts", job->attempts);
}

const char *
mc_job_json(const mc_job *job, bool open, apr_pool_t *pool)
{
    mc_json_writer *json = mc_json_create(MC_JSON_DENSE, pool);
    mc_json_open_object(json, NULL);
    mc_json_integer(json, "id", job->id);
    mc_json_string(json, "state", mc_job_state_name(job->state));
    write_job_task(json, job, pool);
    mc_json_integer(json, "units", job->units);
    mc_json_integer(json, "units_finished", job->finished);
    mc_json_integer(json, "units_failed", job->failed_units);
    mc_json_integer(json, "metatiles", job->metatiles);
    mc_json_integer(json, "done", job->counts.done);
    mc_json_integer(json, "skipped", job->counts.skipped);
    mc_json_integer(json, "failed", job->failed);
    mc_json_integer(json, "tiles", job->counts.tiles);
    mc_json_integer(json, "workers", job->workers);
    write_job_time(json, "created", job->created, pool);
    write_job_time(json, "started", job->started, pool);
    write_job_time(json, "ended", job->ended, pool);
    write_job_time(json, "now", job->now, pool);
    if (open)
        mc_json_string(json, "owner", job->owner);
    mc_json_close(json);
    return mc_json_finish_text(json);
}

const char *
mc_job_unit_json(const mc_job_unit *unit, const mc_job *job, bool open, apr_pool_t *pool)
{
    mc_job_block block = mc_job_block_of(job, unit->unit);
    mc_json_writer *json = mc_json_create(MC_JSON_DENSE, pool);
    mc_json_open_object(json, NULL);
    mc_json_integer(json, "unit", unit->unit);
    mc_json_string(json, "state", unit->state);
    mc_json_integer(json, "z", block.z);
    mc_json_integer(json, "x", block.column * job->columns);
    mc_json_integer(json, "y", block.row * job->rows);
    mc_json_integer(json, "columns", block.columns);
    mc_json_integer(json, "rows", block.rows);
    mc_json_integer(json, "attempt", unit->attempt);
    mc_json_integer(json, "position", unit->position);
    mc_json_integer(json, "again", unit->again_count);
    mc_json_integer(json, "done", unit->counts.done);
    mc_json_integer(json, "skipped", unit->counts.skipped);
    mc_json_integer(json, "tiles", unit->counts.tiles);
    write_job_time(json, "until", unit->until, pool);
    if (open) {
        mc_json_string(json, "worker", unit->worker);
        mc_json_string(json, "message", unit->message);
    }
    mc_json_close(json);
    return mc_json_finish_text(json);
}

const char *
mc_job_worker_json(const mc_job_worker *worker, bool open, apr_pool_t *pool)
{
    mc_json_writer *json = mc_json_create(MC_JSON_DENSE, pool);
    mc_json_open_object(json, NULL);
    if (open)
        mc_json_string(json, "name", worker->name);
    mc_json_integer(json, "threads", worker->threads);
    if (worker->job == 0)
        mc_json_null(json, "job");
    else
        mc_json_integer(json, "job", worker->job);
    mc_json_digits(json, "tiles_per_second", worker->rate, REAL_DIGITS);
    mc_json_integer(json, "tiles", worker->tiles);
    write_job_time(json, "started", worker->started, pool);
    write_job_time(json, "seen", worker->seen, pool);
    mc_json_close(json);
    return mc_json_finish_text(json);
}
