/* Levels for vector tiles: what tiles of a level of the grid, and of coarser ones, show. */
#ifndef MC_OVERVIEW_OVERVIEW_TILES_H
#define MC_OVERVIEW_OVERVIEW_TILES_H

#include "overview/overview_private.h"
#include "source/vector/vector_tile_rules.h"

struct mc_overview_tiles {
    const mc_mvt_options *options;
    mc_vector_tile_rules rules;
};

/* Builds the levels that vector tiles need (job->tiles) and keeps those that are worth their room. */
mc_error *mc_overview_build_tile_levels(mc_overview_job *job) MC_CHECKED;

/* Reads the source from its end, once or twice, and writes the features that each of the levels keeps; `zooms`: their
 * levels of the grid, the finest first. A level that gets more than `worth` bytes is given up. */
mc_error *mc_overview_sift_tiles(mc_overview_level *levels, const int *zooms, int count, double worth,
                                 const mc_overview_job *job) MC_CHECKED;

#endif
