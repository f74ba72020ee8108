/* Jobs as people see them: made, listed, changed, removed. */
#include <apr_strings.h>
#include <string.h>
#include <sys/random.h>

#include "jobs/sql.h"
#include "text/text.h"

/* --- enqueue ---------------------------------------------------------------------------------------------------- */

/* The same request makes one job, also when the statement is sent twice. */
static const char enqueue_sql[] =
    "WITH made AS (INSERT INTO @mapcache_jobs(request, priority, attempts, mode, tileset, grid, target, dimensions,"
    " older, minzoom, maxzoom, extent, limits, metatile_columns, metatile_rows, side, rate, model, units, metatiles,"
    " owner, area, area_srs, unit_order) VALUES ($1::text, $2::int4, $3::int4, $4::text, $5::text, $6::text, $7::text, "
    "$8::text,"
    " 'epoch'::timestamptz + nullif($9::int8, 0) * interval '1 microsecond', $10::int4, $11::int4,"
    " nullif($12::text, ''), $13::int4[], $14::int4, $15::int4, $16::int4, $17::float8, $18::text, $19::int8,"
    " $20::int8, $21::text, $22::text, $23::text, $24::text) ON CONFLICT (request) DO NOTHING RETURNING id)"
    " SELECT id FROM made UNION ALL SELECT id FROM @mapcache_jobs WHERE request = $1::text LIMIT 1";

static const char *
random_request(apr_pool_t *pool)
{
    apr_uint64_t bits[2];
    MC_ASSERT(getrandom(bits, sizeof(bits), 0) == (ssize_t)sizeof(bits));
    return apr_psprintf(pool, "%016" APR_UINT64_T_HEX_FMT "%016" APR_UINT64_T_HEX_FMT, bits[0], bits[1]);
}

static const char *
format_extent(const mc_job *job, apr_pool_t *pool)
{
    const double sides[] = { job->extent.minx, job->extent.miny, job->extent.maxx, job->extent.maxy };
    const char *text = "";
    for (int i = 0; job->has_extent && i < 4; i++)
        text = apr_pstrcat(pool, text, i == 0 ? "" : ",", mc_double_text('g', 17, sides[i], pool), NULL);
    return text;
}

static void
bind_job(jobs_statement *statement, const mc_job *job, apr_pool_t *pool)
{
    const char *texts[] = { mc_job_mode_name(job->mode), job->tileset, job->grid, job->target, job->dimensions };
    _Static_assert(sizeof(mc_tile_range) == 4 * sizeof(int), "limits are numbers, four by four");
    jobs_bind_number(statement, job->priority, pool);
    jobs_bind_number(statement, job->attempts, pool);
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        jobs_bind(statement, texts[i]);
    jobs_bind_number(statement, job->older, pool);
    jobs_bind_number(statement, job->minzoom, pool);
    jobs_bind_number(statement, job->maxzoom, pool);
    jobs_bind(statement, format_extent(job, pool));
    jobs_bind_list(statement, &job->limits[0].minx, 4 * (job->maxzoom - job->minzoom + 1), pool);
    jobs_bind_number(statement, job->columns, pool);
    jobs_bind_number(statement, job->rows, pool);
    jobs_bind_number(statement, job->side, pool);
    jobs_bind_real(statement, job->rate, pool);
    jobs_bind(statement, job->model);
    jobs_bind_number(statement, job->units, pool);
    jobs_bind_number(statement, job->metatiles, pool);
    jobs_bind(statement, job->owner);
    jobs_bind(statement, job->area);
    jobs_bind(statement, job->area_srs);
    jobs_bind(statement, mc_job_order_name(job->order));
}

