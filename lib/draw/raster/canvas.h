/*
 * What layers are painted on: pixels, or an image of indexed colours, which is a quarter of the work to paint and needs
 * no look for a palette when it is encoded. There are two kinds of these. A map whose layers are painted whole has the
 * colours that occur, exactly; the first thing that this cannot hold (the 257th colour, a feature with colours of its
 * own, a label) makes pixels of it. A map that is painted feature by feature in few inks has a palette from the start
 * (draw/raster/ink_palette.h) and stays one.
 */
#ifndef MC_DRAW_RASTER_CANVAS_H
#define MC_DRAW_RASTER_CANVAS_H

#include "draw/raster/ink_palette.h"
#include "image/png/indexed.h"

typedef struct mc_canvas {
    int width, height;
    mc_ink_palette *palette; /* its palette; NULL: the colours that occur, or pixels */
    bool indexable;          /* nothing has been painted that needs pixels */
    uint8_t ground[4];       /* premultiplied B, G, R, A: what it is before anything is painted */
    mc_indexed *indexed;     /* NULL: nothing painted yet, or not indexable */
    mc_pixels *pixels;       /* NULL until they are needed; a reference of the canvas */
    uint8_t *mask;           /* of one row */
    apr_pool_t *pool;
} mc_canvas;

/* Transparent; indexed: as long as may be. Or one whose pixels are there already. They live as long as `pool`. */
mc_canvas *mc_canvas_create(int width, int height, bool indexed, apr_pool_t *pool);
mc_canvas *mc_canvas_of(mc_pixels *pixels, apr_pool_t *pool);

/* With a palette, which lives as long as `pool`. */
mc_error *mc_canvas_create_with_palette(mc_canvas **canvas, int width, int height, mc_ink_palette *palette,
                                        apr_pool_t *pool) MC_CHECKED;

/* One colour under everything instead of none; before anything is painted, of a canvas made by mc_canvas_create or, if
 * the colour is one of its inks, with a palette. */
void mc_canvas_set_ground(mc_canvas *canvas, mc_color color);

/* The image of indexed colours; NULL where there are pixels. */
mc_error *mc_canvas_indexed(mc_indexed **image, mc_canvas *canvas) MC_CHECKED;

/* The pixels, to be painted on: the canvas has no indices and no palette any more. */
mc_error *mc_canvas_pixels(mc_pixels **pixels, mc_canvas *canvas) MC_CHECKED;

/* As mc_brush_fill and mc_brush_outline; unless there are pixels, of planes that are coarse. With a palette, the colour
 * is one of its inks. */
mc_error *mc_canvas_fill(mc_canvas *canvas, mc_area *coverage, mc_fill_rule rule, mc_color color) MC_CHECKED;
mc_error *mc_canvas_outline(mc_canvas *canvas, mc_outline *outline, mc_color color) MC_CHECKED;

/* As mc_brush_row, on a canvas that has a palette or pixels already. */
void mc_canvas_row(mc_canvas *canvas, int x, int y, const uint8_t *mask, int count, mc_color color);

/* A colour that is laid in many small pieces, on a canvas that has a palette or pixels already. */
typedef struct mc_canvas_ink {
    mc_color color;
    const uint8_t (*steps)[MC_INK_STEPS]; /* NULL: there are pixels */
} mc_canvas_ink;
mc_canvas_ink mc_canvas_ink_of(const mc_canvas *canvas, mc_color color);

/* Lays sixteen pixels of a row, or four of four rows, some of which may lie beside the canvas. */
enum { MC_CANVAS_PIECE = 16, MC_CANVAS_SQUARE = 4 };
void mc_canvas_piece(mc_canvas *canvas, int x, int y, const uint8_t mask[MC_CANVAS_PIECE], const mc_canvas_ink *ink);
void mc_canvas_square(mc_canvas *canvas, int x, int y, const uint8_t mask[MC_CANVAS_PIECE], const mc_canvas_ink *ink);

/* Lays a whole canvas of the same size over another; both have the same palette, or pixels are made of the lower one.
 */
mc_error *mc_canvas_over(mc_canvas *lower, mc_canvas *upper) MC_CHECKED;

#endif
