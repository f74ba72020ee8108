/* Which rows of a table have changed since its levels were read. */
#ifndef MC_OVERVIEW_OVERVIEW_CHANGED_H
#define MC_OVERVIEW_OVERVIEW_CHANGED_H

#include "changes/box_set.h"
#include "overview/overview_table.h"
#include "overview/reveal/overview_ordinals.h"

typedef struct mc_overview_changed {
    const mc_box_set *boxes;     /* where the log says that anything has changed, in units of the CRS */
    bool everywhere;             /* `old` has all rows; else those that lie near the boxes */
    double reach;                /* units of the CRS: how near */
    mc_overview_ordinals *old;   /* rows that the levels know as they are */
    mc_overview_ordinals *fresh; /* all others that touch the boxes */
    apr_array_header_t *rows;    /* mc_overview_row: the fresh ones, the last first */
    int64_t looked;              /* rows that were looked at */
    double table_rows;           /* about */
    double density;              /* rows in a square unit of the CRS, where rows have changed */
    const char *known;           /* of SQL: whether a row s is as the levels know it */
    apr_pool_t *pool;
} mc_overview_changed;

/*
 * Looks for the rows in and near the boxes, which are one or more; `resolution`: of the coarsest level. Whether a row
 * is as the levels know it is told by the transaction that wrote it. *reason: why the levels have to be built anew;
 * else NULL.
 */
mc_error *mc_overview_find_changed(mc_overview_changed *changed, const char **reason, const mc_box_set *boxes,
                                   double resolution, const mc_overview_table *table, apr_pool_t *pool) MC_CHECKED;

/* Visits one of the old rows, by its ordinal and its geometry as WKB, which is valid during the call. */
typedef void mc_overview_old_visitor(void *baton, int64_t ordinal, const void *geometry, size_t size);

/* Visits all old rows with geometry, in no order: reads the whole table. */
mc_error *mc_overview_visit_old(mc_overview_changed *changed, mc_overview_old_visitor *visit, void *baton,
                                const mc_overview_table *table) MC_CHECKED;

/* A limit of an update is no failure, but a reason to build the levels anew; other errors come back. */
mc_error *mc_overview_limit_reason(const char **reason, mc_error *error) MC_CHECKED;

/* Rows by their ordinals, which come as int64_t in any order and more than once; the last row first. MC_ERR_LIMIT: they
 * are too large to be held in memory. */
mc_error *mc_overview_read_ordinals(apr_array_header_t **rows, apr_array_header_t *ordinals,
                                    const mc_overview_table *table, apr_pool_t *pool) MC_CHECKED;

/* Boxes that cover the changed ones and what lies nearer than `reach`, as rows of x0, y0, x1, y1 in SQL. */
const char *mc_overview_boxes_sql(const mc_box_set *boxes, double reach, apr_pool_t *pool);

/* A ctid as SQL has it between quotes. */
const char *mc_overview_ctid_text(const mc_overview_table *table, int64_t ordinal, apr_pool_t *pool);

#endif
