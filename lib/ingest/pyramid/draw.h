/* Drawing the decoded rows of an image into one tile. */
#ifndef MC_INGEST_PYRAMID_DRAW_H
#define MC_INGEST_PYRAMID_DRAW_H

#include "ingest/pyramid/image_placement.h"
#include "ingest/pyramid/raster_strip.h"

/* One image on one level. */
typedef struct mc_draw {
    const mc_image_placement *placement;
    const mc_raster_strip *window;
    mc_ingest_resample mode; /* not AUTO */
    int z;
} mc_draw;

/* Whether AUTO means AVERAGE where one pixel of the level has `shrink` pixels of the image a side. */
bool mc_draw_shrinks(double shrink);

/*
 * Draws into tile x, y: replaces each pixel whose centre lies on the image where the image has data. Sets *changed
 * where a pixel was replaced. The window holds the rows of mc_image_placement_rows. Any thread.
 */
mc_error *mc_draw_tile(bool *changed, mc_pixels *tile, const mc_draw *draw, int x, int y, mc_ctx *ctx) MC_CHECKED;

/* Draws an upright image that is shrunk; `first` is the first row in `rows` of the `height` rows of the image. */
void mc_draw_mean(bool *changed, mc_pixels *tile, const mc_pixels *rows, int first, int height,
                  const mc_image_placement_scale *scale);

/* Draws any other image, one pixel at a time. */
mc_error *mc_draw_points(bool *changed, mc_pixels *tile, const mc_draw *draw, int x, int y, mc_ctx *ctx) MC_CHECKED;

/*
 * Halves `below` into the quarter of `tile` whose corner is left, top. Each pixel is the mean of those of 2 x 2 pixels
 * that hold data, or, where values must not be mixed (`nearest`), the first of these by rows. Where none of the four
 * holds data, the pixel is empty.
 */
void mc_draw_half(mc_pixels *tile, int left, int top, mc_pixels *below, bool nearest);

/* Fills the empty pixels of `tile` from `stored`, of the same size. */
void mc_draw_under(mc_pixels *tile, const mc_pixels *stored);

#endif
