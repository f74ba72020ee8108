/* A line or ring in units of its data, of straight pieces and arcs, before it becomes part of a shape. */
#ifndef MC_VECTOR_GEOMETRY_PATH_H
#define MC_VECTOR_GEOMETRY_PATH_H

#include <stddef.h>

#include "vector/geometry/shape.h"

typedef struct mc_path {
    double *xy; /* x and y in turn */
    size_t count, room;
    bool failed; /* too long, or no memory */
} mc_path;

void mc_path_free(mc_path *path);
void mc_path_add(mc_path *path, double x, double y);

/*
 * Adds the arc from `a` over `b` to `c` (x, y) without `a` itself. The chords are at most an eighth of a pixel off, and
 * depend on the arc and the level alone. Where `a` is `c`, the arc is a circle and `b` the opposite point (ISO/IEC
 * 13249-3, 4.2.6). Where the three points are in a line, the arc is a line.
 */
void mc_path_arc(mc_path *path, const mc_pixel_grid *pixel_grid, const double a[2], const double b[2],
                 const double c[2]);

/* Moves all vertices of a path to a new part, transformed where the pixel grid transforms. `hole`: of a polygon. False
 * where the caller has to drop the part, because a vertex is not finite. */
bool mc_path_move(mc_path *path, mc_shape *shape, const mc_pixel_grid *pixel_grid, bool hole);

#endif
