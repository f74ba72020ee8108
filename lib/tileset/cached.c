/* A tile of a level that is cached: hidden by a ruleset, from the cache, rendered, or made of sub-tiles. */
#include "mapcache/trace.h"
#include "tileset/tileset_private.h"
#include "vector/mvt/mvt.h"

mc_error *
mc_tile_answer_hidden(mc_tile **tile, const mc_tile_request *wanted, mc_ctx *ctx, apr_pool_t *pool)
{
    uint8_t bgra[4];
    *tile = NULL;
    MC_TRY(mc_tileset_check_built(wanted->tileset, pool));
    if (wanted->link->ruleset == NULL || !mc_tile_hidden(wanted->link, wanted->z, wanted->x, wanted->y, bgra))
        return MC_OK;
    if (mc_format_is_vector(wanted->tileset->format))
        return mc_tile_nothing(tile, wanted->link->grid, pool);
    return mc_tile_uniform(tile, wanted->tileset, wanted->link->grid, bgra, ctx, pool);
}

mc_error *
mc_tile_finish_raw(mc_tile *tile, const mc_tileset *tileset, apr_pool_t *pool)
{
    if (tile == NULL || !mc_tileset_keeps_bytes(tileset))
        return MC_OK;
    tile->raw = true;
    if (!tile->no_data || !mc_format_is_vector(tileset->format))
        return MC_OK;
    tile->no_data = tile->blank = false;
    tile->coding = MC_CODING_GZIP;
    tile->tag = 0;
    return mc_mvt_empty(&tile->data, pool);
}

static mc_error *
get_any(mc_tile **tile, const mc_tile_request *wanted, uint64_t if_tag, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_tile_key key;
    if (wanted->tileset->assembly != MC_ASSEMBLE_NONE)
        return mc_tileset_get_stacked(tile, wanted, if_tag, ctx, pool);
    MC_TRY(mc_tileset_key(&key, wanted, ctx, pool));
    return mc_tileset_get_sub(tile, wanted->tileset, &key, ctx, pool);
}

mc_error *
mc_tileset_get_cached(mc_tile **tile, const mc_tile_request *wanted, uint64_t if_tag, mc_ctx *ctx, apr_pool_t *pool)
{
    MC_SPAN(ctx, "mapcache_tileset_tile_get");
    MC_TRY(mc_tile_answer_hidden(tile, wanted, ctx, pool));
    if (*tile == NULL)
        MC_TRY(get_any(tile, wanted, if_tag, ctx, pool));
    return mc_tile_finish_raw(*tile, wanted->tileset, pool);
}
