/* How many tiles several ranges of tiles cover together. */
#ifndef MC_INGEST_PYRAMID_TILE_COVER_H
#define MC_INGEST_PYRAMID_TILE_COVER_H

#include "mapcache/grid.h"

/* Tiles that are in one of the ranges at least. Where that would take too long to count (hundreds of thousands of
 * ranges that all overlap), it is a number that is not smaller. The order of `ranges` changes. */
apr_int64_t mc_tile_cover_count(mc_tile_range *ranges, int count, apr_pool_t *pool);

#endif
