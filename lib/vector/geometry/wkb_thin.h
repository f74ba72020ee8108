/* Well-known binary with fewer vertices, for maps of a known resolution. */
#ifndef MC_VECTOR_GEOMETRY_WKB_THIN_H
#define MC_VECTOR_GEOMETRY_WKB_THIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes that grow. The owner frees `data`. */
typedef struct mc_wkb_buffer {
    uint8_t *data;
    size_t size, room;
    bool failed; /* no memory */
} mc_wkb_buffer;

void mc_wkb_append(mc_wkb_buffer *buffer, const void *data, size_t size);

/* Square cells of the plane, in units of the data: a corner of one of them, and the length of a side. */
typedef struct mc_wkb_cells {
    double x0, y0, side;
} mc_wkb_cells;

/*
 * Appends a geometry as little-endian extended WKB of the same type, without Z and M. Of vertices that follow each
 * other in one cell only the first and the last are kept, exactly where they are: nothing moves by more than the
 * diagonal of a cell, and a border that two areas share is thinned alike from both of its sides. Rings keep four
 * vertices. False, with nothing appended: the geometry is no point, line or polygon nor several of one kind, is
 * truncated, or is empty.
 */
bool mc_wkb_thin(mc_wkb_buffer *buffer, const void *wkb, size_t size, int srid, const mc_wkb_cells *cells);

struct mc_pixel_grid;

/*
 * The same for a pixel grid (without a warp) that snaps each vertex to a whole step, as that of vector tiles does. Each
 * vertex moves by at most a quarter of a step in each direction, to one of four places around its step: it is snapped
 * there again, and so it is on grids with the same corner whose steps are 2, 3, 4 ... times as wide. Of vertices that
 * follow each other in one place one is kept. So shapes that are read of the result are those of the geometry itself.
 */
bool mc_wkb_snap(mc_wkb_buffer *buffer, const void *wkb, size_t size, const struct mc_pixel_grid *pixel_grid);

#endif
