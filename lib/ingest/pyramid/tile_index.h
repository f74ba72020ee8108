/* An index of the tiles that images touch: ranges of tiles in the order of a curve, pairs of ranges under a common
 * range. */
#ifndef MC_INGEST_PYRAMID_TILE_INDEX_H
#define MC_INGEST_PYRAMID_TILE_INDEX_H

#include "mapcache/grid.h"

typedef struct mc_tile_index mc_tile_index;

/* ranges[i] belongs to image i; empty ones touch nothing. */
mc_tile_index *mc_tile_index_create(const mc_tile_range *ranges, int count, apr_pool_t *pool);

/* Whether an image whose number is above `after` touches any tile of the block. */
bool mc_tile_index_any(const mc_tile_index *tile_index, const mc_tile_range *block, int after);

#endif
