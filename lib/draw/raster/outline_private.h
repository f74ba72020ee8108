/* What the files that paint outlines share. */
#ifndef MC_DRAW_RASTER_OUTLINE_PRIVATE_H
#define MC_DRAW_RASTER_OUTLINE_PRIVATE_H

#include <math.h>

#include "draw/raster/blocks.h"
#include "draw/raster/outline.h"

/* Lines are painted four pixels at a time: up to three pixels more than needed. */
enum { MC_OUTLINE_MARGIN = 3 };

enum { MC_STAMP_PIXELS = 16 /* of a short line: four by four */ };

/* One line, in pixels relative to its first point. */
typedef struct mc_segment {
    float dx, dy;
    float per_length2; /* 0 for a point */
    float reach;       /* half of the pen and half a pixel */
    float most;        /* coverage of the middle, 1 or the pen's width */
    float steps;       /* of coverage: 255 or 15 */
    int factor;        /* of a step */
    float slope, half; /* dx / dy, and half of what a row sees of the line; 0 where it is flat */
    float left, right; /* of all that can be seen */
    int ax, ay;        /* the pixel of the first point, and where the point is in it */
    float fx, fy;
} mc_segment;

/* Columns of a row in which the line can be seen: of the row whose centres are at y, relative to the first point. */
static inline void
mc_segment_columns(int *first, int *last, float y, const mc_segment *s)
{
    float from = s->left, to = s->right;
    if (s->half != 0) {
        float at = y * s->slope;
        from = at - s->half > from ? at - s->half : from;
        to = at + s->half < to ? at + s->half : to;
    }
    *first = s->ax + (int)floorf(from + s->fx);
    *last = s->ax + (int)floorf(to + s->fx);
}

/* Adds a line that is at most `pen` <= 1 pixel wide, from its upper end on, to a coarse plane, by copying a stamp of
 * the line. False, and nothing has been added, where the line is too long for a stamp. */
bool mc_outline_stamp(mc_outline *outline, mc_shape_point a, mc_shape_point b, float pen);

/* What such a line covers on a coarse plane: four by four pixels, and the place of the first pixel. False where the
 * line is too long for a stamp. */
bool mc_outline_cover_stamp(uint8_t covered[MC_STAMP_PIXELS], int *left, int *top, mc_shape_point a, mc_shape_point b,
                            float pen);

/* Where the processor has AVX2: paints rows from `top` on, two at a time, and returns the first row that is left. */
int mc_outline_rows_avx2(mc_outline *outline, const mc_segment *s, int top, int bottom);

#endif
