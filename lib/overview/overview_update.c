/* Bringing the levels of a table up to date with the change log. */
#include <apr_strings.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "overview/overview_patch.h"
#include "overview/overview_planes.h"
#include "text/text.h"

enum {
    LEVELS_MAX = 32,
    ROWS_AT_ONCE = 8192,
    ROWS_LEAST = 20000, /* so many rows may be read again, however few there are, */
    ROWS_PART = 2,      /* and this part of the table's */
    GROWN_LEAST = 1000, /* so many features more than were built are no reason to build anew, */
};
/* nor are so many times as many. */
#define GROWN_MOST 1.5

typedef struct updated_level {
    mc_overview_level level;
    const char *name; /* of its table */
    int64_t built;    /* features that it was built with */
    bool narrowed;    /* it served maps that are further away, too */
    mc_overview_patch *patch;
} updated_level;

typedef struct overview_update {
    mc_overview_table *table;
    updated_level levels[LEVELS_MAX]; /* the finest first */
    int count;
    mc_box_set *changed;
    const char *anew;  /* why the levels have to be built anew; NULL: they have not */
    int64_t *ordinals; /* of the rows that are read again, rising */
    int rows;
} overview_update;

/* ---- What there is ---- */

static bool
take_level(overview_update *update, const mc_postgres_row *row)
{
    updated_level *taken = &update->levels[update->count];
    mc_overview_level *level = &taken->level;
    const mc_overview_job *job = &update->table->job;
    double metres;
    if (update->count == LEVELS_MAX || row->columns < 9 || strcmp(row->fields[1].data, "") != 0 ||
        !mc_parse_double(&level->resolution, row->fields[2].data) || !mc_parse_double(&metres, row->fields[3].data) ||
        !mc_parse_double(&update->table->job.crowded, row->fields[4].data) ||
        !mc_parse_int64(&level->window, row->fields[5].data, 1, 1 << 22) ||
        !mc_parse_int64(&level->kept, row->fields[6].data, 0, INT64_MAX) ||
        !mc_parse_int64(&taken->built, row->fields[7].data, 0, INT64_MAX) ||
        !mc_parse_double(&level->until, row->fields[8].data) || fabs(metres / job->grid->metres_per_unit - 1) > 1e-6)
        return false;
    const int64_t window = level->window;
    mc_overview_prepare(level, job);
    level->window = window;
    taken->name = apr_pstrdup(job->pool, row->fields[0].data);
    update->count++;
    return true;
}

/* The levels of the style, or why they have to be built anew. */
static mc_error *
find_levels_of_style(overview_update *update)
{
    const mc_overview_table *table = update->table;
    apr_pool_t *pool = table->job.pool;
    const char *source = mc_overview_quote(mc_sql_table(table->config.table, pool), pool);
    const mc_postgres_query query = {
        .session = table->session,
        .sql = apr_psprintf(
            pool,
            "SELECT quote_ident(l.name), CASE %s WHEN l.reader IS NULL THEN 'they were built with "
            "--static' WHEN l.format <> %d OR l.srid <> %d THEN 'they were built by another version of "
            "mapcache, or for another SRID' %s ELSE '' END, l.resolution::text, "
            "l.metres_per_unit::text, l.crowded::text, l.places::text, l.rows::text, "
            "l.rows_built::text, l.until::text FROM " MC_LEVELS_SCHEMA ".levels l WHERE (l.relation = "
            "%s OR l.source = %s) AND l.geometry = %s AND l.style = '%" APR_INT64_T_FMT "'::int8 ORDER BY l.resolution",
            apr_psprintf(pool, MC_LEVELS_UNFIT("%s"), source), MC_LEVELS_FORMAT, table->job.srid, MC_LEVELS_UNLOGGED,
            table->relation, source, mc_overview_quote(table->column.name, pool), (apr_int64_t)table->job.digest)
    };
    mc_postgres_result *result = NULL;
    const mc_postgres_row *row = NULL;
    mc_error *error = mc_postgres_start(&result, table->job.ctx->process->postgres, &query, table->job.ctx, pool);
    while (error == MC_OK && (error = mc_postgres_next(&row, result)) == MC_OK && row != NULL)
        if (!take_level(update, row) && update->anew == NULL)
            update->anew = row->columns > 1 && *row->fields[1].data != '\0'
                               ? apr_pstrdup(pool, row->fields[1].data)
                               : "they were built for another grid, or are broken";
    mc_postgres_end(result);
    return error;
}

