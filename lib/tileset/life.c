/* The life of a tile (docs/reference/configuration.md 6.3): what happens to it when somebody asks for it, renders it,
 * puts it or removes it. */
#include "mapcache/trace.h"
#include "tileset/variant.h"

static bool
above_cached_zoom(const mc_tile_request *wanted)
{
    return wanted->link->max_cached_zoom >= 0 && wanted->z > wanted->link->max_cached_zoom;
}

mc_error *
mc_tileset_get(mc_tile **tile, const mc_tile_request *wanted, mc_ctx *ctx, apr_pool_t *pool)
{
    return mc_tileset_get_unless(tile, wanted, 0, ctx, pool);
}

mc_error *
mc_tileset_get_unless(mc_tile **tile, const mc_tile_request *wanted, uint64_t if_tag, mc_ctx *ctx, apr_pool_t *pool)
{
    if (wanted->tileset->own != NULL)
        return wanted->tileset->own->get(tile, wanted, if_tag, ctx, pool);
    if (!above_cached_zoom(wanted)) {
        MC_TRY(mc_tileset_get_cached(tile, wanted, if_tag, ctx, pool));
        return mc_tile_restyle(*tile, wanted, pool);
    }
    MC_SPAN(ctx, "mapcache_tileset_tile_get");
    MC_TRY(mc_tile_answer_hidden(tile, wanted, ctx, pool));
    if (*tile == NULL)
        MC_TRY(mc_tile_overzoom(tile, wanted, ctx, pool));
    return mc_tile_finish_raw(*tile, wanted->tileset, pool);
}

/* As it is stored, if it may go out. */
static mc_error *
get_kept(mc_tile **tile, const mc_tile_request *wanted, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_tile_key key;
    if (wanted->tileset->assembly != MC_ASSEMBLE_NONE)
        return mc_tileset_stored_assembly(tile, wanted, ctx, pool);
    MC_TRY(mc_tileset_key(&key, wanted, ctx, pool));
    MC_TRY(mc_cache_get(tile, wanted->tileset->cache, &key, ctx, pool));
    if (*tile != NULL && mc_tileset_freshness(wanted->tileset, &key, (*tile)->mtime, ctx) != MC_FRESH)
        *tile = NULL;
    return MC_OK;
}

mc_error *
mc_tileset_get_stored(mc_tile **tile, const mc_tile_request *wanted, mc_ctx *ctx, apr_pool_t *pool)
{
    if (!mc_tileset_renders(wanted->tileset) || wanted->tileset->master != NULL)
        return mc_tileset_get(tile, wanted, ctx, pool);
    MC_SPAN(ctx, "mapcache_tileset_tile_get");
    MC_TRY(mc_tile_answer_hidden(tile, wanted, ctx, pool));
    if (*tile == NULL && !above_cached_zoom(wanted))
        MC_TRY(get_kept(tile, wanted, ctx, pool));
    MC_TRY(mc_tile_finish_raw(*tile, wanted->tileset, pool));
    return above_cached_zoom(wanted) ? MC_OK : mc_tile_restyle(*tile, wanted, pool);
}

bool
mc_tileset_gets_all(const mc_tileset *tileset, const mc_grid_link *link, int z)
{
    return tileset->cache != NULL && mc_cache_gets_all(tileset->cache) && tileset->not_built == NULL &&
           tileset->assembly == MC_ASSEMBLE_NONE && link->ruleset == NULL &&
           (link->max_cached_zoom < 0 || z <= link->max_cached_zoom);
}

mc_error *
mc_tileset_get_stored_all(mc_tile **tiles, const mc_tile_request *wanted, int count, mc_ctx *ctx, apr_pool_t *pool)
{
    MC_SPAN(ctx, "mapcache_tileset_tile_get");
    mc_tileset *tileset = wanted[0].tileset;
    mc_tile_key *keys = apr_palloc(pool, sizeof(*keys) * (size_t)count);
    MC_TRY(mc_tileset_key(&keys[0], &wanted[0], ctx, pool));
    for (int i = 1; i < count; i++) {
        keys[i] = keys[0];
        keys[i].x = wanted[i].x;
        keys[i].y = wanted[i].y;
    }
    MC_TRY(mc_cache_get_all(tiles, tileset->cache, keys, count, ctx, pool));
    for (int i = 0; i < count; i++) {
        if (tiles[i] != NULL && keys[i].renderable &&
            mc_tileset_freshness(tileset, &keys[i], tiles[i]->mtime, ctx) != MC_FRESH)
            tiles[i] = NULL;
        if (tiles[i] == NULL && !keys[i].renderable)
            MC_TRY(mc_tile_nothing(&tiles[i], keys[i].grid, pool));
        MC_TRY(mc_tile_finish_raw(tiles[i], tileset, pool));
        MC_TRY(mc_tile_restyle(tiles[i], &wanted[i], pool));
    }
    return MC_OK;
}

