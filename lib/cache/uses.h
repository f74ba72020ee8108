/*
 * When the tiles of a cache with <max_size> were used last: a table in memory, in blocks of tiles and in steps of time,
 * so that a hit costs a hash, two loads and, once a step, a store. Who writes down what the table says is somebody
 * else's affair (lib/cache/quota).
 */
#ifndef MC_CACHE_USES_H
#define MC_CACHE_USES_H

#include "mapcache/cache.h"

typedef struct mc_uses mc_uses;

/* Who is told. Called by any thread. */
typedef struct mc_uses_hooks {
    void *baton;
    /* Of the first use that a process notes, and of each until mc_uses_set_time. */
    void (*begin)(void *baton, mc_ctx *ctx);
    /* Before tiles of these blocks are stored (a key is that of a block's first tile). False: could not be noted. */
    bool (*intend)(void *baton, const mc_tile_key *blocks, int count, mc_ctx *ctx);
} mc_uses_hooks;

/* Lives in `pool`. A block has 2^shift tiles a side. */
mc_uses *mc_uses_create(const mc_uses_hooks *hooks, int shift, apr_pool_t *pool);
int mc_uses_shift(const mc_uses *uses);

/* A tileset uses the cache, as its configuration says; and all that do, of mc_cache_use. */
void mc_uses_add_tileset(mc_uses *uses, const mc_cache_use *use);
const apr_array_header_t *mc_uses_tilesets(const mc_uses *uses);

/* What of a number of a column or row names the block. */
static inline int
mc_uses_first(int place, int shift)
{
    return (int)((unsigned)place >> shift << shift);
}

/* From now on uses are noted at this time (Unix seconds), until the next call. */
void mc_uses_set_time(mc_uses *uses, apr_int64_t now);

/* A tile was read. */
void mc_uses_note(mc_uses *uses, const mc_tile_key *key, mc_ctx *ctx);

/* Tiles are about to be stored: asks `intend` for those blocks for which it was not asked in the last seconds. */
void mc_uses_put(mc_uses *uses, const mc_tile_write *tiles, int count, mc_ctx *ctx);

/* Something else is asked of the cache: whoever waits for the first use need not wait any more. */
void mc_uses_begin(mc_uses *uses, mc_ctx *ctx);

/* A tile was stored or removed: what is known of the size of its block is out of date. */
void mc_uses_change(mc_uses *uses, const mc_tile_key *key, mc_ctx *ctx);

/* Whether there is something to take; cheap. */
bool mc_uses_waiting(const mc_uses *uses);

/* What is new of a block. */
typedef struct mc_use {
    mc_tile_key block; /* of its first tile; texts are of the caller's pool */
    apr_int64_t time;  /* of the last use, Unix seconds; 0: it was not used */
    bool changed;      /* tiles were stored or removed */
    uint64_t hash;
} mc_use;

/* Copies what is new since it was taken last, at most `most` blocks (> 0); fewer: that was all. */
int mc_uses_take(mc_uses *uses, mc_use *taken, int most, apr_pool_t *pool);

/* What could not be written down comes again. */
void mc_uses_give_back(mc_uses *uses, const mc_use *taken, int count);

#endif
