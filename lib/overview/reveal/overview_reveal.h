/*
 * What can be seen in levels once features of them are gone: rows of the table that they hid. A plane that two levels
 * have in common is looked at once, with the features that both have.
 */
#ifndef MC_OVERVIEW_OVERVIEW_REVEAL_H
#define MC_OVERVIEW_OVERVIEW_REVEAL_H

#include "overview/overview_blocks.h"
#include "overview/reveal/overview_ordinals.h"

typedef struct mc_overview_reveal mc_overview_reveal;
struct mc_workers;

typedef enum mc_reveal_role {
    MC_REVEAL_STAYS, /* in the level */
    MC_REVEAL_NEW,   /* in the level, since now */
    MC_REVEAL_GONE,  /* it was in the level until now */
    MC_REVEAL_WENT,  /* it was in the level when that was built, and went before now: it opens pixels only */
    MC_REVEAL_ROW,   /* of the table, and not in all levels of the plane */
} mc_reveal_role;

/* A row of the table that may be seen. */
typedef struct mc_reveal_row {
    mc_overview_feature feature; /* whose bounds are not set */
    mc_extent extent;            /* of its geometry, in units of the CRS */
    uint32_t looked, seen;       /* in which levels it was looked at, and where it is seen: a bit for each */
} mc_reveal_row;

/* A feature, as planes look at it. */
typedef struct mc_reveal_item {
    const mc_overview_feature *feature; /* whose bounds are set, unless it is that of a row */
    const char *const *values;
    mc_reveal_role role;
    mc_reveal_row *row; /* that it is; else NULL */
    bool seen;          /* that row, in the plane that looks at it */
} mc_reveal_item;

/* Rows that may be seen now: those that touch the box (units of the CRS) and whose ordinals lie between. */
typedef struct mc_reveal_wanted {
    mc_extent box;
    int64_t above, below;
    int plane;
} mc_reveal_wanted;

/* One of the levels, the finest first: there are at most 32. */
typedef struct mc_reveal_level {
    const mc_overview_level *level;
    const apr_array_header_t *gone;    /* pointers to the items of all features that have gone */
    const mc_overview_ordinals *known; /* features that it has, new ones too */
} mc_reveal_level;

/* Of levels from one or more of which features have gone. *fits false: they lie too far from each other. `workers`,
 * NULL: none, look at planes beside the caller. Lives as long as `pool`. */
mc_error *mc_overview_reveal_create(mc_overview_reveal **reveal, bool *fits, const mc_reveal_level *levels, int count,
                                    const mc_overview_job *job, struct mc_workers *workers,
                                    apr_pool_t *pool) MC_CHECKED;

/* A feature of a level that stays, is new or has gone now, whose bounds are set: it is looked at where it can touch a
 * pixel of a plane. It lives as long as the pool. Levels may be filled by threads of their own. */
void mc_overview_reveal_add(mc_overview_reveal *reveal, int level, const mc_overview_feature *feature,
                            mc_reveal_role role);

/* Which rows of the table may be seen: mc_reveal_wanted. All features were added. */
mc_error *mc_overview_reveal_find(apr_array_header_t *wanted, mc_overview_reveal *reveal) MC_CHECKED;

/* Whether all levels that a plane tells about have a row. */
bool mc_overview_reveal_knows(const mc_overview_reveal *reveal, uint32_t plane, int64_t ordinal);

/* Which levels have a row: a bit for each. */
uint32_t mc_overview_reveal_levels(const mc_overview_reveal *reveal, int64_t ordinal);

/* Whether a row, wherever it lies, may be wanted; and whether it is among those that are wanted, of which no more is
 * known. Bounds in units of the CRS; `have`: the levels that have it. */
bool mc_overview_reveal_may_want(const mc_overview_reveal *reveal, int64_t ordinal, uint32_t have);
bool mc_overview_reveal_wants(const mc_overview_reveal *reveal, const mc_extent *extent, int64_t ordinal,
                              uint32_t have);

/* Sets `looked` and `seen` of rows, mc_reveal_row, the last one first. */
mc_error *mc_overview_reveal_sift(mc_overview_reveal *reveal, apr_array_header_t *rows) MC_CHECKED;

#endif
