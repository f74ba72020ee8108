/* Strokes of any width as areas: joins, caps, dashes, lines beside the line. */
#ifndef MC_DRAW_RASTER_STROKER_H
#define MC_DRAW_RASTER_STROKER_H

#include "draw/raster/area.h"
#include "draw/raster/pen.h"

/*
 * Adds the stroke of all parts of a shape (rings are closed) to a plane, to be read by MC_NON_ZERO. Everything is
 * computed from the line's own vertices, so the stroke is the same in every tile. `scratch` is used for dashes and
 * lines beside the line.
 */
void mc_stroker_add(mc_area *coverage, const mc_shape *shape, const mc_pen *pen, mc_shape *scratch);

/* A segment, and the part of the segment that a map may show. Lengths are in 1/256 pixel, from the segment's start. */
typedef struct mc_stretch {
    double ux, uy, length;
    double from, to;
} mc_stretch;

/* The part of the segment from a to b within `reach` (1/256 pixel) of the map. False where there is no such part. */
bool mc_stroker_stretch(mc_stretch *stretch, mc_shape_point a, mc_shape_point b, int width, int height, double reach);

/* The line beside a line or ring, `offset` 1/256 pixels to the left. */
void mc_stroker_beside(mc_shape *out, const mc_shape_point *points, int count, bool closed, double offset);

#endif