mc_error *
mc_tileset_redirect(const char **url, const mc_tile_request *wanted, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_tile_key key;
    const mc_tileset *tileset = wanted->tileset;
    *url = NULL;
    if (tileset->master != NULL || tileset->cache == NULL || tileset->cache->ops->redirect == NULL ||
        tileset->not_built != NULL || tileset->assembly != MC_ASSEMBLE_NONE || above_cached_zoom(wanted) ||
        wanted->link->ruleset != NULL || wanted->style != NULL)
        return MC_OK;
    MC_TRY(mc_tileset_key(&key, wanted, ctx, pool));
    return mc_cache_redirect(url, tileset->cache, &key, pool);
}

mc_error *
mc_tileset_stored(mc_tile **tile, const mc_tile_request *wanted, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_tile_key key;
    MC_TRY(mc_tileset_check_built(wanted->tileset, pool));
    MC_TRY(mc_tileset_key(&key, wanted, ctx, pool));
    return mc_cache_get(tile, wanted->tileset->cache, &key, ctx, pool);
}

mc_error *
mc_tileset_exists(bool *exists, const mc_tile_request *wanted, mc_ctx *ctx)
{
    mc_tile_key key;
    uint8_t bgra[4];
    MC_TRY(mc_tileset_check_built(wanted->tileset, ctx->pool));
    *exists = wanted->link->ruleset != NULL && mc_tile_hidden(wanted->link, wanted->z, wanted->x, wanted->y, bgra);
    if (*exists)
        return MC_OK;
    MC_TRY(mc_tileset_key(&key, wanted, ctx, ctx->pool));
    key.renderable = true; /* who asks is about to write: a store that is not there yet has no tiles */
    return mc_cache_exists(exists, wanted->tileset->cache, &key, ctx);
}

mc_error *
mc_tileset_render(const mc_tile_request *wanted, mc_ctx *ctx)
{
    mc_tile_key key;
    mc_error *store_error = MC_OK;
    MC_TRY(mc_tileset_check_built(wanted->tileset, ctx->pool));
    if (wanted->tileset->assembly != MC_ASSEMBLE_NONE) {
        mc_tile *tile;
        MC_TRY(mc_tileset_assemble(&tile, wanted, 0, ctx, ctx->pool));
        return tile->provisional <= 0 ? MC_OK : mc_provisional_error(wanted->tileset, ctx->pool);
    }
    MC_TRY(mc_tileset_key(&key, wanted, ctx, ctx->pool));
    MC_TRY(mc_metatile_render(NULL, &store_error, wanted->tileset, &key, ctx, ctx->pool));
    return store_error;
}

mc_error *
mc_tileset_remove(const mc_tile_request *wanted, bool whole_metatile, mc_ctx *ctx)
{
    mc_tile_key key;
    MC_TRY(mc_tileset_check_built(wanted->tileset, ctx->pool));
    MC_TRY(mc_tileset_key(&key, wanted, ctx, ctx->pool));
    if (!whole_metatile) {
        MC_TRY(mc_cache_remove(wanted->tileset->cache, &key, ctx));
        return mc_variants_forget(wanted->tileset, &key, 1, ctx);
    }
    mc_metatile metatile = mc_tileset_metatile(wanted->tileset, key.grid, key.z, key.x, key.y);
    int count = 0;
    mc_tile_key *keys = apr_palloc(ctx->pool, sizeof(*keys) * (size_t)metatile.rows * (size_t)metatile.columns);
    for (int row = 0; row < metatile.rows; row++)
        for (int column = 0; column < metatile.columns; column++) {
            keys[count] = key;
            keys[count].x = metatile.x + column;
            keys[count++].y = metatile.y + row;
        }
    MC_TRY(mc_cache_remove_all(wanted->tileset->cache, keys, count, ctx));
    return mc_variants_forget(wanted->tileset, keys, count, ctx);
}

mc_error *
mc_tileset_put(const mc_tile_request *wanted, mc_buf *data, mc_ctx *ctx)
{
    mc_tile_write put = { .data = data,
                          .lifetime = mc_tileset_store_lifetime(wanted->tileset),
                          .layers = mc_tileset_vector_layers,
                          .layers_baton = wanted->tileset };
    MC_TRY(mc_tileset_check_built(wanted->tileset, ctx->pool));
    MC_TRY(mc_tileset_key(&put.key, wanted, ctx, ctx->pool));
    MC_TRY(mc_cache_put(wanted->tileset->cache, &put, 1, ctx));
    return mc_variants_forget(wanted->tileset, &put.key, 1, ctx);
}
