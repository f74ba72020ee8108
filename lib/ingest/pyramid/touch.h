/* Which images touch which tiles: ranges of tiles in the order of a curve, pairs of them under a common range. */
#ifndef MC_INGEST_TOUCH_H
#define MC_INGEST_TOUCH_H

#include "mapcache/grid.h"

typedef struct mc_touch mc_touch;

/* ranges[i] belongs to image i; empty ones touch nothing. */
mc_touch *mc_touch_create(const mc_tile_range *ranges, int count, apr_pool_t *pool);

/* Whether an image whose number is above `after` touches any tile of the block. */
bool mc_touch_any(const mc_touch *touch, const mc_tile_range *block, int after);

#endif
