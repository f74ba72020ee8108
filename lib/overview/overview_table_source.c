/* A table as the source of overviews: its facts and its rows. */
#include <apr_strings.h>
#include <math.h>
#include <string.h>

#include "overview/overview_table.h"
#include "text/text.h"

/* Rows of a table that tell where nearly all rows lie, about; and the part of them on both sides that does not. */
#define CROWD_SAMPLE 30000.0
#define CROWD_ENDS "[0.01, 0.99]"
/* All geometry has so many times the area of where nearly all rows lie, or the rows that lie elsewhere do not matter;
 * and the part of all rows that these are, at most. */
#define VOID_TIMES 4.0
#define OUTLIERS_MOST 0.001

/* What the database says of the table; what is asked for in this order. */
static const char facts_sql[] =
    "SELECT c.oid::text, c.relkind::text, (c.relhassubclass OR c.relpersistence = 't')::text, c.relrowsecurity::text, "
    "current_setting('server_version_num'), " MC_LEVELS_COLUMNS(
        "c.oid") ", pg_relation_filenode(c.oid)::text, "
                 "pg_current_snapshot()::text, pg_postmaster_start_time()::text, "
                 "(to_regclass('mapcache_changes.log') IS NOT NULL)::text, " MC_LEVELS_TRIGGERS(
                     "c.oid") ", current_setting('block_size'), "
                              "(pg_relation_size(c.oid) / current_setting('block_size')::int8)::text, "
                              "pg_table_size(c.oid)::text, pg_total_relation_size(c.oid)::text, "
                              "postgis_typmod_type(a.atttypmod) FROM pg_class c JOIN pg_attribute a ON a.attrelid = "
                              "c.oid "
                              "WHERE c.oid = to_regclass(%s) AND a.attname = %s";
enum {
    FACT_OID,
    FACT_KIND,
    FACT_PARTED,
    FACT_GUARDED,
    FACT_VERSION,
    FACT_COLUMNS,
    FACT_FILENODE,
    FACT_SNAPSHOT,
    FACT_STARTED,
    FACT_LOG,
    FACT_TRIGGERS,
    FACT_BLOCK_SIZE,
    FACT_PAGES,
    FACT_BYTES,
    FACT_ALL_BYTES,
    FACT_TYPE,
    FACTS
};

static bool
is_true(const char *fact)
{
    return fact != NULL && strcmp(fact, "true") == 0;
}

/* Why the table cannot have overviews; NULL: it can. */
static const char *
table_refusal(const mc_overview_table *table, const char *const *facts)
{
    const mc_overview_job *job = &table->job;
    int version = 0;
    if (*facts[FACT_KIND] != 'r' && *facts[FACT_KIND] != 'm')
        return "it is no table and no materialized view";
    if (is_true(facts[FACT_PARTED]))
        return "it is temporary, or has partitions or children";
    if (is_true(facts[FACT_GUARDED]))
        return "it has row level security, which overviews would not keep";
    if (!mc_parse_int(&version, facts[FACT_VERSION], 0, 999999) || version < 140000)
        return "overviews need PostgreSQL 14";
    if (table->column.geography)
        return "its column is a geography";
    if (table->column.srid == 0)
        return "its geometry has no SRID";
    if (job->digest == 0)
        return "what it shows is not known by a digest";
    for (int i = 0; i < job->attribute_count; i++)
        if (strcmp(job->attributes[i], table->column.name) == 0)
            return "its style takes the geometry for an attribute";
    if (!table->job.options->is_static && !is_true(facts[FACT_LOG]))
        return "nothing logs its changes: see mapcache invalidate --sql; if it never changes, say --static";
    if (!table->job.options->is_static && facts[FACT_TRIGGERS] == NULL)
        return "it has no triggers of the change log: see mapcache invalidate --sql; if it never changes, say --static";
    return NULL;
}

