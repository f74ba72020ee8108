/*
 * The target of painting: pixels, or an image of indexed colours. An indexed image is a quarter of the work to paint,
 * and needs no search for a palette when the image is encoded. There are two kinds of indexed canvas. A map of merged
 * layers only has exactly the colours that occur; the first paint that 256 indices cannot hold (the 257th colour, a
 * feature with colours of its own, a label) turns the canvas into pixels. A map that is painted feature by feature in
 * few inks has a palette from the start (draw/raster/ink_palette.h) and keeps the palette.
 */
#ifndef MC_DRAW_RASTER_CANVAS_H
#define MC_DRAW_RASTER_CANVAS_H

#include "draw/raster/ink_palette.h"
#include "image/png/indexed.h"

typedef struct mc_canvas {
    int width, height;
    mc_ink_palette *palette; /* NULL: the colours that occur, or pixels */
    bool indexable;          /* nothing has been painted that needs pixels */
    uint8_t ground[4];       /* premultiplied B, G, R, A: the colour before anything is painted */
    mc_indexed *indexed;     /* NULL: nothing painted yet, or not indexable */
    mc_pixels *pixels;       /* NULL until pixels are needed; a reference of the canvas */
    uint8_t *mask;           /* of one row */
    apr_pool_t *pool;
} mc_canvas;

/* A transparent canvas; `indexed`: of indexed colours as long as that is possible. mc_canvas_of: a canvas over pixels
 * that exist. Both live as long as `pool`. */
mc_canvas *mc_canvas_create(int width, int height, bool indexed, apr_pool_t *pool);
mc_canvas *mc_canvas_of(mc_pixels *pixels, apr_pool_t *pool);

/* A canvas with a palette; canvas and palette live as long as `pool`. */
mc_error *mc_canvas_create_with_palette(mc_canvas **canvas, int width, int height, mc_ink_palette *palette,
                                        apr_pool_t *pool) MC_CHECKED;

/* Lays one colour under everything. To be called before anything is painted, on a canvas of mc_canvas_create, or on a
 * canvas with a palette that has the colour as an ink. */
void mc_canvas_set_ground(mc_canvas *canvas, mc_color color);

/* The image of indexed colours; NULL where there are pixels. */
mc_error *mc_canvas_indexed(mc_indexed **image, mc_canvas *canvas) MC_CHECKED;

/* The pixels, to be painted on. From then on the canvas has no indices and no palette. */
mc_error *mc_canvas_pixels(mc_pixels **pixels, mc_canvas *canvas) MC_CHECKED;

/* As mc_brush_fill and mc_brush_outline. On a canvas without pixels the plane must be coarse. With a palette, the
 * colour must be one of the palette's inks. */
mc_error *mc_canvas_fill(mc_canvas *canvas, mc_area *coverage, mc_fill_rule rule, mc_color color) MC_CHECKED;
mc_error *mc_canvas_outline(mc_canvas *canvas, mc_outline *outline, mc_color color) MC_CHECKED;

/* As mc_brush_row, on a canvas that has a palette or pixels already. */
void mc_canvas_row(mc_canvas *canvas, int x, int y, const uint8_t *mask, int count, mc_color color);

/* A colour for many small pieces, on a canvas that has a palette or pixels already. */
typedef struct mc_canvas_ink {
    mc_color color;
    const uint8_t (*steps)[MC_INK_STEPS]; /* NULL: there are pixels */
} mc_canvas_ink;
mc_canvas_ink mc_canvas_ink_of(const mc_canvas *canvas, mc_color color);

/* Lays sixteen pixels of each of some rows, whose masks, `stride` bytes apart, become empty; or four of four rows. Some
 * of them may lie beside the canvas. */
enum { MC_CANVAS_PIECE = 16, MC_CANVAS_SQUARE = 4 };
void mc_canvas_column(mc_canvas *canvas, int x, int y, int rows, uint8_t *masks, size_t stride,
                      const mc_canvas_ink *ink);
void mc_canvas_square(mc_canvas *canvas, int x, int y, const uint8_t mask[MC_CANVAS_PIECE], const mc_canvas_ink *ink);

/* Rows of a canvas that has a palette or pixels already, as a canvas of their own without a copy; the canvas may only
 * be painted on. Bands that have no row in common may be painted on different threads. */
mc_canvas *mc_canvas_band(const mc_canvas *canvas, int top, int height, apr_pool_t *pool);

/* Lays a whole canvas over another one of the same size. Where the palettes differ, the lower canvas is turned into
 * pixels. */
mc_error *mc_canvas_over(mc_canvas *lower, mc_canvas *upper) MC_CHECKED;

#endif
