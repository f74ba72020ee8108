/* One operation of a store, repeated while it fails and time is left. */
#ifndef MC_CACHE_ATTEMPT_H
#define MC_CACHE_ATTEMPT_H

#include "cache/cache_base.h"

typedef enum mc_store_operation {
    MC_STORE_GET,
    MC_STORE_GET_ALL,
    MC_STORE_EXISTS,
    MC_STORE_EXIST_ALL,
    MC_STORE_PUT,
    MC_STORE_REMOVE,
    MC_STORE_REMOVE_ALL,
} mc_store_operation;

/* An operation and its arguments; those that the operation has not stay NULL. */
typedef struct mc_store_call {
    mc_store_operation operation;
    const mc_tile_key *keys; /* one, or `count` for the operations on many */
    const mc_tile_write *writes;
    int count;
    mc_tile **tiles;
    bool *exists;
    apr_pool_t *pool; /* of the tiles */
} mc_store_call;

/* Counts each failure. Repeats as often as the cache's <retries> says, with its <retry_delay> before each repetition.
 */
mc_error *mc_cache_attempt(mc_cache *cache, const mc_store_call *call, mc_ctx *ctx) MC_CHECKED;

/* Writes to the store at once, whatever series of puts is gathered, and forgets the tiles that memory has. */
mc_error *mc_cache_put_now(mc_cache *cache, const mc_tile_write *tiles, int count, mc_ctx *ctx) MC_CHECKED;
mc_error *mc_cache_remove_now(mc_cache *cache, const mc_tile_key *key, mc_ctx *ctx) MC_CHECKED;
mc_error *mc_cache_remove_all_now(mc_cache *cache, const mc_tile_key *keys, int count, mc_ctx *ctx) MC_CHECKED;

#endif
