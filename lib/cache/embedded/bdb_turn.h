/*
 * Turns at a Berkeley DB environment, and what is made good after a process that was killed at its turn. Part of the
 * module mapcache-bdb.so.
 *
 * Berkeley DB's own locks know neither a deadline nor the death of their holders. So whoever reads takes a place of its
 * own in the file mapcache.turns of the folder, whoever writes takes all places; the kernel gives a place back when its
 * holder dies (open file description locks, fcntl(2)). A place that is in use has a mark. A mark at a place that nobody
 * holds says: a process has died inside, and may have left locks and half a write.
 */
#ifndef MC_CACHE_EMBEDDED_BDB_TURN_H
#define MC_CACHE_EMBEDDED_BDB_TURN_H

#include "cache/embedded/embedded.h"

typedef struct mc_bdb_turn {
    int file;   /* of the places; -1: the folder or the file system has no such locks, nobody is kept out */
    bool alone; /* has all places */
    bool died;  /* somebody has died inside: to be made good by who is alone, before anything else */
    int slot;   /* the place that has the mark */
} mc_bdb_turn;

/* Waits for a turn until the deadline of `ctx`: MC_ERR_UNAVAILABLE then. A turn with `died` has no mark. */
mc_error *mc_bdb_take_turn(mc_bdb_turn *turn, const mc_embedded_place *place, bool alone, mc_ctx *ctx,
                           apr_pool_t *pool) MC_CHECKED;

/* The same at once, without a word about why not. */
bool mc_bdb_try_turn(mc_bdb_turn *turn, const mc_embedded_place *place, bool alone);

/* `sound` is false where the environment cannot be used any more, or a write was not finished: the next turn makes that
 * good. */
void mc_bdb_end_turn(mc_bdb_turn *turn, bool sound);

/* Alone, and nothing is open of which the caller would go on: removes the environment's files __db.NNN, which hold
 * locks and pages in memory and no tile, undoes a write that was not finished, takes the marks away and sets the
 * turn's own. MC_ERR_UNAVAILABLE while a program that takes no turns (MapCache) has the environment open. */
mc_error *mc_bdb_mend(mc_bdb_turn *turn, const mc_embedded_place *place, mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

#endif
