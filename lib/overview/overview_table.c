/* Building and dropping the overviews of a table: its lock, one transaction, the change log. */
#include <apr_strings.h>
#include <inttypes.h>
#include <string.h>

#include "overview/overview_table.h"
#include "overview/overview_tiles.h"
#include "text/text.h"

#define LOCK_KEYS "hashtext('mapcache overviews'), (%s::oid::int8 - 2147483648)::int4"

/* The schema and its tables; one builder at a time makes them. */
mc_error *
mc_overview_make_schema(const mc_overview_table *table)
{
    static const char *const statements[] = {
        "BEGIN",
        "SELECT pg_advisory_xact_lock(hashtext('mapcache overviews'))",
        "SET LOCAL client_min_messages = warning",
        MC_LEVELS_CREATE_SCHEMA,
        MC_LEVELS_CREATE_TABLE,
        MC_LEVELS_ADD_COLUMNS,
        MC_LEVELS_CREATE_GONE,
        MC_LEVELS_CREATE_NUMBERS,
        MC_LEVELS_CREATE_TAKE,
        MC_LEVELS_CREATE_FEATURES,
        "GRANT USAGE ON SCHEMA " MC_LEVELS_SCHEMA " TO PUBLIC",
        "GRANT SELECT ON " MC_LEVELS_SCHEMA ".levels TO PUBLIC",
        "COMMIT",
    };
    const char **values;
    MC_TRY(mc_overview_ask(&values, 1, table,
                           "SELECT 1 FROM pg_attribute WHERE attrelid = to_regclass('" MC_LEVELS_SCHEMA
                           ".levels') AND attname = 'build_seconds' AND to_regclass('" MC_LEVELS_SCHEMA
                           ".gone') IS NOT NULL"));
    if (values != NULL)
        return MC_OK;
    for (size_t i = 0; i < sizeof(statements) / sizeof(statements[0]); i++)
        MC_TRY(mc_overview_run(table, statements[i]));
    return MC_OK;
}

/* Of two builders of a table the second one is told who the first is. The lock is the session's. */
mc_error *
mc_overview_lock_table(mc_overview_table *table)
{
    const char **values, *relation;
    MC_TRY(mc_overview_ask(
        &values, 1, table,
        apr_pstrcat(table->job.pool, "SELECT to_regclass(",
                    mc_overview_quote(mc_sql_table(table->config.table, table->job.pool), table->job.pool),
                    ")::oid::text", NULL)));
    if (values == NULL || values[0] == NULL)
        return mc_error_create(table->job.pool, MC_ERR_CONFIG, "the database has no table \"%s\"", table->config.table);
    table->relation = relation = values[0];
    MC_TRY(
        mc_overview_ask(&values, 1, table,
                        apr_psprintf(table->job.pool, "SELECT pg_try_advisory_lock(" LOCK_KEYS ")::text", relation)));
    if (values != NULL && strcmp(values[0], "true") == 0)
        return MC_OK;
    MC_TRY(mc_overview_ask(
        &values, 1, table,
        apr_psprintf(
            table->job.pool,
            "SELECT 'process ' || l.pid || coalesce(', ' || a.usename, '') || coalesce(' from ' || "
            "host(a.client_addr), '') || coalesce(', since ' || to_char(a.backend_start, "
            "'YYYY-MM-DD HH24:MI:SS'), '') FROM pg_locks l LEFT JOIN pg_stat_activity a ON a.pid = l.pid "
            "WHERE l.locktype = 'advisory' AND l.granted AND l.objid::int8 = (%s::oid::int8 - 2147483648)::int4::int8 "
            "& 4294967295 AND l.classid::int8 = hashtext('mapcache overviews')::int8 & 4294967295 LIMIT 1",
            relation)));
    return mc_error_create(table->job.pool, MC_ERR_UNAVAILABLE, "somebody else builds the overviews of \"%s\": %s",
                           table->config.table, values == NULL || values[0] == NULL ? "who has just ended" : values[0]);
}