/* What the log has that the levels do not know. All levels of a style have one snapshot. */
static mc_error *
read_changes(overview_update *update)
{
    const mc_overview_table *table = update->table;
    const mc_postgres_query query = {
        .session = table->session,
        .sql = apr_psprintf(table->job.pool,
                            "SELECT DISTINCT (c.minx IS NULL OR c.srid <> l.srid)::text, c.minx::text, c.miny::text, "
                            "c.maxx::text, c.maxy::text FROM " MC_LEVELS_SCHEMA ".levels l, " MC_LEVELS_UNKNOWN_CHANGES
                            " AND l.relation = %s AND l.geometry = %s AND "
                            "l.style = '%" APR_INT64_T_FMT "'::int8",
                            table->relation, mc_overview_quote(table->column.name, table->job.pool),
                            (apr_int64_t)table->job.digest)
    };
    mc_postgres_result *result = NULL;
    const mc_postgres_row *row = NULL;
    mc_error *error =
        mc_postgres_start(&result, table->job.ctx->process->postgres, &query, table->job.ctx, table->job.pool);
    while (error == MC_OK && (error = mc_postgres_next(&row, result)) == MC_OK && row != NULL) {
        mc_extent box;
        if (row->columns == 5 && strcmp(row->fields[0].data, "false") == 0 &&
            mc_parse_double(&box.minx, row->fields[1].data) && mc_parse_double(&box.miny, row->fields[2].data) &&
            mc_parse_double(&box.maxx, row->fields[3].data) && mc_parse_double(&box.maxy, row->fields[4].data))
            mc_box_set_add(update->changed, &box);
        else
            update->changed->whole = true;
    }
    mc_postgres_end(result);
    if (update->changed->whole && update->anew == NULL)
        update->anew = "the whole table may have changed";
    return error;
}

/* ---- The rows ---- */

static int
compare_ordinals(const void *a, const void *b)
{
    const int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
    return left < right ? -1 : left > right;
}

/* An index by which rows are found by a box; how many rows the table has, -1: that is not known. */
static mc_error *
ask_table_size(double *rows, overview_update *update)
{
    const mc_overview_table *table = update->table;
    const char **values;
    MC_TRY(mc_overview_ask(
        &values, 2, table,
        apr_psprintf(table->job.pool,
                     "SELECT c.reltuples::text, EXISTS (SELECT FROM pg_index i JOIN pg_class x ON x.oid = i.indexrelid "
                     "JOIN pg_am m ON m.oid = x.relam JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = "
                     "i.indkey[0] WHERE i.indrelid = c.oid AND m.amname IN ('gist', 'spgist') AND i.indisvalid AND "
                     "i.indpred IS NULL AND a.attname = %s)::text FROM pg_class c WHERE c.oid = %s",
                     mc_overview_quote(table->column.name, table->job.pool), table->relation)));
    if (values == NULL || !mc_parse_double(rows, values[0]))
        *rows = -1;
    if (values == NULL || strcmp(values[1], "true") != 0)
        update->anew = "the table has no spatial index by which changed rows are found";
    return MC_OK;
}

