/*
 * Numbers of tiles of a pyramid that begins with one tile and has four for each one with every level: level after
 * level, each along Hilbert's curve, so that neighbours have numbers that are close together (PMTiles 3, TileId).
 */
#ifndef MC_GRID_TILE_ID_H
#define MC_GRID_TILE_ID_H

#include "mapcache/grid.h"

enum { MC_TILE_ID_LEVEL_MAX = 30 };

/* The number of a tile; x counts from the west, y from the north. 0 <= z <= MC_TILE_ID_LEVEL_MAX, x and y inside of the
 * level. */
uint64_t mc_tile_id(int z, uint32_t x, uint32_t y);

/* And back. False where the number is beyond the last level. */
bool mc_tile_place(int *z, uint32_t *x, uint32_t *y, uint64_t id);

/* Whether a level of a grid is part of such a pyramid. */
bool mc_grid_has_tile_ids(const mc_grid *grid, int z);

/* Whether the grid is the pyramid of web maps, as formats without a word on their grid take it for granted: the world
 * in spherical Mercator, one tile at level 0, halved with each level. Its tiles may be counted from any corner. */
bool mc_grid_is_web_mercator(const mc_grid *grid);

/* The first number of a level; of MC_TILE_ID_LEVEL_MAX + 1: how many tiles there can be. */
uint64_t mc_tile_first_id(int z);

#endif