/* Four sides and a number of the only row that the statement has. *found false: not all of them are numbers. */
static mc_error *
ask_extent(bool *found, mc_extent *extent, double *number, const mc_overview_table *table, const char *sql)
{
    const char **values;
    MC_TRY(mc_overview_ask(&values, 5, table, sql));
    *found = values != NULL && values[0] != NULL && mc_parse_double(&extent->minx, values[0]) &&
             mc_parse_double(&extent->miny, values[1]) && mc_parse_double(&extent->maxx, values[2]) &&
             mc_parse_double(&extent->maxy, values[3]) && mc_parse_double(number, values[4]);
    return MC_OK;
}

#define BOX_AND_NUMBER "SELECT ST_XMin(b)::text, ST_YMin(b)::text, ST_XMax(b)::text, ST_YMax(b)::text, n::text FROM "

/* *found false: of all rows together they are no bounds of numbers. */
static mc_error *
ask_bounds(bool *found, mc_overview_table *table, const char *condition)
{
    const char *name = mc_sql_name(table->column.name, table->job.pool);
    const char *sql =
        apr_pstrcat(table->job.pool, BOX_AND_NUMBER "(SELECT ST_Extent(", name, ")", condition,
                    " AS b, count(*) AS n FROM ", mc_sql_table(table->config.table, table->job.pool), ") AS e", NULL);
    return ask_extent(found, &table->job.extent, &table->job.rows, table, sql);
}

static double
area_of_extent(const mc_extent *extent)
{
    return (extent->maxx - extent->minx) * (extent->maxy - extent->miny);
}

/* Around the middle of nearly all rows, by a sample of the table's pages: as wide again on each side. */
static mc_error *
find_crowd(bool *found, mc_extent *crowd, const mc_overview_table *table)
{
    const char *name = mc_sql_name(table->column.name, table->job.pool);
    double number;
    const char *sql = apr_psprintf(
        table->job.pool,
        "SELECT x[1]::text, y[1]::text, x[2]::text, y[2]::text, '0' FROM (SELECT percentile_disc(ARRAY" CROWD_ENDS
        ") WITHIN GROUP (ORDER BY ST_XMin(%s)) AS x, percentile_disc(ARRAY" CROWD_ENDS
        ") WITHIN GROUP (ORDER BY ST_YMin(%s)) AS y FROM %s TABLESAMPLE SYSTEM (%s) "
        "REPEATABLE (1)) AS e",
        name, name, mc_sql_table(table->config.table, table->job.pool),
        mc_double_text('g', 6, fmin(100, 100 * CROWD_SAMPLE / table->job.rows), table->job.pool));
    MC_TRY(ask_extent(found, crowd, &number, table, sql));
    const double width = crowd->maxx - crowd->minx, height = crowd->maxy - crowd->miny;
    *found = *found && width > 0 && height > 0 && isfinite(width) && isfinite(height);
    *crowd = (mc_extent){ crowd->minx - width, crowd->miny - height, crowd->maxx + width, crowd->maxy + height };
    return MC_OK;
}

/* A few rows that are far from all others would have levels made for the void between them and these. Planes have no
 * room for such rows: they are in all levels, and hide nothing. */
static mc_error *
leave_out_outliers(mc_overview_table *table)
{
    mc_overview_job *job = &table->job;
    const char *name = mc_sql_name(table->column.name, job->pool);
    mc_extent crowd = { 0 }, bounds;
    double outside;
    bool found;
    job->bounds = job->extent;
    MC_TRY(find_crowd(&found, &crowd, table));
    if (!found || !(area_of_extent(&job->extent) > VOID_TIMES * area_of_extent(&crowd)))
        return MC_OK;
    const char *inside = apr_psprintf(
        job->pool, "%s @ ST_MakeEnvelope(%s, %s, %s, %s, ST_SRID(%s))", name,
        mc_double_text('g', 17, crowd.minx, job->pool), mc_double_text('g', 17, crowd.miny, job->pool),
        mc_double_text('g', 17, crowd.maxx, job->pool), mc_double_text('g', 17, crowd.maxy, job->pool), name);
    MC_TRY(ask_extent(&found, &bounds, &outside, table,
                      apr_pstrcat(job->pool, BOX_AND_NUMBER "(SELECT ST_Extent(", name, ") FILTER (WHERE ", inside,
                                  ") AS b, count(*) FILTER (WHERE NOT ", inside, " AND NOT ST_IsEmpty(", name,
                                  ")) AS n FROM ", mc_sql_table(table->config.table, job->pool), ") AS e", NULL)));
    if (found && outside <= OUTLIERS_MOST * job->rows)
        job->bounds = bounds;
    return MC_OK;
}

