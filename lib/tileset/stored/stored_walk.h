/* Going over the stored tiles of a part of a tileset. */
#ifndef MC_TILESET_STORED_WALK_H
#define MC_TILESET_STORED_WALK_H

#include "mapcache/tileset.h"

/* Told of the key of a tile that may be stored; an error ends the walk. Memory of `ctx` is cleared after each visit. */
typedef mc_error *mc_stored_visit(void *baton, const mc_tile_key *key, mc_ctx *ctx);

typedef struct mc_stored_part {
    mc_tileset *tileset;
    const mc_grid_link *link;
    int z;
    mc_tile_range range;
    const apr_table_t *values; /* of dimensions that are meant, by name; all values of the others. NULL: all of all */
} mc_stored_part;

/*
 * Visits the tiles of the part that can be made anew, by the store's list, or all that could be there where the store
 * has none: tiles of the source for all sets of values, and assembled ones that are stored for the default values,
 * whatever `values` says. Gets pass the memory of the process by. MC_ERR_LIMIT: the store has no list and the range is
 * too large, or the tileset has too many sets of values.
 */
mc_error *mc_tileset_walk_stored(const mc_stored_part *part, mc_stored_visit *visit, void *baton, mc_ctx *ctx,
                                 apr_pool_t *pool) MC_CHECKED;

#endif
