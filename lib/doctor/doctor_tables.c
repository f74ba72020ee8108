/* Checks of the tables that maps show. No table is read from end to end: rows and blocks are PostgreSQL's estimates. */
#include <apr_strings.h>
#include <math.h>
#include <string.h>

#include "doctor/doctor_private.h"
#include "text/text.h"

enum { SAMPLES = 6, SAMPLE_ROWS = 500, MOST_SAMPLE_ROWS = 5000, FEWEST_ROWS = 20 };

#define BLOCK_BYTES 8192.0

/* All spatial columns of a table; an index counts that has the column first and all rows in it. */
static const char table_sql[] =
    "SELECT n.nspname, c.relname, c.relkind::text, c.reltuples::float8, (pg_relation_size(c.oid) / 8192)::float8, "
    "a.attname,"
    " (t.typname = 'geography')::int,"
    " (SELECT i.relname FROM pg_catalog.pg_index x JOIN pg_catalog.pg_class i ON i.oid = x.indexrelid"
    "  JOIN pg_catalog.pg_am m ON m.oid = i.relam WHERE x.indrelid = c.oid AND x.indisvalid AND x.indpred IS NULL"
    "  AND m.amname IN ('gist', 'spgist', 'brin') AND x.indkey[0] = a.attnum ORDER BY m.amname = 'brin', i.relname "
    "LIMIT 1),"
    " s.n_live_tup::float8, s.n_dead_tup::float8, s.n_mod_since_analyze::float8,"
    " has_column_privilege(c.oid, a.attnum, 'SELECT')::int,"
    " EXISTS (SELECT FROM pg_catalog.pg_stats p WHERE p.schemaname = n.nspname AND p.tablename = c.relname"
    "  AND p.attname = a.attname)::int,"
    " pg_total_relation_size(c.oid)::float8"
    " FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"
    " JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped"
    " JOIN pg_catalog.pg_type t ON t.oid = a.atttypid AND t.typname IN ('geometry', 'geography')"
    " LEFT JOIN pg_catalog.pg_stat_all_tables s ON s.relid = c.oid"
    " WHERE c.oid = to_regclass($1) ORDER BY a.attnum";

static double
cell_number(const char *text)
{
    double value;
    return text != NULL && mc_parse_double(&value, text) ? value : 0;
}

static void
take_table_row(mc_doctor_table *table, const char *const *row)
{
    table->schema = row[0];
    table->name = row[1];
    table->kind = row[2];
    table->rows = cell_number(row[3]);
    table->blocks = cell_number(row[4]);
    table->column = row[5];
    table->geography = cell_number(row[6]) > 0;
    table->index = row[7];
    table->live = cell_number(row[8]);
    table->dead = cell_number(row[9]);
    table->modified = cell_number(row[10]);
    table->readable = cell_number(row[11]) > 0;
    table->has_statistics = cell_number(row[12]) > 0;
}

/* One table becomes an entry for each of its spatial columns; views, and what cannot be found, none. */
static void
read_table(apr_array_header_t *tables, mc_doctor_database *database, const char *shown, mc_doctor *doctor)
{
    const char *name = mc_sql_table(shown, doctor->pool);
    apr_array_header_t *rows;
    mc_error *error = mc_doctor_ask(&rows, database, table_sql, &name, 1, doctor);
    if (error != MC_OK) {
        mc_doctor_miss(doctor, NULL, "table %s: %s", shown, mc_error_chain(error, doctor->pool));
        return;
    }
    if (rows->nelts == 0)
        mc_doctor_miss(doctor, NULL, "table %s of database %s: it is not there, or has no spatial column", shown,
                       database->name);
    for (int i = 0; i < rows->nelts; i++) {
        const char *const *row = APR_ARRAY_IDX(rows, i, const char *const *);
        mc_doctor_table table = { .shown = shown };
        take_table_row(&table, row);
        if (strchr("rmp", *table.kind) == NULL)
            continue;
        if (i == 0)
            database->table_bytes += cell_number(row[13]);
        if (!table.readable)
            mc_doctor_miss(doctor, NULL, "table %s of database %s: the role has no right to SELECT column %s", shown,
                           database->name, table.column);
        APR_ARRAY_PUSH(tables, mc_doctor_table) = table;
    }
}

