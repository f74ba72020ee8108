/* Tiles in further formats: kept beside the tile of the first format, or made of it for a request. */
#include <apr_strings.h>
#include <string.h>

#include "base/hash.h"
#include "cache/marked.h"
#include "mapcache/trace.h"
#include "tileset/variant.h"

static mc_error *
recode_tile(mc_buf **data, const mc_tile *first, const mc_tileset *variant, const mc_grid *grid, mc_purpose purpose,
            mc_ctx *ctx, apr_pool_t *pool)
{
    MC_SPAN(ctx, "mapcache_tileset_recode_tile");
    mc_pixels *pixels;
    MC_TRY(mc_tile_decode(&pixels, first, grid, ctx, pool));
    mc_pixels_attach(pixels, pool);
    return mc_variant_encode(data, variant, pixels, purpose, ctx, pool);
}

/* Made for this request. The tag follows from that of the first format, so that nothing is encoded for a client that
 * has it. */
static mc_error *
make_unkept(mc_tile **tile, mc_tile *first, const mc_tile_request *wanted, uint64_t if_tag, mc_ctx *ctx,
            apr_pool_t *pool)
{
    const mc_tileset *variant = wanted->tileset;
    uint64_t parts[2] = { mc_tile_tag(first), mc_format_tag(variant->format) };
    *tile = apr_pmemdup(pool, first, sizeof(*first));
    (*tile)->tag = mc_hash64(parts, sizeof(parts), 0);
    (*tile)->coding = mc_format_coding(variant->format);
    (*tile)->data = NULL;
    if (if_tag != 0 && if_tag == (*tile)->tag)
        return MC_OK;
    MC_SLOW(ctx);
    return recode_tile(&(*tile)->data, first, variant, wanted->link->grid, MC_ON_THE_FLY, ctx, pool);
}

static bool
is_kept(const mc_tile_request *wanted)
{
    const mc_grid_link *link = wanted->link;
    if (wanted->style != NULL) /* of another palette: made for each request */
        return false;
    return wanted->tileset->keeping != MC_KEEP_NEVER && wanted->tileset->assembly == MC_ASSEMBLE_NONE &&
           (link->max_cached_zoom < 0 || wanted->z <= link->max_cached_zoom);
}

/* Made now, of what the first format has now. */
static mc_error *
replace_outdated_variant(mc_tile **tile, mc_tileset *variant, const mc_tile_key *key, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_error *store_error = MC_OK;
    MC_SLOW(ctx);
    MC_TRY(mc_metatile_render(tile, &store_error, variant, key, ctx, pool));
    if (store_error != MC_OK)
        mc_log_error(ctx, MC_LOG_ERROR, store_error);
    return MC_OK;
}

/* Where tiles expire, the tile of the first format says how old the picture is, and whether a newer one is there. */
static mc_error *
get_expiring(mc_tile **tile, const mc_tile_key *key, const mc_tile_request *wanted, uint64_t if_tag, mc_ctx *ctx,
             apr_pool_t *pool)
{
    mc_tile *first;
    mc_tile_request original = *wanted;
    original.tileset = wanted->tileset->master;
    MC_TRY(mc_tileset_get(&first, &original, ctx, pool));
    if (first->provisional > 0)
        return make_unkept(tile, first, wanted, if_tag, ctx, pool);
    MC_TRY(mc_cache_get(tile, wanted->tileset->cache, key, ctx, pool));
    if (*tile == NULL) /* one makes it, the others wait */
        MC_TRY(mc_tileset_get_sub(tile, wanted->tileset, key, ctx, pool));
    if ((*tile)->no_data || (*tile)->mtime < first->mtime)
        MC_TRY(replace_outdated_variant(tile, wanted->tileset, key, ctx, pool));
    (*tile)->mtime = first->mtime;
    (*tile)->stale = first->stale;
    (*tile)->stale_since = first->stale_since;
    return MC_OK;
}

/* What is stored; *tile is NULL where it has to be made without being kept. */
static mc_error *
get_kept_variant(mc_tile **tile, const mc_tile_request *wanted, uint64_t if_tag, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_tile_key key;
    MC_TRY(mc_tileset_key(&key, wanted, ctx, pool));
    if (!mc_tileset_renders(wanted->tileset))
        return mc_cache_get(tile, wanted->tileset->cache, &key, ctx, pool);
    if (mc_tileset_may_be_stale(wanted->tileset))
        return get_expiring(tile, &key, wanted, if_tag, ctx, pool);
    MC_TRY(mc_tileset_get_sub(tile, wanted->tileset, &key, ctx, pool));
    if ((*tile)->no_data) /* it was waited for, and whoever made it has removed it again (remove_overtaken) */
        *tile = NULL;
    return MC_OK;
}

static mc_error *
get_variant_tile(mc_tile **tile, const mc_tile_request *wanted, uint64_t if_tag, mc_ctx *ctx, apr_pool_t *pool)
{
    MC_SPAN(ctx, "mapcache_tileset_variant_get");
    mc_tile_request original = *wanted;
    mc_tile *first, *hidden;
    *tile = NULL;
    MC_TRY(mc_tile_answer_hidden(&hidden, wanted, ctx, pool));
    if (hidden == NULL && is_kept(wanted))
        MC_TRY(get_kept_variant(tile, wanted, if_tag, ctx, pool));
    if (*tile != NULL)
        return MC_OK;
    original.tileset = wanted->tileset->master;
    MC_TRY(mc_tileset_get(&first, &original, ctx, pool));
    return make_unkept(tile, first, wanted, if_tag, ctx, pool);
}

/* Whether the first format has another tile now than the one that a further format was made of: who stored it has
 * removed the further formats before that one was stored, and will not come back. */
static mc_error *
remove_overtaken(const mc_tileset *variant, const mc_tile_key *key, const mc_tile_key *original, mc_tile *made_of,
                 mc_ctx *ctx, apr_pool_t *pool)
{
    mc_tile *now;
    MC_TRY(mc_cache_get(&now, variant->master->cache, original, ctx, pool));
    bool same = now == NULL ? made_of->no_data : mc_tile_tag(now) == mc_tile_tag(made_of);
    if (same)
        return MC_OK;
    mc_made_tiles_forget(ctx->made); /* nor does anybody who waits get the tile */
    return mc_cache_remove(variant->cache, key, ctx);
}

static mc_error *
render_variant_tile(mc_tile **tile, mc_error **store_error, mc_tileset *variant, const mc_tile_key *key, mc_ctx *ctx,
                    apr_pool_t *pool)
{
    mc_tileset *master = variant->master;
    mc_tile_key original = mc_variant_key(master, key);
    mc_tile *first;
    original.renderable = mc_tileset_renders(master);
    int descended = mc_flight_descend(); /* no circle: the first format is never made of a further one */
    mc_error *error = mc_tileset_get_sub(&first, master, &original, ctx, pool);
    mc_flight_ascend(descended);
    MC_TRY(error);
    bool timed = master->watch != NULL || mc_is_marked_time(first->mtime);
    mc_tile_write write = { .key = *key, .made = timed ? first->mtime : 0 };
    MC_TRY(recode_tile(&write.data, first, variant, key->grid, MC_FOR_STORE, ctx, pool));
    MC_TRY(mc_metatile_store(&write, 1, tile, store_error, first->provisional, variant, key, ctx, pool));
    if (*store_error == MC_OK && first->provisional <= 0)
        *store_error = remove_overtaken(variant, key, &original, first, ctx, pool);
    return MC_OK;
}

const struct mc_variant_ops mc_variant_ops = { get_variant_tile, render_variant_tile };
