/* See overview_wanted.h. */
#include "overview/update/overview_wanted.h"

#include <apr_strings.h>
#include <math.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "overview/overview_planes.h"
#include "text/text.h"
#include "vector/geometry/geometry.h"

enum {
    ROWS_LEAST = 20000,   /* so many rows may be looked at, however few there are, */
    ROWS_PART = 2,        /* and this part of those that the levels have */
    HITS = 16,            /* the database may find each of them so many times */
    VISIT = 8,            /* what a row costs by the index, in rows that are read one after the other */
    WHOLE_MOST = 8 << 20, /* rows of a table that is read as a whole because changes lie all over it */
};

/* ---- Joining ---- */

/* In cells as wide as the box, or twice as wide. */
typedef struct wanted_cell {
    int plane, size;
    double column, row;
} wanted_cell;

static wanted_cell
cell_of_wanted(const mc_reveal_wanted *wanted)
{
    const mc_extent *box = &wanted->box;
    wanted_cell cell = { .plane = wanted->plane };
    (void)frexp(fmax(box->maxx - box->minx, box->maxy - box->miny), &cell.size);
    const double side = ldexp(1, cell.size);
    cell.column = floor((box->minx + box->maxx) / 2 / side);
    cell.row = floor((box->miny + box->maxy) / 2 / side);
    return cell;
}

static int
compare_wanted_cells(const wanted_cell *left, const wanted_cell *right)
{
    if (left->plane != right->plane)
        return left->plane < right->plane ? -1 : 1;
    if (left->size != right->size)
        return left->size < right->size ? -1 : 1;
    if (left->row != right->row)
        return left->row < right->row ? -1 : 1;
    return left->column == right->column ? 0 : left->column < right->column ? -1 : 1;
}

/* By cell, those that are painted last first. */
static int
compare_wanted(const void *a, const void *b)
{
    const mc_reveal_wanted *left = a, *right = b;
    const wanted_cell cells[2] = { cell_of_wanted(left), cell_of_wanted(right) };
    const int order = compare_wanted_cells(&cells[0], &cells[1]);
    if (order != 0)
        return order;
    return left->below == right->below ? 0 : left->below > right->below ? -1 : 1;
}

void
mc_overview_join_wanted(apr_array_header_t *wanted)
{
    mc_reveal_wanted *all = (mc_reveal_wanted *)wanted->elts;
    wanted_cell last_cell = { 0 };
    int kept = 0;
    qsort(all, (size_t)wanted->nelts, sizeof(*all), compare_wanted);
    for (int i = 0; i < wanted->nelts; i++) {
        const wanted_cell cell = cell_of_wanted(&all[i]);
        mc_reveal_wanted *last = &all[kept - (kept > 0)];
        if (kept == 0 || compare_wanted_cells(&cell, &last_cell) != 0 || all[i].below <= last->above) {
            all[kept++] = all[i];
            last_cell = cell;
            continue;
        }
        last->above = all[i].above < last->above ? all[i].above : last->above;
        last->box = (mc_extent){ fmin(last->box.minx, all[i].box.minx), fmin(last->box.miny, all[i].box.miny),
                                 fmax(last->box.maxx, all[i].box.maxx), fmax(last->box.maxy, all[i].box.maxy) };
    }
    wanted->nelts = kept;
}

/* ---- Finding ---- */

static const char *
wanted_sql(const apr_array_header_t *wanted, int64_t most, const mc_overview_table *table, apr_pool_t *pool)
{
    apr_array_header_t *texts = apr_array_make(pool, wanted->nelts, sizeof(const char *));
    for (int i = 0; i < wanted->nelts; i++) {
        const mc_reveal_wanted *one = &APR_ARRAY_IDX(wanted, i, mc_reveal_wanted);
        APR_ARRAY_PUSH(texts, const char *) =
            apr_psprintf(pool, "(%s::float8,%s::float8,%s::float8,%s::float8,'%s'::tid,'%s'::tid,%d)",
                         mc_double_text('g', 17, one->box.minx, pool), mc_double_text('g', 17, one->box.miny, pool),
                         mc_double_text('g', 17, one->box.maxx, pool), mc_double_text('g', 17, one->box.maxy, pool),
                         one->above < 0 ? "(0,0)" : mc_overview_ctid_text(table, one->above, pool),
                         mc_overview_ctid_text(table, one->below, pool), one->plane);
    }
    return apr_psprintf(
        pool,
        "SELECT s.ctid, c.plane FROM (VALUES %s) AS c(x0, y0, x1, y1, above, below, plane) JOIN %s s ON s.%s && "
        "ST_MakeEnvelope(c.x0, c.y0, c.x1, c.y1, %d) AND s.ctid > c.above AND s.ctid < c.below LIMIT "
        "%" APR_INT64_T_FMT,
        apr_array_pstrcat(pool, texts, ','), mc_sql_table(table->config.table, pool),
        mc_sql_name(table->column.name, pool), table->job.srid, (apr_int64_t)most);
}

