/* Well-known marks (OGC 05-077r4, 11.3.2) as shapes, and the reading of colours. */
#ifndef MC_FEATURE_MARK_H
#define MC_FEATURE_MARK_H

#include "feature/style.h"

/*
 * Puts the outline of a mark around a point of the map: `size` pixels high, turned clockwise by `rotation` degrees.
 * True where it has an inside; cross, x and line are strokes only.
 */
bool mc_mark_place(mc_shape *shape, mc_mark_shape mark, mc_shape_point at, double size, double rotation);

#endif
