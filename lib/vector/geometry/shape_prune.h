/* Shapes without the vertices that a map cannot show: the coast of a continent has a hundred thousand vertices, and a
 * map of a town shows ten of these. */
#ifndef MC_VECTOR_GEOMETRY_SHAPE_PRUNE_H
#define MC_VECTOR_GEOMETRY_SHAPE_PRUNE_H

#include "vector/geometry/shape.h"

/*
 * The lines or rings of `shape` with as few vertices as paint the same on a map of width x height pixels, by fills and
 * by strokes that reach at most `reach` pixels from the line and do not depend on its length: where a run of vertices
 * lies beyond one side of the map (and the reach), only the first and the last vertex of the run are kept. The result
 * paints the same to the last bit: an edge beyond the map adds no area to any pixel of the map, except that an edge to
 * the left of the map adds its height to the rows of the map, and the heights of a run's edges have the same sum as the
 * height of the one edge that replaces the run. Returns `shape` itself where pruning does not pay, else `scratch`.
 */
const mc_shape *mc_shape_prune(const mc_shape *shape, mc_shape *scratch, int width, int height, double reach);

#endif
