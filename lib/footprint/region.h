/* The part of a tile that nothing opaque covers yet: a short list of rectangles. */
#ifndef MC_FOOTPRINT_REGION_H
#define MC_FOOTPRINT_REGION_H

#include <stdbool.h>

/* x1 and y1 are the first column and row outside. */
typedef struct mc_rect {
    int x0, y0, x1, y1;
} mc_rect;

enum { mc_region_max = 24 };

typedef struct mc_region {
    int count; /* 0: all is covered */
    mc_rect rects[mc_region_max];
} mc_region;

void mc_region_set(mc_region *region, int width, int height);
bool mc_region_touches(const mc_region *region, const mc_rect *rect);

/* Takes a rectangle away. Where that would need more than mc_region_max pieces, the region stays as it is: larger than
 * it might be, which costs work but never a pixel. */
void mc_region_subtract(mc_region *region, const mc_rect *rect);

#endif
