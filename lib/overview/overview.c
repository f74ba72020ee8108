/* See overview.h. */
#include "overview/overview.h"

#include <apr_strings.h>
#include <string.h>

#include "overview/overview_private.h"
#include "text/text.h"

#define LOCK_KEYS "hashtext('mapcache overviews'), (%s::oid::int8 - 2147483648)::int4"

/* The schema and its tables; one builder at a time makes them. */
static mc_error *
make_schema(const mc_overview_job *job)
{
    static const char *const statements[] = {
        "BEGIN",
        "SELECT pg_advisory_xact_lock(hashtext('mapcache overviews'))",
        "SET LOCAL client_min_messages = warning",
        MC_LEVELS_CREATE_SCHEMA,
        MC_LEVELS_CREATE_TABLE,
        MC_LEVELS_CREATE_NUMBERS,
        MC_LEVELS_CREATE_TAKE,
        MC_LEVELS_CREATE_FEATURES,
        "GRANT USAGE ON SCHEMA " MC_LEVELS_SCHEMA " TO PUBLIC",
        "GRANT SELECT ON " MC_LEVELS_SCHEMA ".levels TO PUBLIC",
        "COMMIT",
    };
    const char **values;
    MC_TRY(mc_overview_ask(&values, 1, job, "SELECT to_regclass('" MC_LEVELS_SCHEMA ".levels')::text"));
    if (values != NULL && values[0] != NULL)
        return MC_OK;
    for (size_t i = 0; i < sizeof(statements) / sizeof(statements[0]); i++)
        MC_TRY(mc_overview_run(job, statements[i]));
    return MC_OK;
}

/* Of two builders of a table the second one is told who the first is. The lock is the session's. */
static mc_error *
lock_table(mc_overview_job *job)
{
    const char **values, *relation;
    MC_TRY(mc_overview_ask(&values, 1, job,
                           apr_pstrcat(job->pool, "SELECT to_regclass(",
                                       mc_overview_quote(mc_sql_table(job->config.table, job->pool), job->pool),
                                       ")::oid::text", NULL)));
    if (values == NULL || values[0] == NULL)
        return mc_error_create(job->pool, MC_ERR_CONFIG, "the database has no table \"%s\"", job->config.table);
    job->relation = relation = values[0];
    MC_TRY(mc_overview_ask(&values, 1, job,
                           apr_psprintf(job->pool, "SELECT pg_try_advisory_lock(" LOCK_KEYS ")::text", relation)));
    if (values != NULL && strcmp(values[0], "true") == 0)
        return MC_OK;
    MC_TRY(mc_overview_ask(
        &values, 1, job,
        apr_psprintf(
            job->pool,
            "SELECT 'process ' || l.pid || coalesce(', ' || a.usename, '') || coalesce(' from ' || "
            "host(a.client_addr), '') || coalesce(', since ' || to_char(a.backend_start, "
            "'YYYY-MM-DD HH24:MI:SS'), '') FROM pg_locks l LEFT JOIN pg_stat_activity a ON a.pid = l.pid "
            "WHERE l.locktype = 'advisory' AND l.granted AND l.objid::int8 = (%s::oid::int8 - 2147483648)::int4::int8 "
            "& 4294967295 AND l.classid::int8 = hashtext('mapcache overviews')::int8 & 4294967295 LIMIT 1",
            relation)));
    return mc_error_create(job->pool, MC_ERR_UNAVAILABLE, "somebody else builds the overviews of \"%s\": %s",
                           job->config.table, values == NULL || values[0] == NULL ? "who has just ended" : values[0]);
}

/* Drops the tables of levels that no row names any more. A map may be reading one: the next builder drops that. */
static mc_error *
drop_unnamed(const mc_overview_job *job)
{
    const char **values;
    MC_TRY(mc_overview_run(job, "SET lock_timeout = '5s'"));
    for (;;) {
        MC_TRY(mc_overview_ask(
            &values, 1, job,
            "SELECT quote_ident(c.relname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
            "WHERE n.nspname = '" MC_LEVELS_SCHEMA "' AND c.relkind = 'r' AND c.relname ~ '^level_[0-9]+$' "
            "AND pg_has_role(c.relowner, 'USAGE') AND NOT EXISTS (SELECT FROM " MC_LEVELS_SCHEMA
            ".levels l WHERE l.name = c.relname) LIMIT 1"));
        if (values == NULL)
            return MC_OK;
        MC_TRY(mc_overview_run(job,
                               apr_pstrcat(job->pool, "DROP TABLE IF EXISTS " MC_LEVELS_SCHEMA ".", values[0], NULL)));
    }
}