/* Rows that lie near the changed boxes, for the level that needs most of them. */
static const char *
places_sql(const overview_update *update, int64_t most)
{
    const mc_overview_table *table = update->table;
    double reach = 0;
    for (int i = 0; i < update->count; i++)
        reach = fmax(reach, mc_overview_patch_reach(&update->levels[i].level, &table->job));
    return apr_psprintf(table->job.pool,
                        "SELECT s.ctid FROM (VALUES %s) AS c(x0, y0, x1, y1) JOIN %s s ON s.%s && "
                        "ST_MakeEnvelope(c.x0, c.y0, c.x1, c.y1, %d) LIMIT %" APR_INT64_T_FMT,
                        mc_overview_boxes_sql(update->changed, reach, table->job.pool),
                        mc_sql_table(table->config.table, table->job.pool),
                        mc_sql_name(table->column.name, table->job.pool), table->job.srid, (apr_int64_t)most);
}

static void
sort_changed_rows(overview_update *update, apr_array_header_t *found)
{
    update->ordinals = (int64_t *)found->elts;
    qsort(found->elts, (size_t)found->nelts, sizeof(int64_t), compare_ordinals);
    for (int i = 0; i < found->nelts; i++)
        if (update->rows == 0 || update->ordinals[i] != update->ordinals[update->rows - 1])
            update->ordinals[update->rows++] = update->ordinals[i];
}

/* *few false: they are too many to be read again. */
static mc_error *
read_changed_places(bool *few, overview_update *update, double rows)
{
    const mc_overview_table *table = update->table;
    const int64_t most = (int64_t)fmin(fmax(ROWS_LEAST, rows / ROWS_PART), 1e8), read = 2 * most + 1;
    const mc_postgres_query query = {
        .session = table->session, .sql = places_sql(update, read), .binary = true, .copy = true
    };
    apr_array_header_t *found = apr_array_make(table->job.pool, 4096, sizeof(int64_t));
    mc_postgres_result *result = NULL;
    const mc_postgres_row *row = NULL;
    mc_error *error =
        mc_postgres_start(&result, table->job.ctx->process->postgres, &query, table->job.ctx, table->job.pool);
    while (error == MC_OK && (error = mc_postgres_next(&row, result)) == MC_OK && row != NULL)
        APR_ARRAY_PUSH(found, int64_t) = mc_overview_ordinal(table, &row->fields[0]);
    mc_postgres_end(result);
    const int count = found->nelts;
    update->rows = 0;
    sort_changed_rows(update, found);
    *few = count < read && update->rows <= most && (update->rows == 0 || update->ordinals[0] != 0);
    return error;
}

/* The coarsest level serves fewer maps from here on, or none; false: it is the only one, and stays. Readers that know
 * it find that out by the statement before each map; the next builder drops its table. */
static mc_error *
narrow_coarsest_level(bool *narrowed, overview_update *update)
{
    const mc_overview_table *table = update->table;
    updated_level *coarsest = &update->levels[update->count - 1];
    *narrowed = coarsest->narrowed = mc_overview_narrow_level(&coarsest->level, &table->job);
    if (*narrowed || update->count == 1)
        return MC_OK;
    *narrowed = true;
    update->count--;
    mc_overview_tell_level(&table->job, &coarsest->level, 0,
                           "no level until the next build, as too many rows lie near what has changed");
    return mc_overview_run(table, apr_psprintf(table->job.pool,
                                               "DELETE FROM " MC_LEVELS_SCHEMA ".levels WHERE quote_ident(name) = %s",
                                               mc_overview_quote(coarsest->name, table->job.pool)));
}

static mc_error *
find_changed_rows(overview_update *update)
{
    const mc_overview_table *table = update->table;
    double rows;
    bool few, narrowed = true;
    MC_TRY(ask_table_size(&rows, update));
    if (update->anew != NULL)
        return MC_OK;
    MC_TRY(mc_overview_run(table, "SET LOCAL enable_seqscan = off"));
    MC_TRY(read_changed_places(&few, update, rows));
    while (!few && narrowed) {
        MC_TRY(narrow_coarsest_level(&narrowed, update));
        if (narrowed)
            MC_TRY(read_changed_places(&few, update, rows));
    }
    if (!few)
        update->anew = apr_psprintf(table->job.pool, "too much has changed: %d boxes, %d of %g rows lie near these",
                                    update->changed->count, update->rows, rows);
    return MC_OK;
}

