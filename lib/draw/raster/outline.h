/*
 * Thin outlines, painted by distance: each pixel near a line is covered as far as its centre is from the line. Made for
 * strokes of up to a few pixels, where nobody can tell joins and caps from round ones; ten times cheaper than
 * mc_stroker_add.
 */
#ifndef MC_DRAW_RASTER_OUTLINE_H
#define MC_DRAW_RASTER_OUTLINE_H

#include "mapcache/error.h"
#include "vector/geometry/shape.h"

/* A plane of 8-bit coverage. A pixel under several lines is covered once. Between uses all bytes are 0. */
typedef struct mc_outline {
    int width, height;
    int stride; /* bytes of a row: whole blocks; bytes beyond the width mean nothing */
    uint8_t *plane;
    uint64_t *touched; /* blocks of each row that are not empty, as of mc_area */
    int block_bits;
    int top, bottom; /* touched rows; bottom < top: none */
    bool coarse;     /* as of mc_area */
    bool pairs;      /* two rows at a time: the processor has AVX2 */
    bool summed;     /* bytes are sums in 255 steps, even of a coarse plane: bands (draw/raster/bands.h) */
    bool dirty;
} mc_outline;

/* So many pixels may be written beyond the width: rows are painted some pixels at a time, from the first one on. */
enum { MC_OUTLINE_ROOM = 7 };

mc_error *mc_outline_create(mc_outline **outline, int width, int height, apr_pool_t *pool) MC_CHECKED;

/* Adds the lines of a shape (rings are closed), `pen` pixels wide. */
void mc_outline_add(mc_outline *outline, const mc_shape *shape, float pen);

/* Adds one line. The line from b to a is the same. */
void mc_outline_add_line(mc_outline *outline, mc_shape_point a, mc_shape_point b, float pen);

/* The coverage of a row from column *x on; *count 0: none. The caller calls mc_outline_clear_row next. */
const uint8_t *mc_outline_row(const mc_outline *outline, int y, int *x, int *count);
void mc_outline_clear_row(mc_outline *outline, int y);

/* To be called after the last row has been cleared. */
void mc_outline_done(mc_outline *outline);

#endif