mc_error *
mc_jobs_enqueue(int64_t *id, mc_jobs *jobs, const mc_job *job, const char *request, mc_ctx *ctx)
{
    jobs_statement statement = { .sql = enqueue_sql };
    apr_array_header_t *rows;
    MC_TRY(jobs_prepare(jobs, ctx));
    jobs_bind(&statement, request == NULL ? random_request(ctx->pool) : request);
    bind_job(&statement, job, ctx->pool);
    /* Twice: another connection that makes the same job at this moment is seen the second time. */
    for (int turn = 0; turn < 2; turn++) {
        MC_TRY(jobs_run(&rows, jobs, &statement, ctx, ctx->pool));
        if (rows->nelts > 0) {
            *id = jobs_number(APR_ARRAY_IDX(rows, 0, jobs_row)[0]);
            return MC_OK;
        }
    }
    return mc_error_create(ctx->pool, MC_ERR_UNAVAILABLE, "the job queue has lost its tables");
}

/* --- list ------------------------------------------------------------------------------------------------------- */

/* A job, %s: its area's text or '' where that is not wanted. What units have done that are not finished counts, too. */
static const char select_sql[] =
    "SELECT j.id, j.state, j.mode, j.priority, j.attempts, j.tileset, j.grid, j.target, j.dimensions,"
    " (extract(epoch FROM j.older) * 1000000)::int8, j.minzoom, j.maxzoom, j.extent, j.limits, j.metatile_columns,"
    " j.metatile_rows, j.side, j.rate, j.model, j.units, j.next_unit, j.finished, j.failed_units, j.metatiles,"
    " j.done + u.done, j.skipped + u.skipped, j.tiles + u.tiles, u.failed, u.workers,"
    " (extract(epoch FROM j.created) * 1000000)::int8, (extract(epoch FROM j.started) * 1000000)::int8,"
    " (extract(epoch FROM j.ended) * 1000000)::int8, (extract(epoch FROM clock_timestamp()) * 1000000)::int8,"
    " j.owner, (j.area <> '')::int4, %s, j.area_srs, j.unit_order FROM @mapcache_jobs j CROSS JOIN LATERAL"
    " (SELECT coalesce(sum(done), 0)::int8 AS done, coalesce(sum(skipped), 0)::int8 AS skipped,"
    " coalesce(sum(tiles), 0)::int8 AS tiles, coalesce(sum(cardinality(again) + greatest(size - position, 0))"
    " FILTER (WHERE state = 'failed'), 0)::int8 AS failed,"
    " count(DISTINCT worker) FILTER (WHERE state = 'leased' AND until > clock_timestamp()) AS workers"
    " FROM @mapcache_job_units WHERE job = j.id) u";

static const char *
select_job(const char *area, const char *more, apr_pool_t *pool)
{
    return apr_pstrcat(pool, apr_psprintf(pool, select_sql, area), more, NULL);
}

/* The limits of each level, none of them below 0 or inside out. */
static bool
are_limits(const int *numbers, int count, int levels)
{
    bool sound = count == 4 * levels;
    for (int i = 0; i + 3 < count && sound; i += 4)
        sound =
            numbers[i] >= 0 && numbers[i + 1] >= 0 && numbers[i] <= numbers[i + 2] && numbers[i + 1] <= numbers[i + 3];
    return sound;
}

/* False where it is none. */
static bool
read_job_shape(mc_job *job, jobs_row row, apr_pool_t *pool)
{
    double extent[4];
    int found = 0, count;
    job->has_extent = row[12] != NULL && mc_parse_doubles(extent, 4, &found, row[12], ",") && found == 4;
    if (job->has_extent)
        job->extent = (mc_extent){ extent[0], extent[1], extent[2], extent[3] };
    const int *numbers = jobs_list_of(&count, row[13], pool);
    int levels = job->maxzoom - job->minzoom + 1;
    if (!are_limits(numbers, count, levels))
        return false;
    mc_tile_range *limits = apr_palloc(pool, sizeof(*limits) * (size_t)levels);
    memcpy(limits, numbers, sizeof(*limits) * (size_t)levels);
    job->limits = limits;
    job->columns = jobs_int(row[14]);
    job->rows = jobs_int(row[15]);
    job->side = jobs_int(row[16]);
    return job->side >= 1 && job->side <= MC_JOBS_SIDE_MAX && job->columns >= 1 && job->columns <= mc_pixels_max &&
           job->rows >= 1 && job->rows <= mc_pixels_max;
}

