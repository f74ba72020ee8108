/*
 * Caches whose files hold blocks of tiles with an index of ranges: TIFF as MapCache has them, bundles, MRF, slabs. A
 * kind says which file has a tile, and reads the tile out of the file; the rest is the same for all.
 */
#ifndef MC_CACHE_BLOCKS_BLOCKS_H
#define MC_CACHE_BLOCKS_BLOCKS_H

#include "cache/archive/ranges.h"

struct mc_block_cache;

typedef struct mc_block_kind {
    /* The file of a tile, of MC_PATH_MAX bytes. */
    mc_error *(*path)(char *path, const struct mc_block_cache *cache, const mc_tile_key *key, apr_pool_t *pool);
    /* Reads a tile out of a file that is there; *data NULL: the tile is not there. */
    mc_error *(*read)(mc_buf **data, mc_ranged_file *file, const struct mc_block_cache *cache, const mc_tile_key *key,
                      mc_ctx *ctx, apr_pool_t *pool);
} mc_block_kind;

/* Beginning of the struct of each kind. */
typedef struct mc_block_cache {
    mc_cache_base base;
    const mc_block_kind *kind;
    uint64_t identity; /* of how files are read, for what is remembered */
} mc_block_cache;

/* mc_cache_ops.get and exists. */
mc_error *mc_block_get(mc_tile **tile, mc_cache *cache, const mc_tile_key *key, mc_ctx *ctx, apr_pool_t *pool);
mc_error *mc_block_exists(bool *exists, mc_cache *cache, const mc_tile_key *key, mc_ctx *ctx);

/* mc_cache_ops.put and remove of kinds that are only read: MC_ERR_CONFIG. */
mc_error *mc_block_refuse_put(mc_cache *cache, const mc_tile_write *tiles, int count, mc_ctx *ctx);
mc_error *mc_block_refuse_remove(mc_cache *cache, const mc_tile_key *key, mc_ctx *ctx);

/* MC_ERR_CONFIG where a tile is neither PNG nor JPEG: nothing else is shown of what a file says to be one. */
mc_error *mc_block_check_picture(const mc_buf *data, const struct mc_block_cache *cache, apr_pool_t *pool) MC_CHECKED;

/* Counted from the upper left corner of the grid. */
int mc_block_column(const mc_tile_key *key);
int mc_block_row(const mc_tile_key *key);

#endif
