/* The cache "none": keeps nothing, so that each tile is made when it is asked for, and is never older than its data. */
#include "cache/cache_base.h"

typedef struct none_cache {
    mc_cache_base base;
} none_cache;

static const mc_key none_keys[] = { MC_CACHE_KEYS(none_cache), MC_KEY_END };

static mc_cache *
none_from_config(const mc_node *node, mc_build *build)
{
    none_cache *cache = apr_pcalloc(build->pool, sizeof(*cache));
    return mc_cache_read(&cache->base, &mc_cache_none, false, node, build) ? &cache->base.cache : NULL;
}

static mc_error *
none_get(mc_tile **tile, mc_cache *cache, const mc_tile_key *key, mc_ctx *ctx, apr_pool_t *pool)
{
    (void)cache;
    (void)key;
    (void)ctx;
    (void)pool;
    *tile = NULL;
    return MC_OK;
}

static mc_error *
none_exists(bool *exists, mc_cache *cache, const mc_tile_key *key, mc_ctx *ctx)
{
    (void)cache;
    (void)key;
    (void)ctx;
    *exists = false;
    return MC_OK;
}

static mc_error *
none_put(mc_cache *cache, const mc_tile_write *tiles, int count, mc_ctx *ctx)
{
    (void)cache;
    (void)tiles;
    (void)count;
    (void)ctx;
    return MC_OK;
}

static mc_error *
none_remove(mc_cache *cache, const mc_tile_key *key, mc_ctx *ctx)
{
    (void)cache;
    (void)key;
    (void)ctx;
    return MC_OK;
}

static bool
none_tells_grids(const mc_cache *cache)
{
    (void)cache;
    return true;
}

const mc_cache_ops mc_cache_none = {
    MC_KIND("none", none_keys, none_from_config, "Keeps nothing: each tile is made when it is asked for."),
    .get = none_get,
    .exists = none_exists,
    .put = none_put,
    .remove = none_remove,
    .tells_grids = none_tells_grids,
    .keeps_nothing = true,
};
