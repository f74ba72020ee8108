/* Grids of different names with the same tiles: for who moves tiles from one to the other without a look at their
 * pixels. */
#ifndef MC_GRID_SAME_H
#define MC_GRID_SAME_H

#include "mapcache/grid.h"

/*
 * NULL where both grids have the same tiles in the levels from `minzoom` to `maxzoom`, which `one` has: the same CRS,
 * the same pixels, the same place. They may count their tiles from different corners. Otherwise the first difference in
 * words, with both names, in `pool`.
 */
const char *mc_grid_difference(const mc_grid *one, const mc_grid *other, int minzoom, int maxzoom, apr_pool_t *pool);

/* The numbers that a tile of `from` has in `to`, a grid without a difference at this level. */
void mc_grid_renumber(int *x, int *y, const mc_grid *from, const mc_grid *to, int z);

#endif
