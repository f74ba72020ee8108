/*
 * Planes of coverage: how much of each pixel shapes cover. Fills are accumulated as signed areas in whole numbers, so
 * that the result is exact and the same whatever part of the plane is looked at.
 */
#ifndef MC_DRAW_RASTER_AREA_H
#define MC_DRAW_RASTER_AREA_H

#include <stdint.h>

#include "mapcache/error.h"
#include "vector/geometry/shape.h"

/* Which points are inside: by an odd number of crossings, or by any winding. */
typedef enum mc_fill_rule { MC_EVEN_ODD, MC_NON_ZERO } mc_fill_rule;

/* A plane of signed areas, as large as the map. Between uses all cells are 0. */
typedef struct mc_area {
    int width, height;
    int stride; /* cells of a row: whole blocks, at least width + 2 */
    int32_t *cells;
    uint64_t *touched; /* for each row the blocks that are not empty, a bit for each: only these blocks are read */
    int block_bits;    /* a block is 2^block_bits cells, at least 16 */
    int top, bottom;   /* touched rows; bottom < top: none */
    bool coarse;       /* 16 steps of coverage instead of 256: a plain map then has few enough colours for a palette */
    bool dirty;        /* something has been added that no mc_area_take_row has read yet */
} mc_area;

/* Bytes that a mask must have beyond the width: rows are read sixteen pixels at a time. */
enum { MC_MASK_MARGIN = 16 };

mc_error *mc_area_create(mc_area **coverage, int width, int height, apr_pool_t *pool) MC_CHECKED;

/* Adds rings of a shape (each part is closed), moved by dx, dy (1/256 pixel). */
void mc_area_add(mc_area *coverage, const mc_shape *shape, int32_t dx, int32_t dy);

/* Adds one edge of a ring. The edge from b to a takes the edge from a to b back exactly. */
void mc_area_add_edge(mc_area *coverage, mc_shape_point a, mc_shape_point b);

/*
 * Reads a row and sets it back to 0: mask[0 .. *count - 1] gets the coverage (0..255) of the pixels from column *x on.
 * `mask` has room for the width and MC_MASK_MARGIN. *count 0: nothing was touched.
 */
void mc_area_take_row(mc_area *coverage, int y, mc_fill_rule rule, uint8_t *mask, int *x, int *count);

/* To be called after the last row has been taken. */
void mc_area_done(mc_area *coverage);

#endif
