/* The table that lib/grid/axes/generate.c writes. */
#ifndef MC_GRID_AXES_H
#define MC_GRID_AXES_H

extern const int mc_axes_swapped_codes[]; /* EPSG codes, ascending */
extern const int mc_axes_swapped_count;

#endif
