/*
 * The queue's tables: made by whoever comes first, one at a time; their version is looked at once in a process. A later
 * version adds its statements to `steps`.
 */
#include <apr_strings.h>

#include "jobs/sql.h"
#include "text/text.h"

enum { VERSION = 2 };

/* What leads from version n to n + 1, as the body of a DO statement. */
static const char *const steps[VERSION] = {
    "CREATE TABLE @mapcache_jobs("
    " id int8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY,"
    " request text NOT NULL UNIQUE,"
    " state text NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'paused', 'cancelled', 'done')),"
    " priority int4 NOT NULL, attempts int4 NOT NULL,"
    " mode text NOT NULL CHECK (mode IN ('seed', 'reseed', 'delete', 'transfer')),"
    " tileset text NOT NULL, grid text NOT NULL, target text NOT NULL, dimensions text NOT NULL,"
    " older timestamptz, minzoom int4 NOT NULL, maxzoom int4 NOT NULL, extent text, area text NOT NULL, area_srs text "
    "NOT NULL,"
    " limits int4[] NOT NULL, metatile_columns int4 NOT NULL, metatile_rows int4 NOT NULL, side int4 NOT NULL,"
    " rate float8 NOT NULL, model text NOT NULL,"
    " units int8 NOT NULL, next_unit int8 NOT NULL DEFAULT 0,"
    " finished int8 NOT NULL DEFAULT 0, failed_units int8 NOT NULL DEFAULT 0,"
    " metatiles int8 NOT NULL, done int8 NOT NULL DEFAULT 0, skipped int8 NOT NULL DEFAULT 0,"
    " tiles int8 NOT NULL DEFAULT 0,"
    " created timestamptz NOT NULL DEFAULT clock_timestamp(), started timestamptz, ended timestamptz,"
    " owner text NOT NULL);"
    "CREATE INDEX ON @mapcache_jobs(priority DESC, id) WHERE state = 'open';"
    "CREATE TABLE @mapcache_job_units("
    " job int8 NOT NULL REFERENCES @mapcache_jobs(id) ON DELETE CASCADE, unit int8 NOT NULL,"
    " state text NOT NULL CHECK (state IN ('leased', 'returned', 'failed')),"
    " lease int8 NOT NULL, worker text NOT NULL, until timestamptz NOT NULL,"
    " attempt int4 NOT NULL DEFAULT 0, lost int4 NOT NULL DEFAULT 0,"
    " size int4 NOT NULL DEFAULT 0, position int4 NOT NULL DEFAULT 0, again int4[] NOT NULL DEFAULT '{}',"
    " done int8 NOT NULL DEFAULT 0, skipped int8 NOT NULL DEFAULT 0, tiles int8 NOT NULL DEFAULT 0,"
    " message text NOT NULL DEFAULT '',"
    " PRIMARY KEY (job, unit));"
    "CREATE INDEX ON @mapcache_job_units(job, until) WHERE state <> 'failed';"
    "CREATE TABLE @mapcache_job_workers("
    " name text PRIMARY KEY, threads int4 NOT NULL, job int8 NOT NULL, rate float8 NOT NULL, tiles int8 NOT NULL,"
    " started timestamptz NOT NULL DEFAULT clock_timestamp(), seen timestamptz NOT NULL);",
    "ALTER TABLE @mapcache_jobs ADD COLUMN unit_order text NOT NULL DEFAULT 'level'"
    " CHECK (unit_order IN ('level', 'hilbert'));",
};

static mc_error *
read_version(int *version, mc_jobs *jobs, mc_ctx *ctx)
{
    jobs_statement statement = { .sql = "SELECT version FROM @mapcache_jobs_schema" };
    apr_array_header_t *rows;
    *version = 0;
    MC_TRY(jobs_run(&rows, jobs, &statement, ctx, ctx->pool));
    if (rows->nelts > 0)
        *version = jobs_int(APR_ARRAY_IDX(rows, 0, jobs_row)[0]);
    return MC_OK;
}

/*
 * All steps that are missing, whole or not at all. Whoever came first holds a lock to the end of its transaction; the
 * version is looked at again behind it. The text is a literal of a DO statement, so that its quotes are doubled. A
 * schema that is there is not made again: IF NOT EXISTS would ask for the right to make schemas all the same.
 */
static mc_error *
upgrade_jobs_schema(mc_jobs *jobs, mc_ctx *ctx)
{
    apr_pool_t *pool = ctx->pool;
    const char *body = "DECLARE found int4 := 0; BEGIN PERFORM pg_advisory_xact_lock(hashtext('mapcache jobs'));";
    if (jobs->schema != NULL)
        body = apr_pstrcat(pool, body, "IF to_regnamespace('\"", jobs->schema, "\"') IS NULL THEN CREATE SCHEMA \"",
                           jobs->schema, "\"; END IF;", NULL);
    body = apr_pstrcat(pool, body,
                       "CREATE TABLE IF NOT EXISTS @mapcache_jobs_schema(version int4 NOT NULL);"
                       "SELECT coalesce(max(version), 0) INTO found FROM @mapcache_jobs_schema;",
                       NULL);
    for (int i = 0; i < VERSION; i++)
        body = apr_psprintf(pool, "%s IF found <= %d THEN %s END IF;", body, i, steps[i]);
    body = apr_psprintf(pool,
                        "%s IF found = 0 THEN INSERT INTO @mapcache_jobs_schema VALUES (%d);"
                        " ELSIF found < %d THEN UPDATE @mapcache_jobs_schema SET version = %d; END IF; END",
                        body, VERSION, VERSION, VERSION);
    body = mc_replace_all(body, "@", jobs->prefix, pool);
    jobs_statement statement = { .sql = apr_pstrcat(pool, "DO '", mc_replace_all(body, "'", "''", pool), "'", NULL) };
    apr_array_header_t *rows;
    return jobs_run(&rows, jobs, &statement, ctx, pool);
}

mc_error *
jobs_prepare(mc_jobs *jobs, mc_ctx *ctx)
{
    int version;
    if (atomic_load_explicit(&jobs->ready, memory_order_acquire))
        return MC_OK;
    MC_TRY(read_version(&version, jobs, ctx));
    if (version < VERSION) {
        MC_TRY(upgrade_jobs_schema(jobs, ctx));
        MC_TRY(read_version(&version, jobs, ctx));
    }
    if (version != VERSION)
        return mc_error_create(ctx->pool, MC_ERR_CONFIG,
                               "the job queue's tables are of version %d, and this program works with version %d",
                               version, VERSION);
    atomic_store_explicit(&jobs->ready, true, memory_order_release);
    return MC_OK;
}
