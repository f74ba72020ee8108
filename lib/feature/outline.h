/*
 * Thin outlines, painted by distance: each pixel near a line is covered as far as its centre is from the line. Made for
 * strokes of up to a few pixels, where joins and caps are not told from round ones; ten times cheaper than to stroke.
 */
#ifndef MC_FEATURE_OUTLINE_H
#define MC_FEATURE_OUTLINE_H

#include "feature/shape.h"
#include "mapcache/error.h"

/* A plane of 8-bit coverage; what lines share is covered once. Between uses all of it is 0. */
typedef struct mc_outline {
    int width, height;
    int stride; /* bytes of a row: the width and a margin whose content means nothing */
    uint8_t *plane;
    int32_t *first, *last; /* touched columns of each row; last < first: none */
    int top, bottom;       /* touched rows; bottom < top: none */
    bool coarse;           /* as of mc_area */
    bool dirty;
} mc_outline;

mc_error *mc_outline_create(mc_outline **outline, int width, int height, apr_pool_t *pool) MC_CHECKED;

/* Adds the lines of a shape (rings are closed), `pen` pixels wide. */
void mc_outline_add(mc_outline *outline, const mc_shape *shape, float pen);

/* The coverage of a row from column *x on; *count 0: none. mc_outline_clear_row is to follow. */
const uint8_t *mc_outline_row(const mc_outline *outline, int y, int *x, int *count);
void mc_outline_clear_row(mc_outline *outline, int y);

/* To be called after the last row has been cleared. */
void mc_outline_done(mc_outline *outline);

#endif