void
mc_doctor_read_tables(mc_doctor *doctor, mc_doctor_database *database)
{
    apr_array_header_t *tables = apr_array_make(doctor->pool, 4, sizeof(mc_doctor_table));
    for (int i = 0; i < database->tables->nelts; i++)
        read_table(tables, database, APR_ARRAY_IDX(database->tables, i, mc_doctor_table).shown, doctor);
    database->tables = tables;
}

typedef void table_check(mc_doctor *doctor, const mc_doctor_check *check, const mc_doctor_database *database,
                         const mc_doctor_table *table);

static void
check_each_table(mc_doctor *doctor, const mc_doctor_check *check, table_check *run)
{
    for (int i = 0; i < doctor->databases->nelts; i++) {
        const mc_doctor_database *database = APR_ARRAY_IDX(doctor->databases, i, const mc_doctor_database *);
        for (int j = 0; database->session != NULL && j < database->tables->nelts; j++)
            run(doctor, check, database, &APR_ARRAY_IDX(database->tables, j, const mc_doctor_table));
    }
}

/* The table's name for statements. */
static const char *
quoted_table(const mc_doctor_table *table, apr_pool_t *pool)
{
    return apr_pstrcat(pool, mc_sql_name(table->schema, pool), ".", mc_sql_name(table->name, pool), NULL);
}

static const char *
table_subject(const mc_doctor_database *database, const mc_doctor_table *table, apr_pool_t *pool)
{
    return apr_psprintf(pool, "%s of database %s", quoted_table(table, pool), database->name);
}

static double
ideal_blocks(const mc_doctor_table *table, double rows)
{
    double blocks = table->rows > 0 ? rows * table->blocks / table->rows : 1;
    return blocks < 1 ? 1 : blocks;
}

static void
check_index_of_table(mc_doctor *doctor, const mc_doctor_check *check, const mc_doctor_database *database,
                     const mc_doctor_table *table)
{
    apr_pool_t *pool = doctor->pool;
    if (table->index != NULL || (table->rows >= 0 && table->rows < 1000 && *table->kind != 'p'))
        return;
    double factor = table->rows > 0 ? table->blocks / ideal_blocks(table, SAMPLE_ROWS) : 1;
    const char *rows =
        table->rows < 0 ? "an unknown number of rows" : apr_psprintf(pool, "about %.0f rows", table->rows);
    const char *column = mc_sql_name(table->column, pool), *name = quoted_table(table, pool);
    bool whole = *table->kind == 'p';
    mc_doctor_find(doctor,
                   &(mc_finding){ .check = check,
                                  .subject = table_subject(database, table, pool),
                                  .found = apr_psprintf(pool,
                                                        "column %s has no spatial index; the table has %s in %.0f "
                                                        "blocks (%.1f MB)",
                                                        column, rows, table->blocks, table->blocks * BLOCK_BYTES / 1e6),
                                  .why = table->rows > 0
                                             ? apr_psprintf(pool, "each map reads all blocks; %d rows fill %.0f",
                                                            SAMPLE_ROWS, ideal_blocks(table, SAMPLE_ROWS))
                                             : "each map reads all blocks",
                                  .todo = apr_psprintf(pool, "CREATE INDEX%s ON %s USING gist (%s)",
                                                       whole ? "" : " CONCURRENTLY", name, column),
                                  .factor = factor > 1 ? factor : 1,
                                  .fix = apr_psprintf(pool, "CREATE INDEX%s ON %s USING gist (%s);\nANALYZE %s;",
                                                      whole ? "" : " CONCURRENTLY", name, column, name),
                                  .database = database->number });
}