/* False where the row cannot be one that we have written. */
static bool
read_job(mc_job *job, jobs_row row, apr_pool_t *pool)
{
    *job = (mc_job){ .id = jobs_number(row[0]),
                     .priority = jobs_int(row[3]),
                     .attempts = jobs_int(row[4]),
                     .tileset = row[5],
                     .grid = row[6],
                     .target = row[7],
                     .dimensions = row[8],
                     .older = jobs_number(row[9]),
                     .minzoom = jobs_int(row[10]),
                     .maxzoom = jobs_int(row[11]),
                     .rate = jobs_real(row[17]),
                     .model = row[18],
                     .units = jobs_number(row[19]),
                     .next_unit = jobs_number(row[20]),
                     .finished = jobs_number(row[21]),
                     .failed_units = jobs_number(row[22]),
                     .metatiles = jobs_number(row[23]),
                     .counts = { jobs_number(row[24]), jobs_number(row[25]), jobs_number(row[26]) },
                     .failed = jobs_number(row[27]),
                     .workers = jobs_int(row[28]),
                     .created = jobs_number(row[29]),
                     .started = jobs_number(row[30]),
                     .ended = jobs_number(row[31]),
                     .now = jobs_number(row[32]),
                     .owner = row[33],
                     .has_area = jobs_number(row[34]) > 0,
                     .area = row[35],
                     .area_srs = row[36] };
    if (!mc_job_state_parse(&job->state, row[1]) || !mc_job_mode_parse(&job->mode, row[2]) ||
        !mc_job_order_parse(&job->order, row[37]) || job->minzoom < 0 || job->maxzoom < job->minzoom ||
        job->maxzoom > 1000 || job->tileset == NULL || job->grid == NULL || job->target == NULL)
        return false;
    return read_job_shape(job, row, pool) && mc_job_units(job) == job->units;
}

mc_error *
mc_jobs_list(apr_array_header_t **list, mc_jobs *jobs, const mc_jobs_filter *filter, mc_ctx *ctx, apr_pool_t *pool)
{
    static const char some[] = " WHERE ($1::text = '' OR j.state = $1::text) AND ($2::int8 = 0 OR j.id < $2::int8)"
                               " ORDER BY j.id DESC LIMIT $3::int4";
    jobs_statement statement = { .sql = select_job("''", some, ctx->pool) };
    apr_array_header_t *rows;
    jobs_bind(&statement, filter->has_state ? mc_job_state_name(filter->state) : "");
    jobs_bind_number(&statement, filter->before, ctx->pool);
    jobs_bind_number(&statement, filter->limit, ctx->pool);
    MC_TRY(jobs_run(&rows, jobs, &statement, ctx, pool));
    *list = apr_array_make(pool, rows->nelts + 1, sizeof(mc_job));
    for (int i = 0; i < rows->nelts; i++) {
        mc_job job;
        if (read_job(&job, APR_ARRAY_IDX(rows, i, jobs_row), pool))
            APR_ARRAY_PUSH(*list, mc_job) = job;
    }
    return MC_OK;
}

mc_error *
mc_jobs_find(mc_job *job, mc_jobs *jobs, int64_t id, bool with_area, mc_ctx *ctx, apr_pool_t *pool)
{
    jobs_statement statement = { .sql = select_job(with_area ? "j.area" : "''", " WHERE j.id = $1::int8", ctx->pool) };
    apr_array_header_t *rows;
    jobs_bind_number(&statement, id, ctx->pool);
    MC_TRY(jobs_run(&rows, jobs, &statement, ctx, pool));
    if (rows->nelts == 0)
        return mc_error_create(pool, MC_ERR_NOT_FOUND, "there is no job %" APR_INT64_T_FMT, (apr_int64_t)id);
    if (!read_job(job, APR_ARRAY_IDX(rows, 0, jobs_row), pool))
        return mc_error_create(pool, MC_ERR_CORRUPT, "the row of job %" APR_INT64_T_FMT " contradicts itself",
                               (apr_int64_t)id);
    return MC_OK;
}

