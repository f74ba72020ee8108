/* Writing the blocks of a level (vector/levels/level_blocks.h). */
#ifndef MC_OVERVIEW_OVERVIEW_BLOCKS_H
#define MC_OVERVIEW_OVERVIEW_BLOCKS_H

#include "overview/overview_private.h"
#include "vector/geometry/wkb_pack.h"

typedef struct mc_overview_blocks mc_overview_blocks;

/* A feature of a level; its bounds are in pixels of the level, on the lattice of the grid. */
typedef struct mc_overview_feature {
    mc_extent bounds;
    const char *const *values;
    const void *geometry;
    size_t size;
    bool packed; /* TWKB, else WKB */
} mc_overview_feature;

/* For a level that the store has created. Lives as long as `pool`. */
mc_overview_blocks *mc_overview_blocks_create(mc_overview_level *level, const mc_overview_job *job, apr_pool_t *pool);

/* Adds a feature; the one that is painted last comes first. Full windows are written to the store. */
mc_error *mc_overview_blocks_add(mc_overview_blocks *blocks, const mc_overview_feature *feature) MC_CHECKED;

/* Writes what is left. */
mc_error *mc_overview_blocks_finish(mc_overview_blocks *blocks) MC_CHECKED;

#endif
