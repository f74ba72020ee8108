/* Bringing the levels of a table up to date with the change log. */
#include <apr_strings.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "overview/overview_planes.h"
#include "overview/update/overview_patch.h"
#include "text/text.h"
#include "vector/levels/level_choice.h"

enum {
    GROWN_LEAST = 1000, /* so many features more than were built are no reason to build anew, */
};
/* nor are so many times as many. */
#define GROWN_MOST 1.5

typedef struct updated_level {
    mc_overview_level level;
    int64_t built; /* features that it was built with */
} updated_level;

typedef struct overview_update {
    mc_overview_table *table;
    updated_level levels[MC_LEVELS_MAX]; /* the finest first */
    mc_overview_patched patches[MC_LEVELS_MAX];
    int count;
    bool patched;
    mc_box_set *changed;
    mc_overview_changed rows;
    const char *anew; /* why the levels have to be built anew; NULL: they have not */
} overview_update;

/* ---- What there is ---- */

/* From hexadecimal digits. */
static bool
take_gone(mc_overview_patched *patch, const mc_postgres_field *field, apr_pool_t *pool)
{
    const size_t size = field->size < 0 ? 0 : (size_t)field->size / 2;
    uint8_t *bytes = apr_palloc(pool, size + 1);
    patch->went.bytes = bytes;
    patch->went.size = size;
    return size == 0 || mc_postgis_unhex(bytes, field->data, field->size) == size;
}

static bool
take_level(overview_update *update, const mc_postgres_row *row)
{
    updated_level *taken = &update->levels[update->count];
    mc_overview_level *level = &taken->level;
    const mc_overview_job *job = &update->table->job;
    double metres;
    if (update->count == MC_LEVELS_MAX || row->columns < 10 || strcmp(row->fields[1].data, "") != 0 ||
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
    mc_overview_patched *patch = &update->patches[update->count];
    *patch = (mc_overview_patched){ .level = level, .name = apr_pstrdup(job->pool, row->fields[0].data) };
    if (!take_gone(patch, &row->fields[9], job->pool))
        return false;
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
            "l.rows_built::text, l.until::text, coalesce((SELECT encode(g.features, 'hex') FROM " MC_LEVELS_SCHEMA
            ".gone g WHERE g.name = l.name), '') FROM " MC_LEVELS_SCHEMA ".levels l WHERE (l.relation = "
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
                            " AND %s",
                            mc_overview_levels_sql(table))
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

/* ---- The levels ---- */

static mc_error *
end_level_patch(overview_update *update, const updated_level *level, const mc_overview_patched *done)
{
    const mc_overview_table *table = update->table;
    apr_pool_t *pool = table->job.pool;
    if ((double)level->level.kept > GROWN_MOST * (double)level->built + GROWN_LEAST) {
        update->anew = "they have grown by many updates";
        return MC_OK;
    }
    if (update->patched)
        mc_overview_tell_level(&table->job, &level->level, 0,
                               "%" APR_INT64_T_FMT " features added, %" APR_INT64_T_FMT " removed, %" APR_INT64_T_FMT
                               " rows looked at below these",
                               (apr_int64_t)done->added, (apr_int64_t)done->removed, (apr_int64_t)done->looked);
    if (update->patched)
        MC_TRY(mc_overview_run(
            table, apr_psprintf(pool,
                                "INSERT INTO " MC_LEVELS_SCHEMA ".gone SELECT name, '%s' FROM " MC_LEVELS_SCHEMA
                                ".levels WHERE quote_ident(name) = %s ON CONFLICT (name) DO UPDATE SET features = "
                                "excluded.features",
                                done->gone, mc_overview_quote(done->name, pool))));
    return mc_overview_run(table, apr_psprintf(pool,
                                               "UPDATE " MC_LEVELS_SCHEMA
                                               ".levels SET applied = %s, started = %s, rows = %" APR_INT64_T_FMT
                                               " WHERE quote_ident(name) = %s",
                                               mc_overview_quote(table->applied, pool),
                                               mc_overview_quote(table->started, pool), (apr_int64_t)level->level.kept,
                                               mc_overview_quote(done->name, pool)));
}

static mc_error *
patch_levels(overview_update *update, apr_pool_t *pool)
{
    const mc_overview_table *table = update->table;
    if (table->job.tiles != NULL) {
        update->anew = "those of vector tiles are never patched";
        return MC_OK;
    }
    if (update->count == 0)
        return MC_OK;
    MC_TRY(mc_overview_find_changed(&update->rows, &update->anew, update->changed,
                                    update->levels[update->count - 1].level.resolution, table, pool));
    if (update->anew != NULL)
        return MC_OK;
    update->patched = true;
    return mc_overview_patch_levels(&update->anew, update->patches, update->count, &update->rows, table, pool);
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
        MC_TRY(end_level_patch(update, &update->levels[i], &update->patches[i]));
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
    if (update->anew == NULL && update->count == 0) {
        mc_overview_tell(&table->job, false, "there are no overviews for this style: see mapcache overviews build");
        return MC_OK;
    }
    if (update->anew != NULL)
        return mc_overview_update_anew(table, update->anew);
    mc_overview_tell(&table->job, false, "up to date: %d changed boxes, %" APR_INT64_T_FMT " rows looked at",
                     update->changed->count, (apr_int64_t)update->rows.looked);
    mc_overview_note_update(table, update->changed->count, update->rows.looked);
    return MC_OK;
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
