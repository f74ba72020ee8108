/* What a map of another CRS covers of a grid: its box there, over the antimeridian and around poles. */
#ifndef MC_SOURCE_TILES_MOSAIC_COVER_H
#define MC_SOURCE_TILES_MOSAIC_COVER_H

#include "mapcache/source.h"
#include "vector/crs/projection.h"

typedef struct mc_mosaic_cover {
    /* In the grid's CRS. With a turn, minx is within the turn that begins at the grid's western edge, and maxx may lie
     * east of the turn's end, but not by a whole turn. */
    mc_extent box;
    double resolution; /* units of the grid's CRS for a pixel of the map; 0: unknown */
} mc_mosaic_cover;

/*
 * By a lattice of places in the map, its inside included, and by the poles. `turn`: mc_projection_turn of the grid's
 * CRS. *found is false where no place of the map is one of the grid's CRS. MC_ERR_CONFIG as of mc_projection_open.
 */
mc_error *mc_mosaic_cover_map(mc_mosaic_cover *cover, bool *found, const mc_projection *projection, const mc_grid *grid,
                              double turn, const mc_render *wanted, apr_pool_t *pool) MC_CHECKED;

#endif
