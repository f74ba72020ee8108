/* Lines and rings with fewer vertices. */
#ifndef MC_VECTOR_GEOMETRY_SIMPLIFY_H
#define MC_VECTOR_GEOMETRY_SIMPLIFY_H

#include "vector/geometry/shape.h"

/* Copies a shape without the vertices that are at most `tolerance` units (in whole quarters) beside the line between
 * those that stay. The first vertex of each part stays. */
void mc_shape_simplify(mc_shape *out, const mc_shape *in, double tolerance);

#endif
