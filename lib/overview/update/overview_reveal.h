/*
 * What can be seen in a level once features of it are gone: rows of the table that they hid.
 */
#ifndef MC_OVERVIEW_OVERVIEW_REVEAL_H
#define MC_OVERVIEW_OVERVIEW_REVEAL_H

#include "overview/overview_blocks.h"

typedef struct mc_overview_reveal mc_overview_reveal;

typedef enum mc_reveal_role {
    MC_REVEAL_STAYS, /* in the level */
    MC_REVEAL_NEW,   /* in the level, since now */
    MC_REVEAL_GONE,  /* it was in the level until now */
    MC_REVEAL_WENT,  /* it was in the level when that was built, and went before now: it opens pixels only */
    MC_REVEAL_ROW,   /* of the table, and not in the level */
} mc_reveal_role;

/* A feature, whose bounds are set; they stand here once more, as most items are passed over for them. */
typedef struct mc_reveal_item {
    const mc_overview_feature *feature;
    mc_extent bounds;
    const char *const *values;
    mc_reveal_role role;
    bool seen; /* of a row: whether it is seen now */
} mc_reveal_item;

/* Rows that may be seen now: those that touch the box (units of the CRS) and whose ordinals lie between. */
typedef struct mc_reveal_wanted {
    mc_extent box;
    int64_t above, below;
} mc_reveal_wanted;

/* `gone`: pointers to the items of all features that have gone, one or more. *fits false: they lie too far from each
 * other. Lives as long as `pool`. */
mc_error *mc_overview_reveal_create(mc_overview_reveal **reveal, bool *fits, const mc_overview_level *level,
                                    const apr_array_header_t *gone, const mc_overview_job *job,
                                    apr_pool_t *pool) MC_CHECKED;

/* Whether a feature, whose bounds are set, can touch a pixel that is looked at. */
bool mc_overview_reveal_reaches(mc_overview_reveal *reveal, const mc_overview_feature *feature);

/* Which rows of the table may be seen: mc_reveal_wanted. `items`: pointers to all features that reach the pixels, the
 * one that is painted last first. */
mc_error *mc_overview_reveal_find(apr_array_header_t *wanted, mc_overview_reveal *reveal,
                                  const apr_array_header_t *items) MC_CHECKED;

/* Whether a row of which no more is known is among those. Bounds in pixels of the level. */
bool mc_overview_reveal_wants(const mc_overview_reveal *reveal, const mc_extent *bounds, int64_t ordinal);

/* Sets `seen` of the rows among the items. */
mc_error *mc_overview_reveal_sift(mc_overview_reveal *reveal, const apr_array_header_t *items) MC_CHECKED;

#endif
