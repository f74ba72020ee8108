/* Simplifying of shapes that are small enough for numbers of 16 bits: as simplify.c, in half the time. */
#ifndef MC_VECTOR_GEOMETRY_SIMPLIFY_SMALL_H
#define MC_VECTOR_GEOMETRY_SIMPLIFY_SMALL_H

#include "vector/geometry/shape.h"

/* Whether mc_simplify_small_part can be used for the parts of a shape here; *middle: of its box. */
bool mc_simplify_is_small(mc_shape_point *middle, const mc_shape *shape, int64_t tolerance);

/* Writes what is left of a part, for which there is room for one vertex more than it has; returns how many. tolerance:
 * in quarters of a unit. */
int mc_simplify_small_part(mc_shape_point *out, const mc_shape_point *points, int count, bool closed, int64_t tolerance,
                           mc_shape_point middle);

#endif
