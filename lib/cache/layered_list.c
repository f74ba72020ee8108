/* Lists of what caches hold that are made of others, and which part is asked how much there is. */
#include "cache/layered.h"
#include "cache/place_sorter.h"

/* The places of all children, each of which may have a tile that the others have, too. */
typedef struct layered_listing {
    mc_place_sorter *places;
    mc_error *error;
    apr_pool_t *pool;
} layered_listing;

static bool
gather_layered_place(void *baton, int x, int y)
{
    layered_listing *listing = baton;
    listing->error = mc_place_sorter_add(listing->places, x, y, listing->pool);
    return listing->error == MC_OK;
}

bool
mc_layered_lists(const mc_cache *base, const mc_tile_key *key)
{
    const mc_layered *cache = (const mc_layered *)base;
    for (int i = 0; i < cache->count; i++)
        if (!mc_cache_lists(cache->children[i].cache, key))
            return false;
    return true;
}

mc_error *
mc_layered_list(mc_cache *base, const mc_tile_key *key, const mc_tile_range *area, mc_tile_visit *visit, void *baton,
                mc_ctx *ctx)
{
    const mc_layered *cache = (const mc_layered *)base;
    layered_listing listing = { .error = MC_OK };
    mc_error *error = MC_OK;
    apr_pool_create(&listing.pool, ctx->pool);
    listing.places = mc_place_sorter_create(0, listing.pool);
    for (int i = 0; i < cache->count && error == MC_OK; i++) {
        error = mc_cache_list(cache->children[i].cache, key, area, gather_layered_place, &listing, ctx);
        error = error == MC_OK ? listing.error : error;
    }
    if (error == MC_OK)
        error = mc_place_sorter_visit(listing.places, visit, baton, ctx);
    error = mc_error_copy(error, ctx->pool);
    apr_pool_destroy(listing.pool);
    return error;
}

mc_cache *
mc_layered_first(mc_cache *base, const mc_tile_key *key)
{
    (void)key;
    return ((mc_layered *)base)->children[0].cache;
}

mc_cache *
mc_layered_last(mc_cache *base, const mc_tile_key *key)
{
    const mc_layered *cache = (const mc_layered *)base;
    (void)key;
    return cache->children[cache->count - 1].cache;
}