mc_error *
mc_jobs_units(apr_array_header_t **list, mc_jobs *jobs, int64_t id, int limit, mc_ctx *ctx, apr_pool_t *pool)
{
    jobs_statement statement = {
        .sql = "SELECT unit, state, worker, message, attempt, position, again, done, skipped, tiles, " JOBS_TIME(
            "until") " FROM @mapcache_job_units WHERE job = $1::int8 ORDER BY state <> 'failed', unit LIMIT $2::int4"
    };
    apr_array_header_t *rows;
    jobs_bind_number(&statement, id, ctx->pool);
    jobs_bind_number(&statement, limit, ctx->pool);
    MC_TRY(jobs_run(&rows, jobs, &statement, ctx, pool));
    *list = apr_array_make(pool, rows->nelts + 1, sizeof(mc_job_unit));
    for (int i = 0; i < rows->nelts; i++) {
        jobs_row row = APR_ARRAY_IDX(rows, i, jobs_row);
        mc_job_unit unit = { .job = id,
                             .unit = jobs_number(row[0]),
                             .state = row[1] == NULL ? "" : row[1],
                             .worker = row[2],
                             .message = row[3],
                             .attempt = jobs_int(row[4]),
                             .position = jobs_int(row[5]),
                             .counts = { jobs_number(row[7]), jobs_number(row[8]), jobs_number(row[9]) },
                             .until = jobs_number(row[10]) };
        unit.again = jobs_list_of(&unit.again_count, row[6], pool);
        APR_ARRAY_PUSH(*list, mc_job_unit) = unit;
    }
    return MC_OK;
}

mc_error *
mc_jobs_workers(apr_array_header_t **list, mc_jobs *jobs, int seconds, mc_ctx *ctx, apr_pool_t *pool)
{
    jobs_statement statement = {
        .sql = "SELECT name, threads, job, rate, tiles, " JOBS_TIME("started") ", " JOBS_TIME(
            "seen") " FROM @mapcache_job_workers WHERE seen > clock_timestamp() - $1::int4 * interval '1 second'"
                    " ORDER BY name LIMIT 1000"
    };
    apr_array_header_t *rows;
    jobs_bind_number(&statement, seconds, ctx->pool);
    MC_TRY(jobs_run(&rows, jobs, &statement, ctx, pool));
    *list = apr_array_make(pool, rows->nelts + 1, sizeof(mc_job_worker));
    for (int i = 0; i < rows->nelts; i++) {
        jobs_row row = APR_ARRAY_IDX(rows, i, jobs_row);
        APR_ARRAY_PUSH(*list, mc_job_worker) = (mc_job_worker){
            .name = row[0] == NULL ? "" : row[0],
            .threads = jobs_int(row[1]),
            .job = jobs_number(row[2]),
            .rate = jobs_real(row[3]),
            .tiles = jobs_number(row[4]),
            .started = jobs_number(row[5]),
            .seen = jobs_number(row[6]),
        };
    }
    return MC_OK;
}

/* --- change ----------------------------------------------------------------------------------------------------- */

