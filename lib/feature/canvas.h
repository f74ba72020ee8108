/*
 * What layers are painted on. A map whose layers are plain begins as an image of indexed colours, which is a quarter of
 * the work to paint and needs no look for a palette when it is encoded; the first thing that this cannot hold (the
 * 257th colour, a feature with colours of its own, a label) makes pixels of it. What is seen is the same either way.
 */
#ifndef MC_FEATURE_CANVAS_H
#define MC_FEATURE_CANVAS_H

#include "feature/brush.h"
#include "image/indexed.h"

typedef struct mc_canvas {
    int width, height;
    bool indexable;      /* nothing has been painted that needs pixels */
    uint8_t ground[4];   /* premultiplied B, G, R, A: what it is before anything is painted */
    mc_indexed *indexed; /* NULL: nothing painted yet, or not indexable */
    mc_pixels *pixels;   /* NULL until they are needed; a reference of the canvas */
    uint8_t *mask;       /* of one row */
    apr_pool_t *pool;
} mc_canvas;

/* Transparent; indexed: as long as may be. Or one whose pixels are there already. They live as long as `pool`. */
mc_canvas *mc_canvas_create(int width, int height, bool indexed, apr_pool_t *pool);
mc_canvas *mc_canvas_of(mc_pixels *pixels, apr_pool_t *pool);

/* One colour under everything instead of none; before anything is painted, of a canvas made by mc_canvas_create. */
void mc_canvas_set_ground(mc_canvas *canvas, mc_color color);

/* The image of indexed colours; NULL where there are pixels. */
mc_error *mc_canvas_indexed(mc_indexed **image, mc_canvas *canvas) MC_CHECKED;

/* The pixels, to be painted on. */
mc_error *mc_canvas_pixels(mc_pixels **pixels, mc_canvas *canvas) MC_CHECKED;

/* As mc_brush_fill and mc_brush_outline, of planes that are coarse. */
mc_error *mc_canvas_fill(mc_canvas *canvas, mc_area *coverage, mc_fill_rule rule, mc_color color) MC_CHECKED;
mc_error *mc_canvas_outline(mc_canvas *canvas, mc_outline *outline, mc_color color) MC_CHECKED;

#endif
