/* What of a shape matters for a map: a coast of a continent has a hundred thousand vertices, of which a map of a town
 * shows ten. */
#ifndef MC_VECTOR_GEOMETRY_SHAPE_PRUNE_H
#define MC_VECTOR_GEOMETRY_SHAPE_PRUNE_H

#include "vector/geometry/shape.h"

/*
 * The lines or rings of `shape` with as few vertices as paint the same on a map of width x height pixels, by fills and
 * by strokes that reach at most `reach` pixels from the line and do not depend on its length: where a run of vertices
 * lies beyond one side of the map (and the reach), only its first and last are left. The areas of the edges between
 * them sum up to the same, to the last bit, wherever the map is: to nothing, or left of it to its rows. Gives `shape`
 * itself where that is not worth a look, else `scratch`.
 */
const mc_shape *mc_shape_prune(const mc_shape *shape, mc_shape *scratch, int width, int height, double reach);

#endif
