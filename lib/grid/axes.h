/* The table that lib/grid/axes/generate.c writes. */
#ifndef MC_GRID_AXES_H
#define MC_GRID_AXES_H

/* Metres for a unit of a CRS that is not measured in metres. */
typedef struct mc_axes_unit {
    int code;
    double metres;
} mc_axes_unit;

extern const mc_axes_unit mc_axes_units[]; /* by ascending code */
extern const int mc_axes_unit_count;
extern const int mc_axes_swapped_codes[]; /* EPSG codes, ascending */
extern const int mc_axes_swapped_code_count;

#endif