/* One row whose coordinates are infinite, or no numbers, would leave the others without bounds. No map shows it where
 * they are, so that bounds without it will do. */
mc_error *
mc_overview_find_bounds(mc_overview_table *table)
{
    const char *name = mc_sql_name(table->column.name, table->job.pool);
    bool found;
    MC_TRY(ask_bounds(&found, table, ""));
    if (!found)
        MC_TRY(ask_bounds(&found, table,
                          apr_psprintf(table->job.pool,
                                       " FILTER (WHERE ST_XMin(%s) > '-Infinity' AND ST_XMax(%s) < 'Infinity' AND "
                                       "ST_YMin(%s) > '-Infinity' AND ST_YMax(%s) < 'Infinity')",
                                       name, name, name, name)));
    return found ? leave_out_outliers(table) : mc_overview_refuse(&table->job, "it has no geometry");
}

/* A row of a page takes at least 28 bytes of it: 23 of its head, rounded up, and 4 of a pointer. */
static mc_error *
find_piece_ordinals(mc_overview_table *table, const char *block_size)
{
    int64_t bytes;
    if (!mc_parse_int64(&bytes, block_size, 1024, 65536))
        return mc_overview_refuse(&table->job, "the size of its pages is not known");
    table->job.piece_ordinals = bytes / 28 + 1;
    return MC_OK;
}

mc_error *
mc_overview_ask_facts(mc_overview_table *table)
{
    const char **facts;
    const char *name = mc_overview_quote(mc_sql_table(table->config.table, table->job.pool), table->job.pool);
    MC_TRY(mc_overview_ask(
        &facts, FACTS, table,
        apr_psprintf(table->job.pool, facts_sql, name, mc_overview_quote(table->column.name, table->job.pool))));
    if (facts == NULL)
        return mc_overview_refuse(&table->job, "there is no such table");
    const char *refusal = table_refusal(table, facts);
    if (refusal != NULL)
        return mc_overview_refuse(&table->job, refusal);
    table->relation = facts[FACT_OID];
    table->columns = facts[FACT_COLUMNS];
    table->filenode = facts[FACT_FILENODE];
    table->applied = facts[FACT_SNAPSHOT];
    table->started = facts[FACT_STARTED];
    table->triggers = table->job.options->is_static ? NULL : facts[FACT_TRIGGERS];
    table->job.points = strncmp(facts[FACT_TYPE], "Point", 5) == 0 || strncmp(facts[FACT_TYPE], "MultiPoint", 10) == 0;
    if (!mc_parse_int64(&table->job.pieces, facts[FACT_PAGES], 0, INT64_MAX) ||
        !mc_parse_double(&table->job.bytes, facts[FACT_BYTES]) ||
        !mc_parse_double(&table->job.all_bytes, facts[FACT_ALL_BYTES]))
        return mc_overview_refuse(&table->job, "its size is not known");
    return find_piece_ordinals(table, facts[FACT_BLOCK_SIZE]);
}

static mc_error *
draw_table(const mc_overview_job *job, const mc_feature_query *query, mc_feature_visitor *visit, void *baton,
           int64_t *skipped, apr_pool_t *pool)
{
    return mc_overview_draw_table((const mc_overview_table *)job, NULL, query, visit, baton, skipped, pool);
}

static mc_error *
read_table_pages(apr_array_header_t **rows, const mc_overview_job *job, int64_t from, int64_t to, apr_pool_t *pool)
{
    return mc_overview_read_rows(
        rows, (const mc_overview_table *)job,
        apr_psprintf(pool, "ctid >= '(%" APR_INT64_T_FMT ",0)'::tid AND ctid < '(%" APR_INT64_T_FMT ",0)'::tid",
                     (apr_int64_t)from, (apr_int64_t)to),
        pool);
}

const mc_overview_source_ops mc_overview_table_source = { .read = read_table_pages, .draw = draw_table };
