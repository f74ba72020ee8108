/* Bringing one level up to date where its table has changed. */
#ifndef MC_OVERVIEW_OVERVIEW_PATCH_H
#define MC_OVERVIEW_OVERVIEW_PATCH_H

#include "overview/update/overview_changed.h"
#include "overview/update/overview_reveal.h"

/* What a patch has done, in features. */
typedef struct mc_overview_patched {
    int64_t added, removed;
    int64_t looked;   /* rows that were looked at because what hid them has gone */
    const char *gone; /* what has gone and is remembered, as bytes in SQL */
} mc_overview_patched;

/*
 * Brings a level up to date. *reason: why the level has to be built anew instead; else NULL. `name`: of the level's
 * table; `gone`: what has gone before, and `gone_size` bytes of it. level->kept: its features then.
 */
mc_error *mc_overview_patch_level(mc_overview_patched *patched, const char **reason, mc_overview_level *level,
                                  const char *name, const void *gone, size_t gone_size, mc_overview_changed *changed,
                                  const mc_overview_table *table, apr_pool_t *pool) MC_CHECKED;

#endif
