/* Maps of a table and of a level that is not seen by others so far, for the builder to compare them: both are read in
 * its transaction, the level as servers read it. */
#include <apr_strings.h>

#include "overview/overview_table.h"
#include "text/text.h"
#include "vector/feature/reading.h"

/* Features after which what was needed for them is given back. */
enum { ROW_BATCH = 64 };

typedef struct table_reading {
    mc_feature_reading base;
    const mc_overview_table *table;
    const char *level; /* the name of a level's table; NULL: the table itself */
    int64_t rows;
    apr_pool_t *scratch;
} table_reading;

static mc_error *
visit_table_row(void *baton, const mc_overview_row *row)
{
    table_reading *r = baton;
    mc_error *error = mc_wkb_read(&r->base.geometry, row->geometry, row->size, &r->base.map->pixel_grid, r->scratch);
    if (mc_reading_draws(&r->base, error, r->scratch))
        MC_TRY(mc_reading_visit(&r->base, 0, row->values));
    if (++r->rows % ROW_BATCH == 0)
        apr_pool_clear(r->scratch);
    return MC_OK;
}

static const char *
box_condition(const mc_overview_table *table, const mc_extent *box, apr_pool_t *pool)
{
    const double sides[] = { box->minx, box->miny, box->maxx, box->maxy };
    const char *texts[4];
    for (int i = 0; i < 4; i++)
        texts[i] = mc_double_text('g', 17, sides[i], pool);
    return apr_psprintf(pool, "%s && ST_MakeEnvelope('%s', '%s', '%s', '%s', %d)",
                        mc_sql_name(table->column.name, pool), texts[0], texts[1], texts[2], texts[3],
                        table->column.srid);
}

static mc_error *
read_table_map(mc_feature_reading *base, apr_pool_t *pool)
{
    table_reading *r = (table_reading *)base;
    apr_pool_create(&r->scratch, pool);
    mc_error *error =
        mc_overview_visit_rows(r->table, box_condition(r->table, &base->map->box, pool), visit_table_row, r, pool);
    apr_pool_destroy(r->scratch);
    return error;
}

static mc_error *
read_level_map(mc_feature_reading *base, apr_pool_t *pool)
{
    const table_reading *r = (const table_reading *)base;
    const mc_level_use use = { .name = r->level, .srid = r->table->column.srid };
    int64_t visited;
    return mc_levels_read(&visited, base, &use, r->table->job.ids, NULL, r->table->session, pool);
}

mc_error *
mc_overview_draw_table(const mc_overview_table *table, const char *level, const mc_feature_query *query,
                       mc_feature_visitor *visit, void *baton, int64_t *skipped, apr_pool_t *pool)
{
    const mc_overview_job *job = &table->job;
    table_reading r = { .base = { .layer = job->layer->name, .visit = visit, .baton = baton, .ctx = job->ctx },
                        .table = table,
                        .level = level };
    mc_error *error =
        mc_reading_worlds(&r.base, query, NULL, NULL, level == NULL ? read_table_map : read_level_map, pool);
    *skipped += r.base.skipped;
    return error;
}
