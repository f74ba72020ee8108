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

/* What a part of a shape is, for whoever ends it. */
typedef enum mc_warp_part {
    MC_WARP_AS_IS, /* a line, a point, or a ring that keeps its direction */
    MC_WARP_OUTER, /* rings that get the direction of what they are (mc_shape_end_ring) */
    MC_WARP_HOLE,
} mc_warp_part;

/* Into the pixels of a grid. `turn`: of the CRS of the map (mc_projection_turn). Uses the projection as long as `pool`
 * lives; of one thread. */
mc_warp *mc_warp_create(const mc_projection *projection, const mc_pixel_grid *pixel_grid, double turn,
                        apr_pool_t *pool);

/* Room for `count` vertices, x and y in turn, in units of the data. The caller fills the room, then calls mc_warp_add.
 * NULL without memory. */
double *mc_warp_vertices(mc_warp *warp, size_t count);

/*
 * Adds the first `count` of those vertices as a new part, in points of the pixel grid; the caller ends the part. Where
 * a straight line between two vertices would be more than a quarter of a pixel off, further vertices are added between
 * the two. Vertices that cannot be transformed are left out. False where no vertex is left.
 *
 * A line or ring that goes on beyond the antimeridian, where transformed longitudes jump by a turn, goes on there, and
 * is added once more for the other edge of the world, as a part of its own. A ring around a pole stays as it is.
 */
bool mc_warp_add(mc_shape *shape, const mc_pixel_grid *pixel_grid, size_t count, mc_warp_part part);

/*
 * The size of a pixel of the grid in units of the data: the smallest size at any of a net of points in a box of the
 * data. 0 where the box is not finite, or nothing in it can be transformed.
 */
double mc_pixel_grid_pixel_size(const mc_pixel_grid *pixel_grid, const mc_extent *box);

#endif
