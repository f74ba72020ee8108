/* Tiles as they stand in the store, many at a time: neither rendered, nor expired, nor hidden by rules. */
#include "compress/packing.h"
#include "tileset/variant.h"

/* Keys of tiles of one tileset, link, level and values. */
static mc_error *
make_stored_keys(mc_tile_key **keys, const mc_tile_request *wanted, int count, mc_ctx *ctx, apr_pool_t *pool)
{
    MC_TRY(mc_tileset_check_built(wanted[0].tileset, pool));
    *keys = apr_palloc(pool, sizeof(**keys) * (size_t)count);
    MC_TRY(mc_tileset_key(&(*keys)[0], &wanted[0], ctx, pool));
    for (int i = 1; i < count; i++) {
        (*keys)[i] = (*keys)[0];
        (*keys)[i].x = wanted[i].x;
        (*keys)[i].y = wanted[i].y;
    }
    return MC_OK;
}

static mc_error *
get_one_by_one(mc_tile **tiles, mc_cache *cache, const mc_tile_key *keys, int count, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_error *error = MC_OK;
    mc_cache_reads_begin(ctx);
    for (int i = 0; i < count && error == MC_OK; i++)
        error = mc_cache_get(&tiles[i], cache, &keys[i], ctx, pool);
    mc_cache_reads_end(ctx);
    return error;
}

mc_error *
mc_tileset_stored_all(mc_tile **tiles, const mc_tile_request *wanted, int count, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_cache *cache = wanted[0].tileset->cache;
    mc_tile_key *keys;
    MC_TRY(make_stored_keys(&keys, wanted, count, ctx, pool));
    if (count > 1 && mc_cache_gets_all(cache))
        return mc_cache_get_all(tiles, cache, keys, count, ctx, pool);
    return get_one_by_one(tiles, cache, keys, count, ctx, pool);
}

mc_error *
mc_tileset_exist_all(bool *exists, const mc_tile_request *wanted, int count, mc_ctx *ctx)
{
    mc_tile_key *keys;
    MC_TRY(make_stored_keys(&keys, wanted, count, ctx, ctx->pool));
    for (int i = 0; i < count; i++)
        keys[i].renderable = true; /* who asks is about to write: a store that is not there yet has no tiles */
    return mc_cache_exist_all(exists, wanted[0].tileset->cache, keys, count, ctx);
}

mc_error *
mc_tileset_put_all(const mc_tile_request *wanted, mc_tile *const *tiles, int count, mc_ctx *ctx)
{
    mc_tileset *tileset = wanted[0].tileset;
    mc_tile_key *keys;
    MC_TRY(make_stored_keys(&keys, wanted, count, ctx, ctx->pool));
    mc_tile_write *puts = apr_pcalloc(ctx->pool, sizeof(*puts) * (size_t)count);
    for (int i = 0; i < count; i++) {
        puts[i] = (mc_tile_write){ .key = keys[i],
                                   .data = tiles[i]->data,
                                   .uniform = tiles[i]->blank,
                                   .lifetime = mc_tileset_store_lifetime(tileset),
                                   .layers = mc_tileset_vector_layers,
                                   .layers_baton = tileset };
        for (int channel = 0; channel < 4; channel++)
            puts[i].bgra[channel] = tiles[i]->bgra[channel];
    }
    MC_TRY(mc_cache_put(tileset->cache, puts, count, ctx));
    return mc_variants_forget(tileset, keys, count, ctx);
}

mc_error *
mc_tileset_repack(mc_buf **data, const mc_tileset *target, apr_pool_t *pool)
{
    const mc_format *format = target->format;
    if (!mc_format_is_vector(format))
        return MC_OK;
    mc_packing given = mc_packing_of((*data)->data, (*data)->size), wanted = MC_PACKED_GZIP;
    mc_gzip_level level = MC_GZIP_GOOD;
    if (format->type == MC_FORMAT_MVT) {
        wanted = (mc_packing)format->mvt.encoding;
        level = (mc_gzip_level)format->mvt.compression;
    }
    if (given == MC_NOT_PACKED && wanted == MC_PACKED_GZIP) /* as it came: all clients take it */
        return MC_OK;
    return mc_repack(data, wanted, level, MC_TILE_BYTES_MAX, pool);
}