static mc_error *
build_job(mc_overview_job *job, const mc_tileset *tileset)
{
    MC_TRY(make_schema(job));
    MC_TRY(lock_table(job));
    MC_TRY(mc_overview_build_table(job, tileset));
    if (job->levels == 0)
        mc_overview_tell(job, false, "no level is worth its room: maps read the table");
    mc_error *error = drop_unnamed(job);
    if (error != MC_OK)
        mc_overview_tell(job, false, "old levels could not be dropped; the next builder will: %s",
                         mc_error_chain(error, job->pool));
    return MC_OK;
}

/* Readers of the change log that no level names go with the levels. */
static mc_error *
drop_job(mc_overview_job *job, const mc_tileset *tileset)
{
    const char **values;
    (void)tileset;
    MC_TRY(mc_overview_ask(&values, 1, job, "SELECT to_regclass('" MC_LEVELS_SCHEMA ".levels')::text"));
    if (values == NULL || values[0] == NULL) {
        mc_overview_tell(job, false, "there are no overviews");
        return MC_OK;
    }
    const char *table = mc_overview_quote(mc_sql_table(job->config.table, job->pool), job->pool);
    MC_TRY(mc_overview_ask(&values, 2, job, "SELECT coalesce(to_regclass('mapcache_changes.readers')::text, ''), ''"));
    bool has_readers = *values[0] != '\0';
    if (has_readers) /* also that of a builder that was killed */
        MC_TRY(mc_overview_run(
            job,
            apr_psprintf(job->pool,
                         "DELETE FROM mapcache_changes.readers r USING (SELECT to_regclass(%s)::oid AS relation UNION "
                         "SELECT l.relation FROM " MC_LEVELS_SCHEMA ".levels l WHERE l.source = %s) AS t WHERE "
                         "starts_with(r.name, '" MC_OVERVIEW_READER "' || t.relation || ' for ')",
                         table, table)));
    MC_TRY(mc_overview_ask(
        &values, 1, job,
        apr_psprintf(job->pool,
                     "WITH gone AS (DELETE FROM " MC_LEVELS_SCHEMA ".levels l WHERE l.relation = "
                     "to_regclass(%s)::oid OR l.source = %s RETURNING 1) SELECT count(*)::text FROM gone",
                     table, table)));
    MC_TRY(drop_unnamed(job));
    mc_overview_tell(job, false, "%s levels dropped", values[0]);
    return MC_OK;
}

typedef mc_error *overview_task(mc_overview_job *job, const mc_tileset *tileset);

static mc_error *
run_job(const mc_vector_layer *layer, const mc_postgis_config *config, overview_task *task, const mc_tileset *tileset,
        const mc_overview_options *options, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_overview_job job = { .layer = layer, .config = *config, .options = options, .ctx = ctx, .pool = pool };
    if (options->connection != NULL)
        job.config.connection = options->connection;
    MC_TRY(mc_postgres_session_open(&job.session, ctx->process->postgres, job.config.connection, ctx, pool));
    mc_error *error = task == build_job ? mc_postgis_find_column(&job.column, &job.config, ctx, pool) : MC_OK;
    if (error == MC_OK)
        error = task(&job, tileset);
    mc_postgres_session_close(job.session);
    return error;
}

/* Each table of the tileset's layers. */
static mc_error *
for_each_table(overview_task *task, const mc_tileset *tileset, const mc_overview_options *options, mc_ctx *ctx,
               apr_pool_t *pool)
{
    const mc_source *source = tileset->source;
    const mc_vector_source *vector = (const mc_vector_source *)source;
    int tables = 0;
    for (int i = 0; source != NULL && source->ops->render == mc_vector_render && i < vector->layer_count; i++) {
        const mc_postgis_config *config = mc_postgis_config_of(vector->layers[i]->data);
        if (config == NULL || config->table == NULL)
            continue;
        tables++;
        MC_TRY(run_job(vector->layers[i], config, task, tileset, options, ctx, pool));
    }
    if (tables == 0)
        return mc_error_create(pool, MC_ERR_CONFIG, "tileset \"%s\" shows no table of PostGIS", tileset->name);
    return MC_OK;
}

mc_error *
mc_overview_build(const mc_tileset *tileset, const mc_overview_options *options, mc_ctx *ctx, apr_pool_t *pool)
{
    return for_each_table(build_job, tileset, options, ctx, pool);
}

mc_error *
mc_overview_drop(const mc_tileset *tileset, const mc_overview_options *options, mc_ctx *ctx, apr_pool_t *pool)
{
    return for_each_table(drop_job, tileset, options, ctx, pool);
}
