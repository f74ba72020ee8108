/* What the files that paint bands share. */
#ifndef MC_DRAW_RASTER_BANDS_PRIVATE_H
#define MC_DRAW_RASTER_BANDS_PRIVATE_H

#include "draw/raster/outline.h"

enum { MC_PIECE_LINES = 6 };

/*
 * The inside of some lines, relative to a vertex: a pixel whose centre is at (x, y) is covered by the product of
 * a x + b y + c of all of them, each cut to 0..1; with a radius above 0, by what lies inside of that circle as well.
 */
typedef struct mc_piece {
    float a[MC_PIECE_LINES], b[MC_PIECE_LINES], c[MC_PIECE_LINES];
    int count;
    float radius;
    int column, row; /* the pixel of the vertex, and where the vertex is in it */
    float fx, fy;
    float left, top, right, bottom; /* what may be covered, from the vertex on */
} mc_piece;

/* Adds the coverage of a piece. */
void mc_piece_add(mc_outline *outline, const mc_piece *piece);

#endif