void
mc_doctor_check_spatial_index(mc_doctor *doctor, const mc_doctor_check *check)
{
    check_each_table(doctor, check, check_index_of_table);
}

/* Half the side of a box in which about SAMPLE_ROWS rows lie, were they spread evenly; 0: not known. */
static mc_error *
sample_reach(double *reach, const mc_doctor_database *database, const mc_doctor_table *table, mc_doctor *doctor)
{
    const char *const names[] = { table->schema, table->name, table->column };
    apr_array_header_t *rows;
    *reach = 0;
    MC_TRY(mc_doctor_ask(&rows, database,
                         "SELECT ST_XMax(e)::float8 - ST_XMin(e)::float8, ST_YMax(e)::float8 - ST_YMin(e)::float8"
                         " FROM (SELECT ST_EstimatedExtent($1, $2, $3) AS e) AS extent",
                         names, 3, doctor));
    if (rows->nelts == 0)
        return MC_OK;
    const char *const *row = APR_ARRAY_IDX(rows, 0, const char *const *);
    double area = cell_number(row[0]) * cell_number(row[1]);
    *reach = area > 0 && isfinite(area) ? sqrt(area * SAMPLE_ROWS / table->rows) / 2 : 0;
    return MC_OK;
}

/* Rows of a box around a row of the table, found by the index, and the blocks that the rows stand in. */
static const char *
sample_sql(const mc_doctor_table *table, double reach, apr_pool_t *pool)
{
    const char *name = quoted_table(table, pool), *column = mc_sql_name(table->column, pool);
    double percent = 100 * 4 / table->blocks;
    return apr_psprintf(
        pool,
        "SELECT count(*)::float8, count(DISTINCT (b.place::text::point)[0])::float8 FROM (SELECT t.ctid AS place"
        " FROM ONLY %s t WHERE t.%s && (SELECT ST_Expand(ST_Centroid(ST_Envelope(p.%s)), %s) FROM ONLY %s p"
        " TABLESAMPLE SYSTEM (%s) WHERE NOT ST_IsEmpty(p.%s) LIMIT 1) LIMIT %d) b",
        name, column, column, mc_double_text('g', 17, reach, pool), name,
        mc_double_text('g', 6, percent < 100 ? percent : 100, pool), column, MOST_SAMPLE_ROWS);
}

static mc_error *
measure_order(double *found, double *blocks, const mc_doctor_database *database, const mc_doctor_table *table,
              mc_doctor *doctor)
{
    double reach;
    *found = *blocks = 0;
    MC_TRY(sample_reach(&reach, database, table, doctor));
    for (int i = 0; i < 2 * SAMPLES && reach > 0 && *found < SAMPLES * SAMPLE_ROWS; i++) {
        apr_array_header_t *rows;
        MC_TRY(mc_doctor_ask(&rows, database, sample_sql(table, reach, doctor->pool), NULL, 0, doctor));
        const char *const *row = rows->nelts == 0 ? NULL : APR_ARRAY_IDX(rows, 0, const char *const *);
        if (row == NULL || cell_number(row[0]) < FEWEST_ROWS)
            continue;
        *found += cell_number(row[0]);
        *blocks += cell_number(row[1]);
    }
    return MC_OK;
}

