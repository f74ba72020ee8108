/*
 * A worker's side of the queue. Every change is one statement, so that it happens whole or not at all, and every
 * statement that locks both locks the job's row before a unit's: two of them never wait for each other in a circle.
 * What a lease has done is told as absolute numbers of its unit, and only by who still has the lease: told twice, it
 * counts once.
 */
#include <apr_strings.h>
#include <sys/random.h>

#include "jobs/sql.h"

/* Takes what is due, else a new unit. A unit whose lease has ended ten times kills its workers: it fails. */
static const char lease_sql[] =
    "WITH best AS ("
    "SELECT j.id FROM @mapcache_jobs j WHERE j.state = 'open' AND j.id <> ALL ($4::int8[])"
    " AND (j.next_unit < j.units OR EXISTS (SELECT 1 FROM @mapcache_job_units u"
    " WHERE u.job = j.id AND u.state <> 'failed' AND u.until <= clock_timestamp()))"
    " ORDER BY j.priority DESC, j.id LIMIT 1 FOR UPDATE OF j),"
    " due AS (SELECT u.job, u.unit FROM @mapcache_job_units u JOIN best ON u.job = best.id"
    " WHERE u.state <> 'failed' AND u.until <= clock_timestamp() ORDER BY u.unit LIMIT 1 FOR UPDATE OF u SKIP LOCKED),"
    " old AS (UPDATE @mapcache_job_units u SET"
    " state = CASE WHEN u.state = 'leased' AND u.lost >= 9 THEN 'failed' ELSE 'leased' END,"
    " message = CASE WHEN u.state = 'leased' AND u.lost >= 9"
    " THEN 'ten leases have ended without a word, the last one of ' || u.worker ELSE u.message END,"
    " lost = u.lost + (u.state = 'leased')::int4, worker = $1::text, lease = $2::int8,"
    " until = clock_timestamp() + $3::int4 * interval '1 second'"
    " FROM due WHERE u.job = due.job AND u.unit = due.unit RETURNING u.*),"
    " taken AS (UPDATE @mapcache_jobs j SET"
    " next_unit = j.next_unit + (NOT EXISTS (SELECT 1 FROM old))::int4,"
    " failed_units = j.failed_units + (SELECT count(*) FROM old WHERE state = 'failed'),"
    " state = CASE WHEN j.finished + j.failed_units + (SELECT count(*) FROM old WHERE state = 'failed') >= j.units"
    " THEN 'done' ELSE j.state END,"
    " ended = CASE WHEN j.finished + j.failed_units + (SELECT count(*) FROM old WHERE state = 'failed') >= j.units"
    " THEN clock_timestamp() END,"
    " started = coalesce(j.started, clock_timestamp())"
    " FROM best WHERE j.id = best.id AND (EXISTS (SELECT 1 FROM old) OR j.next_unit < j.units)"
    " RETURNING j.id, j.next_unit),"
    " fresh AS (INSERT INTO @mapcache_job_units(job, unit, state, lease, worker, until)"
    " SELECT id, next_unit - 1, 'leased', $2::int8, $1::text, clock_timestamp() + $3::int4 * interval '1 second'"
    " FROM taken WHERE NOT EXISTS (SELECT 1 FROM old) RETURNING *)"
    " SELECT job, unit, position, again, done, skipped, tiles, attempt, message FROM old WHERE state = 'leased'"
    " UNION ALL SELECT job, unit, position, again, done, skipped, tiles, attempt, message FROM fresh";

/* $1 to $11 as bind_unit has them. */
static const char tell_sql[] =
    "WITH held AS (UPDATE @mapcache_job_units u SET state = CASE WHEN $11::bool THEN 'returned' ELSE 'leased' END,"
    " until = clock_timestamp() + CASE WHEN $11::bool THEN 0 ELSE $12::int4 END * interval '1 second',"
    " size = $4::int4, position = $5::int4, again = $6::int4[], done = $7::int8, skipped = $8::int8,"
    " tiles = $9::int8, message = $10::text"
    " WHERE u.job = $1::int8 AND u.unit = $2::int8 AND u.lease = $3::int8 AND u.state = 'leased' RETURNING u.job)"
    " SELECT (SELECT count(*) FROM held), j.state, j.rate,"
    " (SELECT count(DISTINCT u.worker) FROM @mapcache_job_units u"
    " WHERE u.job = j.id AND u.state = 'leased' AND u.until > clock_timestamp())"
    " FROM @mapcache_jobs j WHERE j.id = $1::int8";

/* The job is done when all of its units are finished or have failed: its own row knows how many, and a row that is
 * locked is never an old one. */
#define CLOSE(failing)                                                                                                 \
    " state = CASE WHEN j.state IN ('open', 'paused') AND j.finished + j.failed_units + " failing " >= j.units"        \
    " THEN 'done' ELSE j.state END,"                                                                                   \
    " ended = CASE WHEN j.state IN ('open', 'paused') AND j.finished + j.failed_units + " failing " >= j.units"        \
    " THEN clock_timestamp() ELSE j.ended END"

