/* What maps and merged tiles share. */
#ifndef MC_MAP_MAP_PRIVATE_H
#define MC_MAP_MAP_PRIVATE_H

#include "mapcache/map.h"

/* How many layers from `first` on are drawn in one go, so that labels of one keep off those of the others. */
int mc_map_stack(const mc_map_request *wanted, int first);

/* Asks the sources of `count` layers from `first` on, as many as mc_map_stack says, for the whole map.
 * MC_ERR_NOT_FOUND for a layer without source. */
mc_error *mc_map_ask_sources(mc_rendered *rendered, const mc_map_request *wanted, int first, int count, mc_ctx *ctx,
                             apr_pool_t *pool) MC_CHECKED;

#endif
