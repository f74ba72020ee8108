/* Rows of the table that may be seen in a level now. */
#ifndef MC_OVERVIEW_OVERVIEW_WANTED_H
#define MC_OVERVIEW_OVERVIEW_WANTED_H

#include "overview/reveal/overview_reveal.h"
#include "overview/update/overview_changed.h"

/* Joins what is wanted (mc_reveal_wanted) where it lies close together: all rows are still wanted. */
void mc_overview_join_wanted(apr_array_header_t *wanted);

/* The ordinals, int64_t, of rows that are wanted and that are neither in all levels of a plane nor new; NULL: they are
 * too many for levels that have so many features. `wanted` is joined. Lives as long as `pool`. */
mc_error *mc_overview_find_wanted(apr_array_header_t **ordinals, apr_array_header_t *wanted,
                                  const mc_overview_reveal *reveal, int64_t kept, mc_overview_changed *changed,
                                  const mc_overview_table *table, apr_pool_t *pool) MC_CHECKED;

#endif
