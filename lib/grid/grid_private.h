/* What the files of lib/grid share. */
#ifndef MC_GRID_GRID_PRIVATE_H
#define MC_GRID_GRID_PRIVATE_H

#include "mapcache/grid.h"

enum {
    MC_MAX_LEVELS = 256,
    MC_MAX_TILES = 1 << 30, /* a side, so that sums of tile numbers stay inside an int */
    MC_MAX_TILE_SIDE = 16384,
};

/* A box in tiles of a level, counted from the grid's origin; not rounded, not clipped. */
typedef struct mc_grid_cells {
    double minx, miny, maxx, maxy;
} mc_grid_cells;
mc_grid_cells mc_grid_cells_of(const mc_grid *grid, const mc_extent *box, int z);

/*
 * Allocates and fills grid->levels from its extent, tile size and resolutions (units per pixel, coarsest first).
 * -1, or the level that would have more than MC_MAX_TILES tiles a side.
 */
int mc_grid_set_levels(mc_grid *grid, const double *resolutions, int count, apr_pool_t *pool);

/* grid->definition, once all else is there. What is remembered of tiles outlives a configuration: a grid that is
 * defined anew under its name must not find what was remembered for the one before. */
void mc_grid_set_definition(mc_grid *grid);

/* grid->epsg and grid->axes_swapped from grid->srs. */
void mc_grid_set_axes(mc_grid *grid);

/* Four numbers as an extent. False after a complaint when they are none. */
bool mc_extent_read(mc_extent *extent, const mc_number_list *numbers, const mc_node *at, mc_diagnostics *diagnostics);

#endif
