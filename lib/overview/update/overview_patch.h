/* Bringing one level up to date where its table has changed. */
#ifndef MC_OVERVIEW_OVERVIEW_PATCH_H
#define MC_OVERVIEW_OVERVIEW_PATCH_H

#include "overview/reveal/overview_reveal.h"
#include "overview/update/overview_changed.h"

/* A level that is patched, and what that has done, in features. */
typedef struct mc_overview_patched {
    mc_overview_level *level;
    const char *name; /* of the level's table */
    struct {
        const void *bytes; /* (overview_gone.h) */
        size_t size;
    } went; /* what has gone before */
    int64_t added, removed;
    int64_t looked;   /* rows that were looked at because what hid them has gone */
    const char *gone; /* what has gone and is remembered, as bytes in SQL */
} mc_overview_patched;

/*
 * Brings all levels of a table, the finest first, up to date. *reason: why they have to be built anew instead; else
 * NULL. level->kept: its features then.
 */
mc_error *mc_overview_patch_levels(const char **reason, mc_overview_patched *levels, int count,
                                   mc_overview_changed *changed, const mc_overview_table *table,
                                   apr_pool_t *pool) MC_CHECKED;

#endif
