/*
 * Puts that a cache gets a little later than who puts: bounded queues, each with a thread of its own from its first put
 * on. What waits is found by gets of this process, stored in the order of the puts as far as these succeed, and lost
 * where the cache does not take it in time; each loss is logged and counted. A tile that was stored by others after it
 * was put here stays.
 */
#ifndef MC_CACHE_WRITE_BEHIND_H
#define MC_CACHE_WRITE_BEHIND_H

#include "mapcache/cache.h"

typedef struct mc_write_behind mc_write_behind;

typedef struct mc_write_behind_rules {
    mc_cache *cache;        /* that gets the tiles */
    const char *name;       /* of the cache whose tiles wait, for messages */
    apr_int64_t most_bytes; /* that may wait */
    double longest;         /* seconds that a tile may wait */
} mc_write_behind_rules;

/* A queue without a thread, for a configuration that lives in `pool`: before the pool ends, the queue is drained. */
mc_write_behind *mc_write_behind_create(const mc_write_behind_rules *rules, apr_pool_t *pool);

/* True: the tiles wait, in place of what waited under their keys. False: there is no room, or the process does not last
 * long enough: the caller stores them itself, after mc_write_behind_forget. */
bool mc_write_behind_put(mc_write_behind *queue, const mc_tile_write *tiles, int count, mc_ctx *ctx);

/* A waiting tile; false: it does not wait. *tile may be NULL: whether there is one is all that is asked. */
bool mc_write_behind_get(mc_tile **tile, mc_write_behind *queue, const mc_tile_key *key, apr_pool_t *pool);

/* The tiles do not wait any more, and are not being stored; the latter is waited for until the deadline. */
void mc_write_behind_forget(mc_write_behind *queue, const mc_tile_key *keys, int count, mc_ctx *ctx);

/* --- of a process: made and ended by its runtime ------------------------------------------------------------------ */

typedef struct mc_write_behinds mc_write_behinds;

mc_write_behinds *mc_write_behinds_create(void);
/* Drains all queues, for at most some seconds together; what is left is lost. NULL is ignored. */
void mc_write_behinds_destroy(mc_write_behinds *queues);
/* The same for a process that ends as it is, with threads that may go on using everything: they store through
 * meanwhile, and nothing is freed. NULL is ignored. */
void mc_write_behinds_drain(mc_write_behinds *queues);
/* Bytes that the waiting tiles take. */
uint64_t mc_write_behinds_waiting(mc_write_behinds *queues);

#endif
