/* How fresh a stored tile is, and what follows for whoever asked for it. */
#ifndef MC_TILESET_FRESHNESS_H
#define MC_TILESET_FRESHNESS_H

#include "mapcache/tileset.h"

typedef enum mc_freshness {
    MC_FRESH,           /* goes out */
    MC_STALE_BEHIND,    /* goes out, and a new one is made behind the answer: nobody waits */
    MC_STALE_MAY_SERVE, /* goes out while somebody makes a new one */
    MC_STALE_MUST_WAIT, /* who wants it waits for the new one, and gets it only where that fails (<stale_if_error>) */
} mc_freshness;

/*
 * How fresh what is stored under the key is, of which the store says that it was made at `mtime` (0: the store does not
 * know). Only for tilesets that may render. With ctx->wants_fresh nothing that is stale may be served.
 */
mc_freshness mc_tileset_freshness(const mc_tileset *tileset, const mc_tile_key *key, apr_time_t mtime,
                                  const mc_ctx *ctx);

/* Notes that a tile goes out although it is stale, and since when it is. */
void mc_tileset_call_stale(mc_tile *tile, const mc_tileset *tileset, const mc_tile_key *key);

/* Seconds for which a stored tile may go out from now on where rendering it again fails (<stale_if_error>, counted from
 * the end of its time or from the newest change that was seen): INT64_MAX for ever, -1: not any more. */
int64_t mc_tileset_error_grace(const mc_tileset *tileset, const mc_tile_key *key, apr_time_t mtime, const mc_ctx *ctx);

/* Whether a stored tile of that time may be older than a change that was seen at `time`, or earlier, as the marks of
 * the process say. Only for tilesets with `watch`. */
bool mc_tileset_older_than(const mc_tileset *tileset, const mc_tile_key *key, apr_time_t mtime, apr_time_t time);

/* When a render that begins now begins, by the clock that changes are seen by: the time that its tiles are stored with,
 * so that a change during the render, or the moment at which tiles expire, makes them old. 0: neither is followed. */
apr_time_t mc_tileset_time_of_render(const mc_tileset *tileset, const mc_ctx *ctx);

/* The metatile of a key was stored by this process, by a render that has begun then. */
void mc_tileset_note_render(const mc_tileset *tileset, const mc_tile_key *key, apr_time_t begun);

/* Whether stored tiles of the tileset may be stale. */
static inline bool
mc_tileset_may_be_stale(const mc_tileset *tileset)
{
    return tileset->auto_expire != NULL || tileset->watch != NULL ||
           (tileset->master != NULL && tileset->master->watch != NULL);
}

/* Whether the rules of expiry (auto_expire) alone say that a tile of that time is stale. */
bool mc_tileset_too_old(const mc_tileset *tileset, apr_time_t mtime);

#endif
