/*
 * Lines and rings of another CRS than the map's: their vertices are transformed, and an edge that would bend gets
 * further vertices. The result depends on the data and the level, never on the tile.
 */
#ifndef MC_VECTOR_GEOMETRY_WARP_H
#define MC_VECTOR_GEOMETRY_WARP_H

#include <stddef.h>

#include "vector/crs/projection.h"
#include "vector/geometry/shape.h"

typedef struct mc_warp mc_warp;

/* Into the pixels of a grid. Uses the projection as long as `pool` lives; of one thread. */
mc_warp *mc_warp_create(const mc_projection *projection, const mc_pixel_grid *pixel_grid, apr_pool_t *pool);

/* Room for `count` vertices, x and y in turn, in units of the data. The caller fills the room, then calls mc_warp_add.
 * NULL without memory. */
double *mc_warp_vertices(mc_warp *warp, size_t count);

/*
 * Adds the first `count` of those vertices to the part that is being made, as points of the pixel grid. Where a
 * straight line between two vertices would be more than a quarter of a pixel off, further vertices are added between
 * the two. Vertices that cannot be transformed are left out. False where no vertex is left.
 */
bool mc_warp_add(mc_shape *shape, const mc_pixel_grid *pixel_grid, size_t count);

/*
 * The size of a pixel of the grid in units of the data: the smallest size at any of a net of points in a box of the
 * data. 0 where the box is not finite, or nothing in it can be transformed.
 */
double mc_pixel_grid_pixel_size(const mc_pixel_grid *pixel_grid, const mc_extent *box);

#endif
