/* See settle.h. */
#include "tileset/watch/settle.h"

#include "tileset/stored/stored_walk.h"
#include "tileset/variant.h"

typedef struct settling {
    const mc_tileset *tileset;
    apr_time_t time;
} settling;

static mc_error *
settle_tile(void *baton, const mc_tile_key *key, mc_ctx *ctx)
{
    const settling *work = baton;
    mc_cache *cache = work->tileset->cache;
    mc_tile *tile = NULL;
    MC_TRY(mc_cache_get(&tile, cache, key, ctx, ctx->pool));
    if (tile == NULL || !mc_tileset_older_than(work->tileset, key, tile->mtime, work->time))
        return MC_OK;
    MC_TRY(mc_cache_remove(cache, key, ctx));
    return mc_variants_forget(work->tileset, key, 1, ctx);
}

mc_error *
mc_tileset_settle(const mc_watch *watch, const mc_watch_link *link, int z, const mc_tile_range *range, apr_time_t time,
                  mc_ctx *ctx, apr_pool_t *pool)
{
    settling work = { watch->subject, time };
    const mc_stored_part part = { .tileset = watch->subject, .link = link->link, .z = z, .range = *range };
    return mc_tileset_walk_stored(&part, settle_tile, &work, ctx, pool);
}
