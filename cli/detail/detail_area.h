/* The area of `mapcache detail`: an extent, or what an OGR source holds. */
#ifndef MC_CLI_DETAIL_AREA_H
#define MC_CLI_DETAIL_AREA_H

#include "mapcache/survey.h"
#include "seed/area.h"

typedef struct mc_detail_area {
    mc_seed_ogr ogr;      /* of the options; no source: the extent */
    mc_extent extent;     /* units of the grid; of the source: its bounds */
    const char *geometry; /* of the source, in GeoJSON; NULL: the extent */
    const mc_grid *grid;  /* the rest is of the source */
    mc_seed_region *region;
    mc_seed_shape *shape;
} mc_detail_area;

/* Reads the source, and says on stderr how many features it passed over. MC_ERR_CONFIG where nothing is left. */
mc_error *mc_detail_area_read(mc_detail_area *area, const mc_grid *grid, int finest, apr_pool_t *pool) MC_CHECKED;

/* How much of the tiles of a level belongs to it, for one with a source. */
mc_survey_share mc_detail_area_share(const mc_detail_area *area, int z, const mc_tile_range *tiles);

/* The part of it in a box: its bounds, and its geometry (NULL: the bounds are all of it). */
mc_error *mc_detail_area_part(mc_extent *bounds, const char **geometry, const mc_detail_area *area,
                              const mc_extent *box, apr_pool_t *pool) MC_CHECKED;

#endif