static const char *
condition_of_places(const overview_update *update, int from, int to, apr_pool_t *pool)
{
    const int64_t each = update->table->job.piece_ordinals;
    apr_array_header_t *texts = apr_array_make(pool, to - from, sizeof(const char *));
    for (int i = from; i < to; i++)
        APR_ARRAY_PUSH(texts, const char *) =
            apr_psprintf(pool, "\"(%" APR_INT64_T_FMT ",%" APR_INT64_T_FMT ")\"",
                         (apr_int64_t)(update->ordinals[i] / each), (apr_int64_t)(update->ordinals[i] % each));
    return apr_psprintf(pool, "ctid = ANY('{%s}'::tid[])", apr_array_pstrcat(pool, texts, ','));
}

static int
compare_rows(const void *a, const void *b)
{
    const mc_overview_row *left = a, *right = b;
    return left->ordinal < right->ordinal ? -1 : left->ordinal > right->ordinal;
}

/* The rows go through the levels, the last one first. */
static mc_error *
patch_with_rows(overview_update *update, apr_pool_t *piece, apr_pool_t *scratch)
{
    apr_array_header_t *rows;
    for (int to = update->rows; to > 0; to -= ROWS_AT_ONCE) {
        const int from = to > ROWS_AT_ONCE ? to - ROWS_AT_ONCE : 0;
        apr_pool_clear(piece);
        MC_TRY(mc_overview_read_rows(&rows, update->table, condition_of_places(update, from, to, piece), piece));
        qsort(rows->elts, (size_t)rows->nelts, sizeof(mc_overview_row), compare_rows);
        for (int i = rows->nelts - 1; i >= 0; i--) {
            for (int k = 0; k < update->count; k++)
                MC_TRY(mc_error_copy(
                    mc_overview_patch_row(update->levels[k].patch, &APR_ARRAY_IDX(rows, i, mc_overview_row), scratch),
                    update->table->job.pool));
            apr_pool_clear(scratch);
        }
    }
    return MC_OK;
}

/* ---- The levels ---- */

static mc_error *
end_level_patch(overview_update *update, updated_level *level)
{
    const mc_overview_table *table = update->table;
    apr_pool_t *pool = table->job.pool;
    mc_overview_patched done = { 0 };
    if (level->patch != NULL)
        MC_TRY(mc_overview_patch_end(&done, &update->anew, level->patch));
    if (update->anew != NULL)
        return MC_OK;
    if ((double)level->level.kept > GROWN_MOST * (double)level->built + GROWN_LEAST) {
        update->anew = "they have grown by many updates";
        return MC_OK;
    }
    if (level->patch != NULL)
        mc_overview_tell_level(&table->job, &level->level, 0,
                               "%" APR_INT64_T_FMT " features replaced, %" APR_INT64_T_FMT " added, %" APR_INT64_T_FMT
                               " removed",
                               (apr_int64_t)done.replaced, (apr_int64_t)done.added, (apr_int64_t)done.removed);
    if (level->narrowed)
        mc_overview_tell_level(&table->job, &level->level, 0,
                               "maps further away than twice that read the table until the next build");
    return mc_overview_run(table, apr_psprintf(pool,
                                               "UPDATE " MC_LEVELS_SCHEMA
                                               ".levels SET applied = %s, started = %s, rows = %" APR_INT64_T_FMT
                                               ", until = '%s' WHERE quote_ident(name) = %s",
                                               mc_overview_quote(table->applied, pool),
                                               mc_overview_quote(table->started, pool), (apr_int64_t)level->level.kept,
                                               mc_double_text('g', 17, level->level.until, pool),
                                               mc_overview_quote(level->name, pool)));
}

