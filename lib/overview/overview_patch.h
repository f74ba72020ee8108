/* Bringing one level up to date where its table has changed. */
#ifndef MC_OVERVIEW_OVERVIEW_PATCH_H
#define MC_OVERVIEW_OVERVIEW_PATCH_H

#include "changes/box_set.h"
#include "overview/overview_blocks.h"
#include "overview/overview_table.h"

typedef struct mc_overview_patch mc_overview_patch;

/* What a patch has done. */
typedef struct mc_overview_patched {
    int64_t replaced, added, removed; /* features */
} mc_overview_patched;

/*
 * Begins to patch a level: reads its blocks that lie near the changed boxes, which are in units of the table's CRS.
 * *reason: why the level has to be built anew instead; else NULL. `name`: of the level's table. Lives as long as
 * `pool`.
 */
mc_error *mc_overview_patch_begin(mc_overview_patch **patch, const char **reason, mc_overview_level *level,
                                  const char *name, const mc_box_set *changed, const mc_overview_table *table,
                                  apr_pool_t *pool) MC_CHECKED;

/* By how much, in units of the CRS, rows may lie beside a changed box and be needed all the same. */
double mc_overview_patch_reach(const mc_overview_level *level, const mc_overview_job *job);

/* A row near a changed box, the one that is painted last first: all of them have to come. */
mc_error *mc_overview_patch_row(mc_overview_patch *patch, const mc_overview_row *row, apr_pool_t *scratch) MC_CHECKED;

/* Writes the blocks that have changed. level->kept: its features then. */
mc_error *mc_overview_patch_end(mc_overview_patched *patched, const char **reason, mc_overview_patch *patch) MC_CHECKED;

/* Boxes that cover the changed ones and what lies nearer than `reach`, as rows of x0, y0, x1, y1 in SQL. */
const char *mc_overview_boxes_sql(const mc_box_set *boxes, double reach, apr_pool_t *pool);

#endif
