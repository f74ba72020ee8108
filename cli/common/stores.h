/* What `mapcache detail --stores` and `mapcache compact` share. */
#ifndef MC_CLI_STORES_H
#define MC_CLI_STORES_H

#include "mapcache/server.h"
#include "mapcache/upkeep.h"

/*
 * Whether the configuration may still ask for tiles of a group in a cache: a tileset of that name has a grid of that
 * name with that level, and as many dimensions. Of a store that does not tell tilesets any of those that use it counts.
 */
bool mc_stores_known(const mc_config *config, mc_cache *cache, const mc_store_group *group);

#endif