/* With the last unit it is known how many metatiles there are, which could only be guessed for some areas. */
static const char finish_sql[] =
    "WITH own AS (SELECT id FROM @mapcache_jobs WHERE id = $1::int8 FOR UPDATE),"
    " gone AS (DELETE FROM @mapcache_job_units u USING own"
    " WHERE u.job = own.id AND u.unit = $2::int8 AND u.lease = $3::int8 AND u.state = 'leased' RETURNING u.job)"
    " UPDATE @mapcache_jobs j SET finished = j.finished + 1, done = j.done + $4::int8, skipped = j.skipped + $5::int8,"
    " tiles = j.tiles + $6::int8, metatiles = CASE WHEN j.finished + 1 >= j.units"
    " THEN j.done + $4::int8 + j.skipped + $5::int8 ELSE j.metatiles END," CLOSE(
        "1") " FROM gone WHERE j.id = gone.job RETURNING 1, j.state, j.rate, 1";

/* Pauses of 1, 2, 4, ... seconds, at most five minutes. */
static const char fail_sql[] =
    "WITH own AS (SELECT id, attempts FROM @mapcache_jobs WHERE id = $1::int8 FOR UPDATE),"
    " failed AS (UPDATE @mapcache_job_units u SET attempt = u.attempt + 1,"
    " state = CASE WHEN u.attempt + 1 >= own.attempts THEN 'failed' ELSE 'returned' END,"
    " until = clock_timestamp() + least(300, 2 ^ least(u.attempt, 10)) * interval '1 second',"
    " size = $4::int4, position = $5::int4, again = $6::int4[], done = $7::int8, skipped = $8::int8,"
    " tiles = $9::int8, message = $10::text FROM own"
    " WHERE u.job = own.id AND u.unit = $2::int8 AND u.lease = $3::int8 AND u.state = 'leased'"
    " RETURNING u.job, (u.state = 'failed')::int4 AS final)"
    " UPDATE @mapcache_jobs j SET failed_units = j.failed_units + failed.final," CLOSE(
        "failed.final") " FROM failed WHERE j.id = failed.job RETURNING 1, j.state, j.rate, 1";

static const char open_sql[] = "SELECT count(*) FROM @mapcache_jobs WHERE state = 'open' AND id <> ALL ($1::int8[])";

static const char present_sql[] =
    "INSERT INTO @mapcache_job_workers AS w(name, threads, job, rate, tiles, seen)"
    " VALUES ($1::text, $2::int4, $3::int8, $4::float8, $5::int8, clock_timestamp()) ON CONFLICT (name) DO UPDATE"
    " SET threads = excluded.threads, job = excluded.job, rate = excluded.rate, tiles = excluded.tiles,"
    " seen = excluded.seen";

/* Random, so that a lease that has ended and been given to another is never taken for one's own. */
static int64_t
random_lease(void)
{
    uint64_t bits = 0;
    MC_ASSERT(getrandom(&bits, sizeof(bits), 0) == (ssize_t)sizeof(bits));
    return (int64_t)(bits >> 1);
}

static void
bind_jobs(jobs_statement *statement, const apr_array_header_t *jobs, apr_pool_t *pool)
{
    const char *text = "{";
    for (int i = 0; jobs != NULL && i < jobs->nelts; i++)
        text = apr_psprintf(pool, "%s%s%" APR_INT64_T_FMT, text, i == 0 ? "" : ",",
                            (apr_int64_t)APR_ARRAY_IDX(jobs, i, int64_t));
    jobs_bind(statement, apr_pstrcat(pool, text, "}", NULL));
}

static mc_error *
count_open(int64_t *open, mc_jobs *jobs, const apr_array_header_t *without, mc_ctx *ctx)
{
    jobs_statement statement = { .sql = open_sql };
    apr_array_header_t *rows;
    bind_jobs(&statement, without, ctx->pool);
    MC_TRY(jobs_run(&rows, jobs, &statement, ctx, ctx->pool));
    *open = rows->nelts > 0 ? jobs_number(APR_ARRAY_IDX(rows, 0, jobs_row)[0]) : 0;
    return MC_OK;
}

