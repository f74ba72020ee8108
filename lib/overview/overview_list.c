/* Which levels a table has, and whether maps are read from them. */
#include "overview/overview_list.h"

#include <apr_strings.h>
#include <inttypes.h>
#include <string.h>

#include "text/text.h"

#define OTHER_STYLES "built for another style, for other vector tiles, or by another version of mapcache"

void
mc_overview_list_level(mc_overview_found *found, const mc_overview_job *job)
{
    const mc_grid *grid = job->grid;
    found->kind = job->kind;
    found->name = job->name;
    found->layer = job->layer->name;
    found->rows = job->rows;
    found->coarsest = found->finest = -1;
    for (int z = 0; found->number > 0 && z < grid->level_count; z++)
        if (grid->levels[z].resolution >= found->resolution * (1 - 1e-9) &&
            grid->levels[z].resolution < found->until * (1 - 1e-9)) {
            found->coarsest = found->coarsest < 0 ? z : found->coarsest;
            found->finest = z;
        }
    job->options->list(job->options->baton, found);
}

static void
list_no_level(const mc_overview_job *job, const char *fault, bool refused)
{
    mc_overview_found found = { .features = -1, .changes = -1, .fault = fault, .refused = refused };
    mc_overview_list_level(&found, job);
}

void
mc_overview_list_none(const mc_overview_job *job)
{
    list_no_level(job, "there are no overviews: maps read all of it", false);
}

void
mc_overview_list_others(const mc_overview_job *job, int levels, int64_t bytes)
{
    mc_overview_found found = {
        .levels = levels, .bytes = bytes, .features = -1, .changes = -1, .fault = OTHER_STYLES
    };
    if (levels > 0)
        mc_overview_list_level(&found, job);
}

mc_error *
mc_overview_list_refused(mc_error *error, const mc_overview_job *job)
{
    if (error == MC_OK ||
        (error->kind != MC_ERR_CONFIG && error->kind != MC_ERR_CORRUPT && error->kind != MC_ERR_FORBIDDEN))
        return error;
    list_no_level(job, error->message, error->kind == MC_ERR_CONFIG);
    return MC_OK;
}

/* ---- Of a table ---- */

enum { OWN, RESOLUTION, UNTIL, FEATURES, BYTES, BUILT, CHANGES, FAULT, COLUMNS };

/* `logs`: the database has a change log. What the first maps ask (vector/postgis/postgis_levels.c), of all levels. */
static const char *
list_sql(const mc_overview_table *table, bool logs)
{
    apr_pool_t *pool = table->job.pool;
    const char *source = mc_overview_quote(mc_sql_table(table->config.table, pool), pool);
    const char *own =
        apr_psprintf(pool, "(l.style = '%" PRId64 "'::int8 AND l.format = %d AND l.geometry = %s)",
                     (int64_t)table->job.digest, MC_LEVELS_FORMAT, mc_overview_quote(table->column.name, pool));
    return apr_pstrcat(
        pool, "SELECT ", own, "::text, l.resolution::text, l.until::text, l.rows::text, ",
        "coalesce(pg_total_relation_size(t.oid), 0)::text, ",
        "to_char(l.built AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"'), ",
        logs ? "CASE WHEN l.reader IS NOT NULL THEN (SELECT count(*) FROM " MC_LEVELS_UNKNOWN_CHANGES ")::text END, "
             : "NULL, ",
        apr_psprintf(pool, "CASE WHEN l.srid <> %d THEN 'they have another SRID' ", table->column.srid),
        apr_psprintf(pool, MC_LEVELS_UNFIT("%s"), source), "WHEN l.reader IS NULL THEN '' ",
        logs ? MC_LEVELS_UNLOGGED : "WHEN true THEN 'the change log is gone' ", "ELSE '' END FROM ", MC_LEVELS_SCHEMA,
        ".levels l LEFT JOIN pg_class t ON t.relname = l.name AND t.relnamespace = '" MC_LEVELS_SCHEMA
        "'::regnamespace WHERE l.relation = to_regclass(",
        source, ")::oid OR l.source = ", source, " ORDER BY l.resolution", NULL);
}

/* Levels of other styles are counted, and told of together. */
typedef struct table_listing {
    int own, others;
    int64_t other_bytes;
} table_listing;

static void
list_table_level(table_listing *listing, const mc_overview_table *table, const mc_postgres_field *fields)
{
    mc_overview_found found = { .levels = 1, .number = listing->own + 1, .built = fields[BUILT].data, .changes = -1 };
    const bool numbers =
        mc_parse_double(&found.resolution, fields[RESOLUTION].data) &&
        mc_parse_double(&found.until, fields[UNTIL].data) &&
        mc_parse_int64(&found.features, fields[FEATURES].data, 0, INT64_MAX) &&
        mc_parse_int64(&found.bytes, fields[BYTES].data, 0, INT64_MAX) &&
        (fields[CHANGES].size < 0 || mc_parse_int64(&found.changes, fields[CHANGES].data, 0, INT64_MAX));
    if (!numbers || strcmp(fields[OWN].data, "true") != 0) {
        listing->others++;
        listing->other_bytes += found.bytes;
        return;
    }
    listing->own++;
    found.fault = fields[FAULT].size > 0 ? fields[FAULT].data : NULL;
    mc_overview_list_level(&found, &table->job);
}

static mc_error *
list_levels_of_table(table_listing *listing, const mc_overview_table *table, bool logs)
{
    const mc_overview_job *job = &table->job;
    const mc_postgres_query query = { .session = table->session, .sql = list_sql(table, logs) };
    mc_postgres_result *result = NULL;
    const mc_postgres_row *row;
    mc_error *error = mc_postgres_start(&result, job->ctx->process->postgres, &query, job->ctx, job->pool);
    while (error == MC_OK && (error = mc_postgres_next(&row, result)) == MC_OK && row != NULL)
        if (row->columns == COLUMNS)
            list_table_level(listing, table, row->fields);
    mc_postgres_end(result);
    return error;
}

static mc_error *
list_table(mc_overview_table *table, const mc_tileset *tileset)
{
    const char **values;
    bool has;
    table_listing listing = { 0 };
    MC_TRY(mc_postgis_find_column(&table->column, &table->config, table->job.ctx, table->job.pool));
    table->job.srid = table->column.srid;
    MC_TRY(mc_overview_set_rules(&table->job, tileset));
    MC_TRY(mc_overview_find_schema(&has, table));
    MC_TRY(mc_overview_ask(
        &values, 2, table,
        apr_psprintf(table->job.pool,
                     "SELECT coalesce(to_regclass('mapcache_changes.readers')::text, ''), "
                     "coalesce((SELECT reltuples FROM pg_class WHERE oid = to_regclass(%s)), -1)",
                     mc_overview_quote(mc_sql_table(table->config.table, table->job.pool), table->job.pool))));
    if (values == NULL || !mc_parse_double(&table->job.rows, values[1]))
        table->job.rows = -1;
    if (has)
        MC_TRY(list_levels_of_table(&listing, table, values != NULL && *values[0] != '\0'));
    if (listing.own == 0)
        mc_overview_list_none(&table->job);
    mc_overview_list_others(&table->job, listing.others, listing.other_bytes);
    return MC_OK;
}

mc_error *
mc_overview_list_table(mc_overview_table *table, const mc_tileset *tileset)
{
    return mc_overview_list_refused(list_table(table, tileset), &table->job);
}
