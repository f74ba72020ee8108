/* Boxes that cover what lies near changed boxes: few, and hardly over each other, however many changes there are. */
#ifndef MC_OVERVIEW_OVERVIEW_COVER_H
#define MC_OVERVIEW_OVERVIEW_COVER_H

#include <apr_tables.h>

#include "changes/box_set.h"

/* Boxes (mc_extent) that together hold every box of the set, which has at least one, made wider by `reach` above 0 on
 * all sides; they meet each other at their sides alone. All in the same units. */
apr_array_header_t *mc_overview_cover(const mc_box_set *boxes, double reach, apr_pool_t *pool);

#endif
