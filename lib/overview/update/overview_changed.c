/*
 * See overview_changed.h. A row whose transaction had ended when the snapshot of the levels was taken is as they know
 * it; all that a newer transaction has written, or one of that time, counts as fresh.
 */
#include "overview/update/overview_changed.h"

#include <apr_strings.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "overview/update/overview_cover.h"
#include "text/text.h"

enum {
    ROWS_AT_ONCE = 8192,
    ROWS_PART = 16,      /* more rows than that part of the table's are not looked for by the index, */
    ROWS_LEAST = 20000,  /* unless they are as few as that */
    FRESH_PART = 2,      /* more rows than that part of the table's are no changes of the levels, */
    FRESH_MOST = 200000, /* nor are more than that, */
};
/* Bytes of the rows that are in memory at once. */
#define ROWS_BYTES_MOST ((int64_t)256 << 20)

const char *
mc_overview_boxes_sql(const mc_box_set *boxes, double reach, apr_pool_t *pool)
{
    const apr_array_header_t *cover = mc_overview_cover(boxes, reach, pool);
    apr_array_header_t *texts = apr_array_make(pool, cover->nelts, sizeof(const char *));
    for (int i = 0; i < cover->nelts; i++) {
        const mc_extent *box = &APR_ARRAY_IDX(cover, i, mc_extent);
        APR_ARRAY_PUSH(texts, const char *) =
            apr_psprintf(pool, "(%s::float8,%s::float8,%s::float8,%s::float8)",
                         mc_double_text('g', 17, box->minx, pool), mc_double_text('g', 17, box->miny, pool),
                         mc_double_text('g', 17, box->maxx, pool), mc_double_text('g', 17, box->maxy, pool));
    }
    return apr_array_pstrcat(pool, texts, ',');
}

const char *
mc_overview_ctid_text(const mc_overview_table *table, int64_t ordinal, apr_pool_t *pool)
{
    const int64_t each = table->job.piece_ordinals;
    return apr_psprintf(pool, "(%" APR_INT64_T_FMT ",%" APR_INT64_T_FMT ")", (apr_int64_t)(ordinal / each),
                        (apr_int64_t)(ordinal % each));
}

/* ---- Rows by their ordinals ---- */

static int
compare_ordinals(const void *a, const void *b)
{
    const int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
    return left < right ? 1 : left > right ? -1 : 0;
}

static int
compare_rows(const void *a, const void *b)
{
    const mc_overview_row *left = a, *right = b;
    return left->ordinal < right->ordinal ? 1 : left->ordinal > right->ordinal ? -1 : 0;
}

static const char *
condition_of_ordinals(const apr_array_header_t *ordinals, int from, int to, const mc_overview_table *table,
                      apr_pool_t *pool)
{
    apr_array_header_t *texts = apr_array_make(pool, to - from, sizeof(const char *));
    for (int i = from; i < to; i++)
        if (i == from || APR_ARRAY_IDX(ordinals, i, int64_t) != APR_ARRAY_IDX(ordinals, i - 1, int64_t))
            APR_ARRAY_PUSH(texts, const char *) = apr_pstrcat(
                pool, "\"", mc_overview_ctid_text(table, APR_ARRAY_IDX(ordinals, i, int64_t), pool), "\"", NULL);
    return apr_psprintf(pool, "ctid = ANY('{%s}'::tid[])", apr_array_pstrcat(pool, texts, ','));
}

mc_error *
mc_overview_read_ordinals(apr_array_header_t **rows, apr_array_header_t *ordinals, const mc_overview_table *table,
                          apr_pool_t *pool)
{
    int64_t bytes = 0;
    *rows = apr_array_make(pool, ordinals->nelts + 1, sizeof(mc_overview_row));
    qsort(ordinals->elts, (size_t)ordinals->nelts, sizeof(int64_t), compare_ordinals);
    for (int from = 0, to; from < ordinals->nelts; from = to) {
        apr_array_header_t *some;
        to = from + ROWS_AT_ONCE < ordinals->nelts ? from + ROWS_AT_ONCE : ordinals->nelts;
        while (to < ordinals->nelts && APR_ARRAY_IDX(ordinals, to, int64_t) == APR_ARRAY_IDX(ordinals, to - 1, int64_t))
            to++;
        MC_TRY(mc_overview_read_rows(&some, table, condition_of_ordinals(ordinals, from, to, table, pool), pool));
        for (int i = 0; i < some->nelts; i++)
            bytes += (int64_t)APR_ARRAY_IDX(some, i, mc_overview_row).size;
        if (bytes > ROWS_BYTES_MOST)
            return mc_error_create(pool, MC_ERR_LIMIT, "rows that have changed have more than %d MB",
                                   (int)(ROWS_BYTES_MOST >> 20));
        qsort(some->elts, (size_t)some->nelts, sizeof(mc_overview_row), compare_rows);
        apr_array_cat(*rows, some);
    }
    return MC_OK;
}