mc_error *
mc_jobs_lease(bool *found, mc_job_unit *unit, int64_t *open, mc_jobs *jobs, const char *worker,
              const apr_array_header_t *without, mc_ctx *ctx, apr_pool_t *pool)
{
    jobs_statement statement = { .sql = lease_sql };
    apr_array_header_t *rows;
    int64_t lease = random_lease();
    MC_TRY(jobs_prepare(jobs, ctx));
    jobs_bind(&statement, worker);
    jobs_bind_number(&statement, lease, ctx->pool);
    jobs_bind_number(&statement, jobs->lease, ctx->pool);
    bind_jobs(&statement, without, ctx->pool);
    MC_TRY(jobs_run(&rows, jobs, &statement, ctx, pool));
    *found = rows->nelts > 0;
    if (!*found)
        return count_open(open, jobs, without, ctx);
    jobs_row row = APR_ARRAY_IDX(rows, 0, jobs_row);
    *unit = (mc_job_unit){ .job = jobs_number(row[0]),
                           .unit = jobs_number(row[1]),
                           .lease = lease,
                           .state = "leased",
                           .worker = worker,
                           .position = jobs_int(row[2]),
                           .counts = { jobs_number(row[4]), jobs_number(row[5]), jobs_number(row[6]) },
                           .attempt = jobs_int(row[7]),
                           .message = row[8] };
    unit->again = jobs_list_of(&unit->again_count, row[3], pool);
    return MC_OK;
}

/* $1 to $3 name the lease. */
static void
bind_lease(jobs_statement *statement, const mc_job_unit *unit, apr_pool_t *pool)
{
    jobs_bind_number(statement, unit->job, pool);
    jobs_bind_number(statement, unit->unit, pool);
    jobs_bind_number(statement, unit->lease, pool);
}

static void
bind_counts(jobs_statement *statement, const mc_job_counts *counts, apr_pool_t *pool)
{
    jobs_bind_number(statement, counts->done, pool);
    jobs_bind_number(statement, counts->skipped, pool);
    jobs_bind_number(statement, counts->tiles, pool);
}

/* $1 to $10. */
static void
bind_unit(jobs_statement *statement, const mc_job_unit *unit, int size, apr_pool_t *pool)
{
    bind_lease(statement, unit, pool);
    jobs_bind_number(statement, size, pool);
    jobs_bind_number(statement, unit->position, pool);
    jobs_bind_list(statement, unit->again, unit->again_count, pool);
    bind_counts(statement, &unit->counts, pool);
    jobs_bind(statement, unit->message == NULL ? "" : unit->message);
}

static mc_error *
run_told(mc_job_told *told, mc_jobs *jobs, const jobs_statement *statement, mc_ctx *ctx)
{
    apr_array_header_t *rows;
    *told = (mc_job_told){ .workers = 1 };
    MC_TRY(jobs_run(&rows, jobs, statement, ctx, ctx->pool));
    if (rows->nelts == 0)
        return MC_OK;
    jobs_row row = APR_ARRAY_IDX(rows, 0, jobs_row);
    told->held = jobs_number(row[0]) > 0;
    (void)mc_job_state_parse(&told->state, row[1]);
    told->rate = jobs_real(row[2]);
    told->workers = jobs_int(row[3]) > 0 ? jobs_int(row[3]) : 1;
    return MC_OK;
}

mc_error *
mc_jobs_tell(mc_job_told *told, mc_jobs *jobs, const mc_job_unit *unit, int size, bool give_back, mc_ctx *ctx)
{
    jobs_statement statement = { .sql = tell_sql };
    bind_unit(&statement, unit, size, ctx->pool);
    jobs_bind(&statement, give_back ? "t" : "f");
    jobs_bind_number(&statement, jobs->lease, ctx->pool);
    return run_told(told, jobs, &statement, ctx);
}

mc_error *
mc_jobs_finish(mc_job_told *told, mc_jobs *jobs, const mc_job_unit *unit, int size, mc_ctx *ctx)
{
    jobs_statement statement = { .sql = unit->again_count > 0 ? fail_sql : finish_sql };
    if (unit->again_count > 0) {
        bind_unit(&statement, unit, size, ctx->pool);
    } else {
        bind_lease(&statement, unit, ctx->pool);
        bind_counts(&statement, &unit->counts, ctx->pool);
    }
    return run_told(told, jobs, &statement, ctx);
}

mc_error *
mc_jobs_present(mc_jobs *jobs, const mc_job_worker *worker, mc_ctx *ctx)
{
    jobs_statement statement = { .sql = present_sql };
    apr_array_header_t *rows;
    jobs_bind(&statement, worker->name);
    jobs_bind_number(&statement, worker->threads, ctx->pool);
    jobs_bind_number(&statement, worker->job, ctx->pool);
    jobs_bind_real(&statement, worker->rate, ctx->pool);
    jobs_bind_number(&statement, worker->tiles, ctx->pool);
    return jobs_run(&rows, jobs, &statement, ctx, ctx->pool);
}

mc_error *
mc_jobs_leave(mc_jobs *jobs, const char *worker, mc_ctx *ctx)
{
    jobs_statement statement = { .sql = "DELETE FROM @mapcache_job_workers WHERE name = $1::text" };
    apr_array_header_t *rows;
    jobs_bind(&statement, worker);
    return jobs_run(&rows, jobs, &statement, ctx, ctx->pool);
}

int
mc_jobs_lease_time(const mc_jobs *jobs)
{
    return jobs->lease;
}