/* By action: what it does to a job that allows it, and to one that has it behind itself nothing. */
static const char *const change_sql[] = {
    [MC_JOB_CANCEL] =
        "WITH own AS (SELECT id FROM @mapcache_jobs WHERE id = $1::int8 AND state IN ('open', 'paused') FOR UPDATE),"
        " gone AS (DELETE FROM @mapcache_job_units u USING own WHERE u.job = own.id AND u.state <> 'failed'"
        " RETURNING u.done, u.skipped, u.tiles)"
        " UPDATE @mapcache_jobs j SET state = 'cancelled', ended = clock_timestamp(),"
        " done = j.done + (SELECT coalesce(sum(done), 0)::int8 FROM gone),"
        " skipped = j.skipped + (SELECT coalesce(sum(skipped), 0)::int8 FROM gone),"
        " tiles = j.tiles + (SELECT coalesce(sum(tiles), 0)::int8 FROM gone) FROM own WHERE j.id = own.id",
    [MC_JOB_PAUSE] = "UPDATE @mapcache_jobs SET state = 'paused' WHERE id = $1::int8 AND state = 'open'",
    [MC_JOB_RESUME] = "UPDATE @mapcache_jobs SET state = 'open' WHERE id = $1::int8 AND state = 'paused'",
    [MC_JOB_RETRY] =
        "WITH own AS (SELECT id FROM @mapcache_jobs WHERE id = $1::int8 AND state <> 'cancelled' FOR UPDATE),"
        " again AS (UPDATE @mapcache_job_units u SET state = 'returned', attempt = 0, lost = 0,"
        " until = clock_timestamp() FROM own WHERE u.job = own.id AND u.state = 'failed' RETURNING 1)"
        " UPDATE @mapcache_jobs j SET failed_units = j.failed_units - (SELECT count(*) FROM again),"
        " state = CASE WHEN j.state = 'done' AND EXISTS (SELECT 1 FROM again) THEN 'open' ELSE j.state END,"
        " ended = CASE WHEN EXISTS (SELECT 1 FROM again) THEN NULL ELSE j.ended END FROM own WHERE j.id = own.id",
};

static bool
job_action_achieved(mc_job_action action, mc_job_state state)
{
    switch (action) {
    case MC_JOB_CANCEL:
        return state == MC_JOB_CANCELLED;
    case MC_JOB_PAUSE:
        return state == MC_JOB_PAUSED;
    case MC_JOB_RESUME:
        return state == MC_JOB_OPEN;
    default:
        return state != MC_JOB_CANCELLED;
    }
}

mc_error *
mc_jobs_change(mc_job_state *state, mc_jobs *jobs, int64_t id, mc_job_action action, mc_ctx *ctx)
{
    static const char *const done[] = { "cancelled", "paused", "resumed", "tried again" };
    jobs_statement change = { .sql = change_sql[action] };
    jobs_statement look = { .sql = "SELECT state FROM @mapcache_jobs WHERE id = $1::int8" };
    apr_array_header_t *rows;
    jobs_bind_number(&change, id, ctx->pool);
    jobs_bind_number(&look, id, ctx->pool);
    MC_TRY(jobs_run(&rows, jobs, &change, ctx, ctx->pool));
    MC_TRY(jobs_run(&rows, jobs, &look, ctx, ctx->pool));
    if (rows->nelts == 0)
        return mc_error_create(ctx->pool, MC_ERR_NOT_FOUND, "there is no job %" APR_INT64_T_FMT, (apr_int64_t)id);
    (void)mc_job_state_parse(state, APR_ARRAY_IDX(rows, 0, jobs_row)[0]);
    if (!job_action_achieved(action, *state))
        return mc_error_create(ctx->pool, MC_ERR_INVALID_PARAMETER, "job %" APR_INT64_T_FMT " is %s: it cannot be %s",
                               (apr_int64_t)id, mc_job_state_name(*state), done[action]);
    return MC_OK;
}

mc_error *
mc_jobs_prune(int64_t *count, mc_jobs *jobs, int64_t seconds, mc_ctx *ctx)
{
    jobs_statement statement = { .sql =
                                     "WITH gone AS (DELETE FROM @mapcache_jobs WHERE state IN ('cancelled', 'done')"
                                     " AND ended <= clock_timestamp() - $1::int8 * interval '1 second' RETURNING 1),"
                                     " silent AS (DELETE FROM @mapcache_job_workers"
                                     " WHERE seen <= clock_timestamp() - greatest($1::int8, 60) * interval '1 second')"
                                     " SELECT count(*) FROM gone" };
    apr_array_header_t *rows;
    jobs_bind_number(&statement, seconds, ctx->pool);
    MC_TRY(jobs_run(&rows, jobs, &statement, ctx, ctx->pool));
    *count = rows->nelts > 0 ? jobs_number(APR_ARRAY_IDX(rows, 0, jobs_row)[0]) : 0;
    return MC_OK;
}