/* Drops the tables of levels that no row names any more. A map may be reading one: the next builder drops that. */
static mc_error *
drop_unnamed(const mc_overview_table *table)
{
    const char **values;
    MC_TRY(mc_overview_run(table, "SET lock_timeout = '5s'"));
    for (;;) {
        MC_TRY(mc_overview_ask(
            &values, 1, table,
            "SELECT quote_ident(c.relname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
            "WHERE n.nspname = '" MC_LEVELS_SCHEMA "' AND c.relkind = 'r' AND c.relname ~ '^level_[0-9]+$' "
            "AND pg_has_role(c.relowner, 'USAGE') AND NOT EXISTS (SELECT FROM " MC_LEVELS_SCHEMA
            ".levels l WHERE l.name = c.relname) LIMIT 1"));
        if (values == NULL)
            return MC_OK;
        MC_TRY(mc_overview_run(
            table, apr_pstrcat(table->job.pool, "DROP TABLE IF EXISTS " MC_LEVELS_SCHEMA ".", values[0], NULL)));
    }
}

void
mc_overview_name_reader(mc_overview_table *table)
{
    table->reader =
        apr_psprintf(table->job.pool, MC_OVERVIEW_READER "%s for %016" PRIx64, table->relation, table->job.digest);
}

/*
 * From now on the change log keeps what changes. Before the snapshot is taken, and committed: other readers would have
 * what changes during the build removed. Older levels keep their place in the log until the new ones are there.
 */
static mc_error *
join_readers(mc_overview_table *table)
{
    const char **found;
    if (table->job.options->is_static)
        return MC_OK;
    MC_TRY(mc_overview_ask(&found, 1, table, "SELECT to_regclass('mapcache_changes.readers')::text"));
    if (found == NULL || found[0] == NULL)
        return MC_OK; /* the table is refused later, with the reason */
    mc_overview_name_reader(table);
    return mc_overview_run(
        table,
        apr_psprintf(table->job.pool,
                     "INSERT INTO mapcache_changes.readers (name, applied) VALUES (%s, pg_current_snapshot()) ON "
                     "CONFLICT (name) DO UPDATE SET at = clock_timestamp()",
                     mc_overview_quote(table->reader, table->job.pool)));
}

/* The levels know all that the snapshot sees. */
mc_error *
mc_overview_move_reader(const mc_overview_table *table)
{
    if (table->reader == NULL)
        return MC_OK;
    return mc_overview_run(table, apr_psprintf(table->job.pool,
                                               "UPDATE mapcache_changes.readers SET applied = %s, at = "
                                               "clock_timestamp() WHERE name = %s",
                                               mc_overview_quote(table->applied, table->job.pool),
                                               mc_overview_quote(table->reader, table->job.pool)));
}

const char *
mc_overview_levels_sql(const mc_overview_table *table)
{
    apr_pool_t *pool = table->job.pool;
    return apr_psprintf(pool, "l.relation = %s AND l.geometry = %s AND l.style = '%" APR_INT64_T_FMT "'::int8",
                        table->relation, mc_overview_quote(table->column.name, pool), (apr_int64_t)table->job.digest);
}

/* How long all this took: an update builds levels anew by itself only where that is short. */
static mc_error *
note_build_time(const mc_overview_table *table)
{
    return mc_overview_run(
        table,
        apr_psprintf(table->job.pool,
                     "UPDATE " MC_LEVELS_SCHEMA
                     ".levels l SET build_seconds = extract(epoch FROM clock_timestamp() - transaction_timestamp()) "
                     "WHERE %s",
                     mc_overview_levels_sql(table)));
}

