/* How fresh a stored tile is, and what follows for whoever asked for it. */
#ifndef MC_TILESET_FRESHNESS_H
#define MC_TILESET_FRESHNESS_H

#include "mapcache/tileset.h"

typedef enum mc_freshness {
    MC_FRESH,           /* goes out */
    MC_STALE_MAY_SERVE, /* goes out while somebody makes a new one */
    MC_STALE_MUST_WAIT, /* who wants it waits for the new one, and gets it only where that fails (<stale_if_error>) */
} mc_freshness;

/*
 * How fresh what is stored under the key is, of which the store says that it was made at `mtime` (0: the store does not
 * know). Only for tilesets that may render. With ctx->wants_fresh nothing that is stale may be served.
 */
mc_freshness mc_tileset_freshness(const mc_tileset *tileset, const mc_tile_key *key, apr_time_t mtime,
                                  const mc_ctx *ctx);

/* Whether the rules of expiry (auto_expire) alone say that a tile of that time is stale. */
bool mc_tileset_too_old(const mc_tileset *tileset, apr_time_t mtime);

#endif
