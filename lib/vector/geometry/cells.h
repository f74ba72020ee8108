/*
 * A transformation that costs little for many points: the plane of the data is split into cells, small enough that
 * inside of each the transformation is bilinear within a sixteenth of a pixel. PROJ is asked for nine points of a cell
 * instead of for every vertex. Where the cells lie follows from the two CRSs and the level's resolution alone.
 */
#ifndef MC_VECTOR_GEOMETRY_CELLS_H
#define MC_VECTOR_GEOMETRY_CELLS_H

#include "vector/crs/projection.h"
#include "vector/geometry/shape.h"

typedef struct mc_cells mc_cells;

/* For a pixel grid of the map; both live as long as `pool`. `widest`: of a cell, in units of the data. Of one thread.
 */
mc_cells *mc_cells_create(const mc_projection *projection, const mc_pixel_grid *pixel_grid, double widest,
                          apr_pool_t *pool);

/* The place of a point of the data, in pixels of the grid from the grid's (x0, y0). *cell: the number of the point's
 * cell; inside of one cell straight lines stay straight. False where the point has no cell: the caller transforms the
 * point itself. */
bool mc_cells_place(mc_cells *cells, double x, double y, double *px, double *py, int *cell);

#endif
