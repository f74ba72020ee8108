/*
 * Strokes of some pixels' width without dashes, as bands: a piece for each segment, cut where its neighbours begin, and
 * one for each join or end that is not straight. Each piece is the inside of a few lines. The coverage of a pixel
 * follows from the pixel's distance to these lines: eight pixels at a time, a third of the work of an outline whose
 * area is summed.
 */
#ifndef MC_DRAW_RASTER_BANDS_H
#define MC_DRAW_RASTER_BANDS_H

#include "draw/raster/outline.h"
#include "draw/raster/pen.h"

/* Whether a stroke can be painted as bands. mc_stroker_add paints all other strokes: dashes, lines beside the line,
 * wide pens, lines too long for single precision. */
bool mc_bands_suit(const mc_shape *shape, const mc_pen *pen);

/* Pixels that a stroke may reach around its line. */
double mc_bands_reach(const mc_pen *pen);

/* Adds the stroke of all parts of a shape (rings are closed), for which mc_bands_suit is true. The plane holds nothing
 * but bands: the coverages of all pieces in a pixel are summed. */
void mc_bands_add(mc_outline *outline, const mc_shape *shape, const mc_pen *pen);

#endif