static mc_error *
patch_levels(overview_update *update, apr_pool_t *pool)
{
    apr_pool_t *piece, *scratch;
    if (update->table->job.tiles != NULL) {
        update->anew = "those of vector tiles are never patched";
        return MC_OK;
    }
    MC_TRY(find_changed_rows(update));
    for (int i = 0; i < update->count && update->anew == NULL; i++)
        MC_TRY(mc_overview_patch_begin(&update->levels[i].patch, &update->anew, &update->levels[i].level,
                                       update->levels[i].name, update->changed, update->table, pool));
    if (update->anew != NULL)
        return MC_OK;
    apr_pool_create(&piece, pool);
    apr_pool_create(&scratch, pool);
    return patch_with_rows(update, piece, scratch);
}

/* Within a transaction, which is given up where the levels have to be built anew. */
static mc_error *
update_in_transaction(overview_update *update, apr_pool_t *pool)
{
    mc_overview_table *table = update->table;
    MC_TRY(mc_overview_run(table, "BEGIN ISOLATION LEVEL REPEATABLE READ"));
    MC_TRY(mc_overview_run(table, "SET LOCAL lock_timeout = '60s'"));
    MC_TRY(mc_overview_run(table, "SET LOCAL client_min_messages = warning"));
    MC_TRY(mc_overview_ask_facts(table));
    mc_overview_name_reader(table);
    MC_TRY(find_levels_of_style(update));
    if (update->anew == NULL)
        MC_TRY(read_changes(update));
    if (update->anew == NULL && update->changed->count > 0)
        MC_TRY(patch_levels(update, pool));
    for (int i = 0; i < update->count && update->anew == NULL; i++)
        MC_TRY(end_level_patch(update, &update->levels[i]));
    if (update->anew == NULL)
        MC_TRY(mc_overview_move_reader(table));
    return mc_overview_run(table, update->anew == NULL ? "COMMIT" : "ROLLBACK");
}

/* A style without levels: there are none, or the table's are those of another style. */
static mc_error *
find_any_level(bool *any, overview_update *update)
{
    const mc_overview_table *table = update->table;
    const char **values,
        *source = mc_overview_quote(mc_sql_table(table->config.table, table->job.pool), table->job.pool);
    MC_TRY(mc_overview_find_schema(any, table));
    if (!*any)
        return MC_OK;
    MC_TRY(
        mc_overview_ask(&values, 1, table,
                        apr_psprintf(table->job.pool,
                                     "SELECT count(*)::text FROM " MC_LEVELS_SCHEMA ".levels l WHERE l.relation = %s "
                                     "OR l.source = %s",
                                     table->relation, source)));
    *any = values != NULL && strcmp(values[0], "0") != 0;
    return MC_OK;
}

static mc_error *
update_levels(overview_update *update, const mc_tileset *tileset, apr_pool_t *pool)
{
    mc_overview_table *table = update->table;
    bool any;
    MC_TRY(mc_postgis_find_column(&table->column, &table->config, table->job.ctx, table->job.pool));
    table->job.srid = table->column.srid;
    MC_TRY(mc_overview_set_rules(&table->job, tileset));
    MC_TRY(mc_overview_lock_table(table));
    MC_TRY(find_any_level(&any, update));
    if (!any) {
        mc_overview_tell(&table->job, false, "there are no overviews: see mapcache overviews build");
        return MC_OK;
    }
    MC_TRY(mc_overview_make_schema(table));
    MC_TRY(update_in_transaction(update, pool));
    if (update->anew == NULL && update->count == 0)
        update->anew = "they were built for another style";
    if (update->anew == NULL) {
        mc_overview_tell(&table->job, false, "up to date: %d changed boxes, %d rows looked at", update->changed->count,
                         update->rows);
        return MC_OK;
    }
    mc_overview_tell(&table->job, false, "the overviews are built anew: %s", update->anew);
    return mc_overview_build_anew(table);
}

mc_error *
mc_overview_update_table(mc_overview_table *table, const mc_tileset *tileset)
{
    apr_pool_t *pool;
    apr_pool_create(&pool, table->job.pool);
    overview_update update = { .table = table, .changed = mc_box_set_create(pool) };
    mc_error *error = mc_error_copy(update_levels(&update, tileset, pool), table->job.pool);
    apr_pool_destroy(pool);
    return error;
}
