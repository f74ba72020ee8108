/* Rows of the table that may be seen in a level now. */
#ifndef MC_OVERVIEW_OVERVIEW_WANTED_H
#define MC_OVERVIEW_OVERVIEW_WANTED_H

#include "overview/update/overview_changed.h"
#include "overview/update/overview_patch_blocks.h"
#include "overview/update/overview_reveal.h"

/* Joins what is wanted (mc_reveal_wanted) where it lies close together: all rows are still wanted. */
void mc_overview_join_wanted(apr_array_header_t *wanted);

/* The ordinals, int64_t, of rows that are wanted and that are neither in the level nor new; NULL: they are too many.
 * `wanted` is joined. */
mc_error *mc_overview_find_wanted(apr_array_header_t **ordinals, apr_array_header_t *wanted,
                                  const mc_overview_reveal *reveal, const mc_patch_blocks *blocks,
                                  mc_overview_changed *changed) MC_CHECKED;

#endif
