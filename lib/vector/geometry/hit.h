/* Which features lie under a point of the map. */
#ifndef MC_VECTOR_GEOMETRY_HIT_H
#define MC_VECTOR_GEOMETRY_HIT_H

#include "vector/geometry/geometry.h"

/* Whether the point is inside of the rings: the number of edges that a ray to the right crosses is odd. */
bool mc_shape_covers(const mc_shape *areas, mc_shape_point point);

/* The squared distance of a point from the segment from a to b. */
double mc_shape_squared_from(mc_shape_point point, mc_shape_point a, mc_shape_point b);

/* Whether an area of the geometry covers the point, or a line or a point of it is at most `reach` away (1/256 pixel).
 */
bool mc_geometry_hit(const mc_geometry *geometry, mc_shape_point point, int32_t reach);

#endif