/* Each once. *hits: how often rows were found. */
static mc_error *
ask_for_wanted(int64_t *hits, apr_array_header_t *ordinals, const apr_array_header_t *wanted,
               const mc_overview_reveal *reveal, const mc_overview_changed *changed, const mc_overview_table *table,
               int64_t most)
{
    apr_pool_t *pool = ordinals->pool;
    const mc_postgres_query query = {
        .session = table->session, .sql = wanted_sql(wanted, most, table, pool), .binary = true, .copy = true
    };
    mc_overview_ordinals *found = mc_overview_ordinals_create(changed->old->most, pool);
    mc_postgres_result *result = NULL;
    const mc_postgres_row *row = NULL;
    *hits = 0;
    mc_error *error = mc_postgres_start(&result, table->job.ctx->process->postgres, &query, table->job.ctx, pool);
    while (error == MC_OK && (error = mc_postgres_next(&row, result)) == MC_OK && row != NULL) {
        ++*hits;
        if (row->columns != 2 || row->fields[1].size != 4)
            continue;
        const int64_t ordinal = mc_overview_ordinal(table, &row->fields[0]);
        const uint32_t plane = (uint32_t)mc_big_number(row->fields[1].data, 4);
        if (mc_overview_reveal_knows(reveal, plane, ordinal) || mc_overview_ordinals_have(changed->fresh, ordinal) ||
            mc_overview_ordinals_have(found, ordinal))
            continue;
        (void)mc_overview_ordinals_add(found, ordinal);
        APR_ARRAY_PUSH(ordinals, int64_t) = ordinal;
    }
    mc_postgres_end(result);
    return error;
}

/* Whether the database would look at so many rows, one by one, that it is better to read the table once; so it is where
 * rows have changed all over the table, as each of its planes would look at many. */
static bool
are_many(const apr_array_header_t *wanted, const mc_overview_changed *changed)
{
    double area = 0;
    for (int i = 0; i < wanted->nelts; i++) {
        const mc_extent *box = &APR_ARRAY_IDX(wanted, i, mc_reveal_wanted).box;
        area += (box->maxx - box->minx) * (box->maxy - box->miny);
    }
    return (changed->everywhere && changed->table_rows < WHOLE_MOST) ||
           area * changed->density * VISIT > changed->table_rows;
}

typedef struct wanted_search {
    const mc_overview_reveal *reveal;
    apr_array_header_t *ordinals;
    int64_t most; /* with more of them than these, the search is given up */
} wanted_search;

/* A row without plain bounds (curves and collections) may be anywhere. */
static void
take_wanted_row(void *baton, int64_t ordinal, const void *geometry, size_t size)
{
    const wanted_search *search = baton;
    const uint32_t have = mc_overview_reveal_levels(search->reveal, ordinal);
    mc_extent extent;
    if (search->ordinals->nelts > search->most || !mc_overview_reveal_may_want(search->reveal, ordinal, have))
        return;
    if (!mc_wkb_bounds(&extent, geometry, size))
        extent = (mc_extent){ -INFINITY, -INFINITY, INFINITY, INFINITY };
    if (mc_overview_reveal_wants(search->reveal, &extent, ordinal, have))
        APR_ARRAY_PUSH(search->ordinals, int64_t) = ordinal;
}

mc_error *
mc_overview_find_wanted(apr_array_header_t **ordinals, apr_array_header_t *wanted, const mc_overview_reveal *reveal,
                        int64_t kept, mc_overview_changed *changed, const mc_overview_table *table, apr_pool_t *pool)
{
    const int64_t most = kept / ROWS_PART > ROWS_LEAST ? kept / ROWS_PART : ROWS_LEAST;
    int64_t hits = 0;
    mc_overview_join_wanted(wanted);
    *ordinals = apr_array_make(pool, 1024, sizeof(int64_t));
    wanted_search search = { reveal, *ordinals, most };
    if (are_many(wanted, changed))
        MC_TRY(mc_overview_visit_old(changed, take_wanted_row, &search, table));
    else
        MC_TRY(ask_for_wanted(&hits, *ordinals, wanted, reveal, changed, table, HITS * most));
    if (hits >= HITS * most || (*ordinals)->nelts > most)
        *ordinals = NULL;
    return MC_OK;
}