/* One transaction, which reads one snapshot and makes all levels. */
static mc_error *
build_in_transaction(mc_overview_table *table)
{
    MC_TRY(join_readers(table));
    MC_TRY(mc_overview_run(table, "BEGIN ISOLATION LEVEL REPEATABLE READ"));
    MC_TRY(mc_overview_run(table, "SET LOCAL lock_timeout = '60s'"));
    MC_TRY(mc_overview_run(table, "SET LOCAL client_min_messages = warning"));
    MC_TRY(mc_overview_ask_facts(table));
    MC_TRY(mc_overview_find_bounds(table));
    MC_TRY(mc_overview_run(
        table, apr_psprintf(table->job.pool,
                            "DELETE FROM " MC_LEVELS_SCHEMA
                            ".levels l WHERE (l.relation = %s OR (l.source = %s AND NOT EXISTS (SELECT FROM pg_class c "
                            "WHERE c.oid = l.relation))) AND geometry = %s AND style = '%" APR_INT64_T_FMT "'::int8",
                            table->relation,
                            mc_overview_quote(mc_sql_table(table->config.table, table->job.pool), table->job.pool),
                            mc_overview_quote(table->column.name, table->job.pool), (apr_int64_t)table->job.digest)));
    MC_TRY(mc_overview_move_reader(table));
    MC_TRY(table->job.tiles != NULL ? mc_overview_build_tile_levels(&table->job)
                                    : mc_overview_build_levels(&table->job));
    MC_TRY(note_build_time(table));
    return mc_overview_run(table, "COMMIT");
}

mc_error *
mc_overview_build_table(mc_overview_table *table, const mc_tileset *tileset)
{
    MC_TRY(mc_postgis_find_column(&table->column, &table->config, table->job.ctx, table->job.pool));
    table->job.srid = table->column.srid;
    MC_TRY(mc_overview_set_rules(&table->job, tileset));
    MC_TRY(mc_overview_lock_table(table));
    return mc_overview_build_anew(table);
}

mc_error *
mc_overview_build_anew(mc_overview_table *table)
{
    MC_TRY(mc_overview_make_schema(table));
    MC_TRY(build_in_transaction(table));
    if (table->job.levels == 0)
        mc_overview_tell(&table->job, false, "no level is worth its room: maps read the table");
    mc_error *error = drop_unnamed(table);
    if (error != MC_OK)
        mc_overview_tell(&table->job, false, "old levels could not be dropped; the next builder will: %s",
                         mc_error_chain(error, table->job.pool));
    return MC_OK;
}

mc_error *
mc_overview_find_schema(bool *has, const mc_overview_table *table)
{
    const char **values;
    MC_TRY(mc_overview_ask(&values, 1, table, "SELECT to_regclass('" MC_LEVELS_SCHEMA ".levels')::text"));
    *has = values != NULL && values[0] != NULL;
    return MC_OK;
}

/* Readers of the change log that no level names go with the levels. */
mc_error *
mc_overview_drop_table(mc_overview_table *table, const mc_tileset *tileset)
{
    const char **values;
    bool has;
    (void)tileset;
    MC_TRY(mc_overview_find_schema(&has, table));
    if (!has) {
        mc_overview_tell(&table->job, false, "there are no overviews");
        return MC_OK;
    }
    const char *name = mc_overview_quote(mc_sql_table(table->config.table, table->job.pool), table->job.pool);
    MC_TRY(
        mc_overview_ask(&values, 2, table, "SELECT coalesce(to_regclass('mapcache_changes.readers')::text, ''), ''"));
    bool has_readers = *values[0] != '\0';
    if (has_readers) /* also that of a builder that was killed */
        MC_TRY(mc_overview_run(
            table,
            apr_psprintf(table->job.pool,
                         "DELETE FROM mapcache_changes.readers r USING (SELECT to_regclass(%s)::oid AS relation UNION "
                         "SELECT l.relation FROM " MC_LEVELS_SCHEMA ".levels l WHERE l.source = %s) AS t WHERE "
                         "starts_with(r.name, '" MC_OVERVIEW_READER "' || t.relation || ' for ')",
                         name, name)));
    MC_TRY(mc_overview_ask(
        &values, 1, table,
        apr_psprintf(table->job.pool,
                     "WITH gone AS (DELETE FROM " MC_LEVELS_SCHEMA ".levels l WHERE l.relation = "
                     "to_regclass(%s)::oid OR l.source = %s RETURNING 1) SELECT count(*)::text FROM gone",
                     name, name)));
    MC_TRY(drop_unnamed(table));
    mc_overview_tell(&table->job, false, "%s levels dropped", values[0]);
    return MC_OK;
}
