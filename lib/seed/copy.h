/* Copying the tiles of a block from one store to another, and holding copies against what they were made of. */
#ifndef MC_SEED_COPY_H
#define MC_SEED_COPY_H

#include "mapcache/seed.h"

/* Copies the tiles of a metatile that the target does not have (task->force: all of them). result->tiles and kept are
 * set. */
mc_error *mc_seed_copy_block(mc_seed_result *result, const mc_seed_task *task, mc_ctx *ctx) MC_CHECKED;

/* MC_ERR_CORRUPT where a tile of the metatile is not in the target, or is another one there. Tiles that only the target
 * has are no concern of it. */
mc_error *mc_seed_compare_block(mc_seed_result *result, const mc_seed_task *task, mc_ctx *ctx) MC_CHECKED;

#endif
