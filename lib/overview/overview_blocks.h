/* Writing the blocks of a level (vector/levels/level_blocks.h). */
#ifndef MC_OVERVIEW_OVERVIEW_BLOCKS_H
#define MC_OVERVIEW_OVERVIEW_BLOCKS_H

#include "overview/overview_private.h"
#include "vector/geometry/wkb_pack.h"

typedef struct mc_overview_blocks mc_overview_blocks;

/* A feature of a level; its bounds are in pixels of the level, on the lattice of the grid. */
typedef struct mc_overview_feature {
    int64_t ordinal; /* of its row */
    mc_extent bounds;
    const char *const *values;
    const void *geometry;
    size_t size;
    bool packed; /* TWKB, else WKB */
} mc_overview_feature;

/* Room for packing one feature after the other. Begins as zeros. */
typedef struct mc_overview_packing {
    mc_wkb_buffer thinned, packed;
} mc_overview_packing;

/* Makes the geometry of a row what the level has of it, thinned and packed, until the next call; what cannot be thinned
 * or packed stays as it is. MC_ERR_UNAVAILABLE: there is no memory. */
mc_error *mc_overview_pack(mc_overview_feature *feature, mc_overview_packing *packing, const mc_overview_level *level,
                           const mc_overview_job *job) MC_CHECKED;
void mc_overview_free_packing(mc_overview_packing *packing);

/* For a level that the store has created. Lives as long as `pool`. */
mc_overview_blocks *mc_overview_blocks_create(mc_overview_level *level, const mc_overview_job *job, apr_pool_t *pool);

/* The cell of the plane in whose block a feature is. */
typedef struct mc_overview_cell {
    int wideness; /* how often its side is twice that of the smallest */
    int64_t column, row;
} mc_overview_cell;

/* `bounds` in pixels of the level; `smallest`: level->cell. */
mc_overview_cell mc_overview_find_cell(const mc_extent *bounds, int smallest);

/* Adds a feature, those of one window after each other. Windows before are written to the store. */
mc_error *mc_overview_blocks_add(mc_overview_blocks *blocks, const mc_overview_feature *feature) MC_CHECKED;

/* Writes what is left. */
mc_error *mc_overview_blocks_finish(mc_overview_blocks *blocks) MC_CHECKED;

#endif
