/*
 * A region of the plane: polygons, lines and points, prepared so that a box of any size is compared with it in about
 * the time of a few comparisons, however many vertices it has. Coordinates are in units of a grid's CRS.
 */
#ifndef MC_SEED_REGION_H
#define MC_SEED_REGION_H

#include "mapcache/grid.h"

typedef struct mc_seed_region mc_seed_region;

typedef enum mc_region_relation { MC_REGION_OUTSIDE, MC_REGION_CROSSED, MC_REGION_INSIDE } mc_region_relation;

/* ---- building */

typedef struct mc_region_builder mc_region_builder;

typedef enum mc_region_kind { MC_REGION_POINT, MC_REGION_LINE, MC_REGION_RING, MC_REGION_HOLE } mc_region_kind;

/*
 * Begins a region in the CRS of `grid`. `srs` is the CRS of what will be added, x (longitude) first; NULL: the grid's.
 * Lines of another CRS are straight there: they are divided until their chords are less than half a pixel of
 * level `finest` off, and what lies far outside of the grid is cut off before it is transformed. Errors as of
 * mc_projection_open.
 */
mc_error *mc_region_begin(mc_region_builder **builder, const mc_grid *grid, int finest, const char *srs,
                          apr_pool_t *pool) MC_CHECKED;

/*
 * Adds a point, a line or a ring of `count` vertices, x and y in turn. A ring may be closed or not, and of any
 * orientation; a point may be many. MC_ERR_CORRUPT for coordinates that are not finite or have no place in the grid's
 * CRS, MC_ERR_LIMIT beyond twenty million vertices, or where they would bend into far more lines than were given.
 */
mc_error *mc_region_add(mc_region_builder *builder, mc_region_kind kind, const double *xy, size_t count,
                        apr_pool_t *pool) MC_CHECKED;

/* The region of all that was added; lives as long as the builder's pool. NULL where nothing was. */
mc_seed_region *mc_region_finish(mc_region_builder *builder);

/* ---- asking */

/*
 * How a box lies to the region. An area that only touches the box does not meet it, a line or a point that only touches
 * it does, within a tolerance: areas count from `inner` units inside the box on, lines and points up to `outer` units
 * around it. INSIDE and OUTSIDE hold for every box inside this one, with the same or larger tolerances of areas and the
 * same or smaller ones of lines. A point is inside where the rings wind around it, holes taken off.
 */
mc_region_relation mc_region_relate(const mc_seed_region *region, const mc_extent *box, double inner, double outer);

/* How tiles of a level lie to it, by the rule of the seeder: an edge within 1e-7 of a tile of a border lies on it. */
mc_region_relation mc_region_relate_tiles(const mc_seed_region *region, const mc_grid *grid, int z,
                                          const mc_tile_range *tiles);

/* Bounds of the region. */
mc_extent mc_region_bounds(const mc_seed_region *region);

/* A hash of all its coordinates. */
uint64_t mc_region_hash(const mc_seed_region *region);

/* Lines that bound it, as they were divided. */
size_t mc_region_size(const mc_seed_region *region);

#endif