mc_error *
mc_overview_limit_reason(const char **reason, mc_error *error)
{
    if (error == MC_OK || error->kind != MC_ERR_LIMIT)
        return error;
    *reason = "rows that have changed take too much memory";
    mc_error_ignore(error);
    return MC_OK;
}

/* ---- Which have changed ---- */

typedef struct changed_search {
    mc_overview_changed *changed;
    const mc_overview_table *table;
    apr_array_header_t *fresh;
    bool misplaced; /* a row lies where none should be */
    apr_pool_t *pool;
} changed_search;

/* The transaction at which the levels' snapshot begins, as a number of 32 bits. Transactions are told apart by these as
 * long as few enough have been begun since. */
static mc_error *
ask_known_transactions(changed_search *search, const char **reason)
{
    const char **values;
    MC_TRY(mc_overview_ask(
        &values, 2, search->table,
        apr_psprintf(search->pool,
                     "SELECT (min(pg_snapshot_xmin(l.applied)::text::numeric) %% 4294967296)::text, "
                     "(max(pg_snapshot_xmin(pg_current_snapshot())::text::numeric) - "
                     "min(pg_snapshot_xmin(l.applied)::text::numeric) < 1000000000)::text FROM " MC_LEVELS_SCHEMA
                     ".levels l WHERE %s",
                     mc_overview_levels_sql(search->table))));
    if (values == NULL || values[0] == NULL || strcmp(values[1], "true") != 0)
        *reason = "too many transactions have been made since";
    else
        search->changed->known = apr_psprintf(search->pool, "age(s.xmin) > age('%s'::xid)", values[0]);
    return MC_OK;
}

static void
take_looked_row(changed_search *search, const mc_postgres_row *row)
{
    const int64_t ordinal = mc_overview_ordinal(search->table, &row->fields[0]);
    const bool known = row->fields[1].size == 1 && row->fields[1].data[0] != 0;
    mc_overview_changed *changed = search->changed;
    search->misplaced |= ordinal == 0 || !mc_overview_ordinals_add(known ? changed->old : changed->fresh, ordinal);
    if (!known)
        APR_ARRAY_PUSH(search->fresh, int64_t) = ordinal;
    changed->looked++;
}

/* At most so many rows, or all of them: *whole. */
static mc_error *
look_at_rows(bool *whole, changed_search *search, const char *from, int64_t most)
{
    const mc_overview_table *table = search->table;
    const mc_postgres_query query = { .session = table->session,
                                      .sql = apr_psprintf(search->pool,
                                                          "SELECT s.ctid, %s FROM %s LIMIT %" APR_INT64_T_FMT,
                                                          search->changed->known, from, (apr_int64_t)most),
                                      .binary = true,
                                      .copy = true };
    mc_postgres_result *result = NULL;
    const mc_postgres_row *row = NULL;
    search->changed->looked = 0;
    search->fresh = apr_array_make(search->pool, 1024, sizeof(int64_t));
    mc_error *error =
        mc_postgres_start(&result, table->job.ctx->process->postgres, &query, table->job.ctx, search->pool);
    while (error == MC_OK && (error = mc_postgres_next(&row, result)) == MC_OK && row != NULL)
        if (row->columns == 2)
            take_looked_row(search, row);
    mc_postgres_end(result);
    *whole = search->changed->looked < most;
    return error;
}

/* An index by which rows are found by a box; how many rows the table has, -1: that is not known. */
static mc_error *
ask_table_size(double *rows, bool *indexed, const mc_overview_table *table)
{
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
    *indexed = values != NULL && strcmp(values[1], "true") == 0;
    return MC_OK;
}

/* How closely rows lie, by those that were found near the boxes. */
static double
find_row_density(const mc_overview_changed *changed)
{
    const apr_array_header_t *cover = mc_overview_cover(changed->boxes, changed->reach, changed->pool);
    double area = 0;
    for (int i = 0; i < cover->nelts; i++) {
        const mc_extent *box = &APR_ARRAY_IDX(cover, i, mc_extent);
        area += (box->maxx - box->minx) * (box->maxy - box->miny);
    }
    return (double)changed->looked / area;
}

