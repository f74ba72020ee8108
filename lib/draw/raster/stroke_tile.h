/*
 * Strokes of features that are painted one by one. Most of these strokes are small: a small stroke is painted in a
 * small plane of its own, and laid on the canvas from there.
 */
#ifndef MC_DRAW_RASTER_STROKE_TILE_H
#define MC_DRAW_RASTER_STROKE_TILE_H

#include "draw/raster/canvas.h"
#include "draw/raster/pen.h"

typedef struct mc_stroke_tile mc_stroke_tile;

mc_error *mc_stroke_tile_create(mc_stroke_tile **tile, apr_pool_t *pool) MC_CHECKED;

/* Paints the lines of a shape in one colour. False, and nothing painted, where the stroke is larger than the small
 * plane. `thin`: by mc_outline_add, else by mc_bands_add. */
bool mc_stroke_tile_paint(mc_stroke_tile *tile, mc_canvas *canvas, const mc_shape *shape, const mc_pen *pen, bool thin,
                          mc_color color);

#endif
