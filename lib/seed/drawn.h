/*
 * Copies between grids whose tiles are not the same: the tiles of a block are drawn from the stored tiles of the other
 * grid, as the source "tileset" draws them.
 */
#ifndef MC_SEED_DRAWN_H
#define MC_SEED_DRAWN_H

#include "mapcache/seed.h"

/*
 * Draws the tiles of a metatile of task->tileset from those of task->drawn_from that are stored; nothing is rendered.
 * `wanted`: its tiles, which are all of the metatile; tiles[i] is NULL where no pixel of a stored tile lies, else in
 * the format of task->target. MC_ERR_LIMIT where the metatile would need too many tiles.
 */
mc_error *mc_seed_draw_tiles(mc_tile **tiles, const mc_tile_request *wanted, int count, const mc_seed_task *task,
                             mc_ctx *ctx) MC_CHECKED;

/* The tiles of each level of `link` that the extent of another grid's link touches, within the link's own limits; those
 * limits alone where the extent has no box in the CRS of `link`. In `pool`. */
const mc_tile_range *mc_seed_drawn_limits(const mc_grid_link *link, const mc_grid_link *from, apr_pool_t *pool);

#endif
