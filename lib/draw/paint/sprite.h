/*
 * Marks that look the same at many points are painted once and copied: for each eighth of a pixel, across and down,
 * that a point may be off, so that a mark is at most a sixteenth of a pixel from where it belongs.
 */
#ifndef MC_DRAW_PAINT_SPRITE_H
#define MC_DRAW_PAINT_SPRITE_H

#include "draw/paint/graphic.h"

/* Draws a mark that is small and of plain colours. *done is false, and nothing has been drawn, for other marks. */
mc_error *mc_sprite_draw(bool *done, mc_painter *painter, mc_canvas *canvas, const mc_drawing *drawing,
                         mc_shape_point at, const mc_feature *feature) MC_CHECKED;

#endif