/* Those near the boxes, by the index; all of them where these are many. */
static mc_error *
look_near_boxes(changed_search *search, double rows)
{
    const mc_overview_table *table = search->table;
    mc_overview_changed *changed = search->changed;
    const char *name = mc_sql_table(table->config.table, search->pool);
    const char *near = apr_psprintf(
        search->pool,
        "(VALUES %s) AS c(x0, y0, x1, y1) JOIN %s s ON s.%s && ST_MakeEnvelope(c.x0, c.y0, c.x1, c.y1, %d)",
        mc_overview_boxes_sql(changed->boxes, changed->reach, search->pool), name,
        mc_sql_name(table->column.name, search->pool), table->job.srid);
    bool whole;
    MC_TRY(mc_overview_run(table, "SET LOCAL enable_seqscan = off"));
    MC_TRY(look_at_rows(&whole, search, near, (int64_t)fmin(fmax(ROWS_LEAST, rows / ROWS_PART), 1e8)));
    changed->everywhere = !whole;
    changed->table_rows = rows;
    changed->density = find_row_density(changed);
    if (whole)
        return MC_OK;
    MC_TRY(mc_overview_run(table, "SET LOCAL enable_seqscan = on"));
    MC_TRY(look_at_rows(&whole, search, apr_pstrcat(search->pool, name, " s", NULL), INT64_MAX));
    return mc_overview_run(table, "SET LOCAL enable_seqscan = off");
}

mc_error *
mc_overview_find_changed(mc_overview_changed *changed, const char **reason, const mc_box_set *boxes, double resolution,
                         const mc_overview_table *table, apr_pool_t *pool)
{
    const int64_t most = (table->job.pieces + 1) * table->job.piece_ordinals;
    changed_search search = { .changed = changed, .table = table, .pool = pool };
    double rows;
    bool indexed;
    *changed = (mc_overview_changed){ .boxes = boxes,
                                      .reach = resolution,
                                      .pool = pool,
                                      .old = mc_overview_ordinals_create(most, pool),
                                      .fresh = mc_overview_ordinals_create(most, pool) };
    MC_TRY(ask_table_size(&rows, &indexed, table));
    MC_TRY(ask_known_transactions(&search, reason));
    if (!indexed)
        *reason = "the table has no spatial index by which rows near changed ones are found";
    else if (changed->old == NULL || changed->fresh == NULL)
        *reason = "the table is too large";
    if (*reason != NULL)
        return MC_OK;
    MC_TRY(look_near_boxes(&search, rows));
    if (search.misplaced)
        *reason = "rows have no places in pages";
    else if (changed->fresh->count > (int64_t)fmin(fmax(ROWS_LEAST, rows / FRESH_PART), FRESH_MOST))
        *reason = apr_psprintf(pool, "too much has changed: %" APR_INT64_T_FMT " of %g rows",
                               (apr_int64_t)changed->fresh->count, rows);
    else
        return mc_overview_limit_reason(reason, mc_overview_read_ordinals(&changed->rows, search.fresh, table, pool));
    return MC_OK;
}

/* ---- All old rows ---- */

mc_error *
mc_overview_visit_old(mc_overview_changed *changed, mc_overview_old_visitor *visit, void *baton,
                      const mc_overview_table *table)
{
    const mc_postgres_query query = { .session = table->session,
                                      .sql = apr_psprintf(changed->pool, "SELECT s.ctid, s.%s%s%s FROM %s s",
                                                          mc_sql_name(table->column.name, changed->pool),
                                                          changed->everywhere ? "" : ", ",
                                                          changed->everywhere ? "" : changed->known,
                                                          mc_sql_table(table->config.table, changed->pool)),
                                      .binary = true,
                                      .copy = true };
    mc_postgres_result *result = NULL;
    const mc_postgres_row *row = NULL;
    MC_TRY(mc_overview_run(table, "SET LOCAL enable_seqscan = on"));
    mc_error *error =
        mc_postgres_start(&result, table->job.ctx->process->postgres, &query, table->job.ctx, changed->pool);
    while (error == MC_OK && (error = mc_postgres_next(&row, result)) == MC_OK && row != NULL) {
        if (row->columns != (changed->everywhere ? 2 : 3) || row->fields[1].size < 0)
            continue;
        const int64_t ordinal = mc_overview_ordinal(table, &row->fields[0]);
        if (changed->everywhere ? mc_overview_ordinals_have(changed->old, ordinal)
                                : row->fields[2].size == 1 && row->fields[2].data[0] != 0 &&
                                      mc_overview_ordinals_add(changed->old, ordinal))
            visit(baton, ordinal, row->fields[1].data, (size_t)row->fields[1].size);
    }
    mc_postgres_end(result);
    return error == MC_OK ? mc_overview_run(table, "SET LOCAL enable_seqscan = off") : error;
}
