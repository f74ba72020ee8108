/* From coverage to pixels: a colour laid through a mask. */
#ifndef MC_DRAW_RASTER_BRUSH_H
#define MC_DRAW_RASTER_BRUSH_H

#include "draw/raster/area.h"
#include "draw/raster/color.h"
#include "draw/raster/outline.h"
#include "mapcache/image.h"

/* Lays the colour over one premultiplied B, G, R, A. */
void mc_brush_color(uint8_t bgra[4], mc_color color, uint8_t mask);

/* value * factor / 255, rounded. */
static inline unsigned
mc_brush_scaled(unsigned value, unsigned factor)
{
    unsigned product = value * factor + 128;
    return (product + (product >> 8)) >> 8;
}

/* Lays one premultiplied pixel over another, as far as its mask says. */
static inline void
mc_brush_pixel(uint8_t *target, const uint8_t *source, unsigned mask)
{
    unsigned rest = 255 - mc_brush_scaled(source[3], mask);
    for (int c = 0; c < 4; c++)
        target[c] = (uint8_t)(mc_brush_scaled(source[c], mask) + mc_brush_scaled(target[c], rest));
}

/* Lays the colour over pixels x .. x + count - 1 of row y, each as far as its mask says. */
void mc_brush_row(mc_pixels *target, int x, int y, const uint8_t *mask, int count, mc_color color);

/* The same with a cell of premultiplied pixels that is repeated, from its pixel (column, row) on. */
void mc_brush_cells(mc_pixels *target, int x, int y, const uint8_t *mask, int count, const mc_pixels *cell, int column,
                    int row);

/* Lays the coverage that a plane holds over the target, and empties the plane. */
void mc_brush_fill(mc_pixels *target, mc_area *coverage, mc_fill_rule rule, mc_color color, uint8_t *mask);
void mc_brush_outline(mc_pixels *target, mc_outline *outline, mc_color color);

#endif
