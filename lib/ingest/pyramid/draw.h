/* Drawing what is decoded of an image into one tile. */
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

/* Whether AUTO means AVERAGE where so many pixels of the image (a side) are in one of the level. */
bool mc_draw_shrinks(double shrink);

/*
 * Draws into tile x, y: each pixel whose centre lies on the image, and for which the image has data there, is replaced.
 * Sets *changed where there is one. The window has the rows of mc_image_placement_rows. Any thread.
 */
mc_error *mc_draw_tile(bool *changed, mc_pixels *tile, const mc_draw *draw, int x, int y, mc_ctx *ctx) MC_CHECKED;

/* The same for an upright image that is shrunk; `first` is the first row in `rows` of the `height` rows that it has. */
void mc_draw_mean(bool *changed, mc_pixels *tile, const mc_pixels *rows, int first, int height,
                  const mc_image_placement_scale *scale);

/* And one pixel at a time, for all others. */
mc_error *mc_draw_points(bool *changed, mc_pixels *tile, const mc_draw *draw, int x, int y, mc_ctx *ctx) MC_CHECKED;

/*
 * Each 2 x 2 pixels of `below`, into a quarter of `tile`, whose corner is left, top: the mean of those that hold data,
 * or the first of them by rows where values are to stay what they are (`nearest`); nothing where none does.
 */
void mc_draw_half(mc_pixels *tile, int left, int top, mc_pixels *below, bool nearest);

/* Fills what is empty in `tile` from `stored`, of the same size. */
void mc_draw_under(mc_pixels *tile, const mc_pixels *stored);

#endif
