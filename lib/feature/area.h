/*
 * Planes of coverage: how much of each pixel shapes cover. Fills are accumulated as signed areas in whole numbers, so
 * that the result is exact and the same whatever part of the plane is looked at.
 */
#ifndef MC_FEATURE_AREA_H
#define MC_FEATURE_AREA_H

#include <stdint.h>

#include "feature/shape.h"
#include "mapcache/error.h"

/* Which points are inside: by an odd number of crossings, or by any winding. */
typedef enum mc_fill_rule { MC_EVEN_ODD, MC_NON_ZERO } mc_fill_rule;

/* A plane of signed areas, as large as the map. Between uses all cells are 0. */
typedef struct mc_area {
    int width, height;
    int stride; /* cells of a row: width and two of margin */
    int32_t *cells;
    int32_t *first, *last; /* for each row the touched columns; last < first: none */
    int top, bottom;       /* touched rows; bottom < top: none */
    bool coarse; /* 16 steps of coverage instead of 256: a plain map then has few enough colours for a palette */
    bool dirty;  /* something has been added and not been taken */
} mc_area;

mc_error *mc_area_create(mc_area **coverage, int width, int height, apr_pool_t *pool) MC_CHECKED;

/* Adds rings of a shape (each part is closed), moved by dx, dy (1/256 pixel). */
void mc_area_add(mc_area *coverage, const mc_shape *shape, int32_t dx, int32_t dy);

/*
 * Reads a row and sets it back to 0: mask[0 .. *count - 1] gets the coverage (0..255) of the pixels from column *x on.
 * `mask` has room for the width. *count 0: nothing was touched.
 */
void mc_area_take_row(mc_area *coverage, int y, mc_fill_rule rule, uint8_t *mask, int *x, int *count);

/* To be called after the last row has been taken. */
void mc_area_done(mc_area *coverage);

#endif
