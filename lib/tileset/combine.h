/* Which sub-tiles a tile of several dimension values is made of (docs/reference/configuration.md 7.7). */
#ifndef MC_TILESET_COMBINE_H
#define MC_TILESET_COMBINE_H

#include "mapcache/tileset.h"

/* More sub-tiles of one tile are an error. */
#define MC_COMBINATIONS_MAX 10000

/* Values of all dimensions, one combination for each sub-tile; the first at the bottom. Equal combinations of all lists
 * of a combiner are the same pointer, unless one list has them twice. */
typedef struct mc_combinations {
    int count;
    const mc_dimension_value *const *list;
} mc_combinations;

typedef struct mc_combiner mc_combiner;

/* map: box of the WMS map, for dimensions that are asked once for it; NULL for single tiles. Everything lives in
 * `pool`. */
mc_combiner *mc_combiner_create(mc_tileset *tileset, const char *const *values, const mc_extent *map, apr_pool_t *pool);

/* Asks the dimensions about `count` tiles, given by their extents; lists[i] is that of the tile i. Every value of the
 * first dimension is combined with all of the next ones. MC_ERR_LIMIT above MC_COMBINATIONS_MAX. */
mc_error *mc_combine(mc_combinations *lists, mc_combiner *combiner, const mc_grid *grid, int z,
                     const mc_extent *extents, int count, mc_ctx *ctx) MC_CHECKED;

#endif
