/* Hatches: families of parallel lines that go on for ever on the pixel grid of a level. */
#ifndef MC_DRAW_RASTER_HATCH_H
#define MC_DRAW_RASTER_HATCH_H

#include <stdint.h>

/* Directions of the lines that a mark becomes when it is repeated over an area. */
enum { MC_HATCH_ACROSS = 1, MC_HATCH_UP = 2, MC_HATCH_SLASH = 4, MC_HATCH_BACKSLASH = 8 };

enum { MC_HATCH_FAMILIES = 4 };

typedef struct mc_hatch {
    int count;
    struct {
        double nx, ny;       /* across the lines */
        double pitch, width; /* pixels */
        double offset;       /* pixels by which the lines are moved along (nx, ny) */
    } families[MC_HATCH_FAMILIES];
} mc_hatch;

/* The lines of a mark (MC_HATCH_*) that is repeated every `pitch` pixels to the right and down, all of it turned. */
void mc_hatch_make(mc_hatch *hatch, unsigned directions, double pitch, double width, double turn, double shift_x,
                   double shift_y);

/*
 * Reduces the mask to the coverage of the lines: pixels from (x, y) of the pixel grid on. The coverage of a pixel is
 * measured across the lines, over one pixel's length through the pixel's centre: exact for upright and level lines.
 */
void mc_hatch_row(const mc_hatch *hatch, int64_t x, int64_t y, uint8_t *mask, int count);

/* The dense brushes: `dots` (0..64) of each 8x8 are set, spread evenly. A dot has `side` (1..) pixels a side. */
void mc_hatch_dots(int dots, int side, int64_t x, int64_t y, uint8_t *mask, int count);

#endif
