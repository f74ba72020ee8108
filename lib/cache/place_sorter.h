/* Places of tiles in any order and any number, each as often as it comes: sorted, and each once. Memory is bounded:
 * what does not fit goes into a file without a name. */
#ifndef MC_CACHE_PLACE_SORTER_H
#define MC_CACHE_PLACE_SORTER_H

#include "mapcache/cache.h"

typedef struct mc_place_sorter mc_place_sorter;

/* `most`: places in memory; 0: as many as usual (8 MB). The file goes with the pool. */
mc_place_sorter *mc_place_sorter_create(int most, apr_pool_t *pool);

/* MC_ERR_IO: the folder for temporary files has no room. */
mc_error *mc_place_sorter_add(mc_place_sorter *sorter, int x, int y, apr_pool_t *pool) MC_CHECKED;

/* Visits each place once, row by row, until `visit` says that it is enough; nothing is added any more. */
mc_error *mc_place_sorter_visit(mc_place_sorter *sorter, mc_tile_visit *visit, void *baton, mc_ctx *ctx) MC_CHECKED;

#endif
