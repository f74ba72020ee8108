/* Arcs of circles, as curves of SQL/MM have them, as lines. */
#ifndef MC_FEATURE_ARC_H
#define MC_FEATURE_ARC_H

#include "feature/shape.h"

/*
 * Adds the arc from `a` over `b` to `c` (x, y in units of the CRS) without `a` itself. Its chords are at most an eighth
 * of a pixel off, and depend on the arc and the size of a pixel alone. Where `a` is `c` it is a circle, and `b` the
 * point opposite (ISO/IEC 13249-3, 4.2.6); points in a line are a line. False where it is not finite.
 */
bool mc_shape_add_arc(mc_shape *shape, const mc_lattice *lattice, const double a[2], const double b[2],
                      const double c[2]);

#endif
