/* Old tiles that nobody has asked for since their data changed are removed from the stores. */
#ifndef MC_TILESET_WATCH_SETTLE_H
#define MC_TILESET_WATCH_SETTLE_H

#include "changes/watch.h"

/* A mc_watch_settle, of watches whose subject is a tileset. */
mc_error *mc_tileset_settle(const mc_watch *watch, const mc_watch_link *link, int z, const mc_tile_range *range,
                            apr_time_t time, mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

#endif