static void
check_order_of_table(mc_doctor *doctor, const mc_doctor_check *check, const mc_doctor_database *database,
                     const mc_doctor_table *table)
{
    apr_pool_t *pool = doctor->pool;
    double found, blocks;
    if (table->index == NULL || *table->kind == 'p' || table->geography || !table->readable || table->blocks < 64 ||
        table->rows < 1000)
        return;
    mc_error *error = measure_order(&found, &blocks, database, table, doctor);
    if (error != MC_OK) {
        mc_doctor_miss(doctor, check, "table %s: %s", table->shown, mc_error_chain(error, pool));
        return;
    }
    double ideal = ideal_blocks(table, found), factor = found > 0 ? blocks / ideal : 1;
    if (factor < 4)
        return;
    const char *name = quoted_table(table, pool), *index = mc_sql_name(table->index, pool);
    mc_doctor_find(
        doctor,
        &(mc_finding){
            .check = check,
            .subject = table_subject(database, table, pool),
            .found = apr_psprintf(pool, "measured: %.0f rows of a few boxes stand in %.0f blocks; %.0f would hold them",
                                  found, blocks, ideal),
            .why = "a map reads each block in which one of its rows stands",
            .todo = apr_psprintf(pool,
                                 "CLUSTER %s USING %s, in an hour without clients: nobody can read the table "
                                 "meanwhile",
                                 name, index),
            .factor = factor,
            .fix = apr_psprintf(pool,
                                "-- Locks the table against readers until it is done.\nCLUSTER %s USING %s;\n"
                                "ANALYZE %s;",
                                name, index, name),
            .database = database->number });
}

void
mc_doctor_check_clustering(mc_doctor *doctor, const mc_doctor_check *check)
{
    check_each_table(doctor, check, check_order_of_table);
}

static void
check_statistics_of_table(mc_doctor *doctor, const mc_doctor_check *check, const mc_doctor_database *database,
                          const mc_doctor_table *table)
{
    apr_pool_t *pool = doctor->pool;
    bool none = table->rows < 0 || (table->readable && !table->has_statistics && table->rows > 0);
    bool old = table->modified > table->live / 5 + 1000;
    if (*table->kind == 'p' || (!none && !old))
        return;
    const char *name = quoted_table(table, pool);
    mc_doctor_find(doctor, &(mc_finding){ .check = check,
                                          .subject = table_subject(database, table, pool),
                                          .found = none ? "PostgreSQL has no statistics of the table"
                                                        : apr_psprintf(pool,
                                                                       "%.0f rows have changed since the statistics "
                                                                       "were made, of %.0f",
                                                                       table->modified, table->live),
                                          .why = "without them PostgreSQL guesses how many rows a box has, and may "
                                                 "choose a slow way to find them",
                                          .todo = apr_psprintf(pool, "ANALYZE %s", name),
                                          .factor = 1,
                                          .fix = apr_psprintf(pool, "ANALYZE %s;", name),
                                          .database = database->number });
}

void
mc_doctor_check_statistics(mc_doctor *doctor, const mc_doctor_check *check)
{
    check_each_table(doctor, check, check_statistics_of_table);
}

static void
check_dead_rows_of_table(mc_doctor *doctor, const mc_doctor_check *check, const mc_doctor_database *database,
                         const mc_doctor_table *table)
{
    apr_pool_t *pool = doctor->pool;
    if (*table->kind == 'p' || table->dead < table->live / 5 + 1000)
        return;
    const char *name = quoted_table(table, pool);
    double factor = table->live > 0 ? (table->live + table->dead) / table->live : 1;
    mc_doctor_find(
        doctor, &(mc_finding){ .check = check,
                               .subject = table_subject(database, table, pool),
                               .found = apr_psprintf(pool, "%.0f rows are dead, %.0f live", table->dead, table->live),
                               .why = "dead rows fill blocks that each map reads",
                               .todo = apr_psprintf(pool, "VACUUM (ANALYZE) %s; and let autovacuum come earlier", name),
                               .factor = factor,
                               .fix = apr_psprintf(pool,
                                                   "VACUUM (ANALYZE) %s;\nALTER TABLE %s SET "
                                                   "(autovacuum_vacuum_scale_factor = 0.05);",
                                                   name, name),
                               .database = database->number });
}

void
mc_doctor_check_dead_rows(mc_doctor *doctor, const mc_doctor_check *check)
{
    check_each_table(doctor, check, check_dead_rows_of_table);
}
