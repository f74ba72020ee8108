/* The front of all caches: the common keys, traces, counters, memory for a time, and blank tiles, so that a back end
 * has to know its store only. */
#include <apr_strings.h>
#include <stdatomic.h>
#include <string.h>

#include "base/metrics.h"
#include "cache/attempt.h"
#include "cache/cache_counters.h"
#include "cache/uses.h"
#include "mapcache/trace.h"
#include "mapcache/upkeep.h"
#include "text/text.h"

bool
mc_cache_read(mc_cache_base *base, const mc_cache_ops *ops, bool stamped, const mc_node *node, mc_build *build)
{
    static _Atomic uint64_t serial;
    base->cache.ops = ops;
    base->cache.serial = atomic_fetch_add(&serial, 1) + 1;
    base->cache.definition = mc_node_hash(node);
    base->cache.remember = stamped;
    if (!mc_config_read(base, node, ops->keys, build->diagnostics))
        return false;
    if (base->memory == NULL || (stamped && strcasecmp(base->memory, "true") == 0))
        return true;
    double seconds = 0;
    if (strcasecmp(base->memory, "false") == 0) {
        base->cache.remember = false;
    } else if (mc_parse_double(&seconds, base->memory) && seconds >= 0 && seconds <= 1e9) {
        base->cache.remember = seconds > 0;
        base->cache.remember_for = stamped ? 0 : seconds;
    } else {
        mc_complain(build->diagnostics, MC_REFUSED, mc_node_child(node, "memory"),
                    "%s is not %sfalse or a number of seconds", mc_config_quote(base->memory, build->pool),
                    stamped ? "true, " : "");
        return false;
    }
    return true;
}

void
mc_cache_used_by(mc_cache *cache, const mc_cache_use *use, const mc_node *node, mc_build *build)
{
    if (cache->uses != NULL)
        mc_uses_add_tileset(cache->uses, use);
    if (cache->ops->used_by != NULL)
        cache->ops->used_by(cache, use, node, build);
}

bool
mc_cache_tells_grids(const mc_cache *cache)
{
    return cache->ops->tells_grids != NULL && cache->ops->tells_grids(cache);
}

static void
note_part_without_time(void *baton, mc_cache *part)
{
    bool *keeps = baton;
    *keeps = *keeps && part->ops->keeps_time != NULL && part->ops->keeps_time(part);
}

bool
mc_cache_keeps_time(mc_cache *cache)
{
    bool keeps = true;
    mc_cache_parts(cache, note_part_without_time, &keeps);
    return keeps;
}

static mc_metrics *
cache_metrics(const mc_ctx *ctx)
{
    return ctx->process == NULL ? NULL : ctx->process->metrics;
}

/* A stored colour is premultiplied B, G, R, A behind a '#' (docs/reference/configuration.md 5.3.5). */
mc_error *
mc_cache_expand(mc_tile *tile, const mc_tile_key *key, apr_pool_t *pool)
{
    if (tile->blank || tile->data->size == 0 || tile->data->data[0] != '#')
        return MC_OK;
    if (tile->data->size < 5)
        return mc_error_create(pool, MC_ERR_CORRUPT, "a stored tile is a cut off colour");
    memcpy(tile->bgra, tile->data->data + 1, 4);
    tile->blank = true;
    tile->no_data = tile->bgra[3] == 0;
    MC_TRY(mc_image_blank(&tile->data, key->grid->tile_width, key->grid->tile_height, tile->bgra, pool));
    tile->coding = MC_CODING_PNG;
    tile->tag = 0;
    return MC_OK;
}

static mc_error *
get_from_store(mc_tile **tile, mc_cache *cache, const mc_tile_key *key, mc_ctx *ctx, apr_pool_t *pool)
{
    *tile = NULL;
    MC_TRY(mc_cache_attempt(
        cache, &(mc_store_call){ .operation = MC_STORE_GET, .keys = key, .tiles = tile, .pool = pool }, ctx));
    return *tile == NULL ? MC_OK : mc_cache_expand(*tile, key, pool);
}

/* Of a store without a stamp: what may be used for a configured time. An absence that a render may end is not. */
static mc_error *
get_for_a_time(mc_tile **tile, mc_cache *cache, const mc_tile_key *key, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_memory_key memory_key;
    mc_memory_key_build(&memory_key, cache->serial, "", key);
    if (!ctx->past_memory && mc_memory_get(tile, &memory_key, NULL, ctx, pool))
        return MC_OK;
    MC_TRY(get_from_store(tile, cache, key, ctx, pool));
    if (*tile != NULL || !key->renderable)
        mc_memory_put_for(&memory_key, cache->remember_for, *tile, ctx);
    return MC_OK;
}

mc_error *
mc_cache_get(mc_tile **tile, mc_cache *cache, const mc_tile_key *key, mc_ctx *ctx, apr_pool_t *pool)
{
    MC_SPAN_AS(span, ctx, "mapcache_cache_tile_get");
    mc_span_about(&span, cache->name);
    if (ctx->writes != NULL)
        MC_TRY(mc_cache_writes_settle(cache, key, ctx));
    mc_error *error = cache->remember_for > 0 ? get_for_a_time(tile, cache, key, ctx, pool)
                                              : get_from_store(tile, cache, key, ctx, pool);
    if (error != MC_OK) {
        mc_span_note(&span, "ERROR");
        return error;
    }
    mc_count(cache_metrics(ctx), *tile == NULL ? MC_COUNT_cache_misses_total : MC_COUNT_cache_hits_total, 1);
    if (*tile == NULL)
        mc_span_note(&span, "CACHE_MISS");
    if (cache->uses != NULL && *tile == NULL)
        mc_uses_begin(cache->uses, ctx);
    else if (cache->uses != NULL)
        mc_uses_note(cache->uses, key, ctx);
    return MC_OK;
}

bool
mc_cache_gets_all(const mc_cache *cache)
{
    return cache->ops->get_all != NULL && (cache->ops->gets_all == NULL || cache->ops->gets_all(cache));
}

/* Those that memory has; the rest is moved together. Returns how many are left. */
static int
recall_all(mc_tile **tiles, mc_tile_key *left, int *places, const mc_cache *cache, const mc_tile_key *keys, int count,
           mc_ctx *ctx, apr_pool_t *pool)
{
    int missing = 0;
    for (int i = 0; i < count; i++) {
        mc_memory_key memory_key;
        tiles[i] = NULL;
        if (cache->remember_for > 0) {
            mc_memory_key_build(&memory_key, cache->serial, "", &keys[i]);
            if (mc_memory_get(&tiles[i], &memory_key, NULL, ctx, pool))
                continue;
        }
        left[missing] = keys[i];
        places[missing++] = i;
    }
    return missing;
}

static mc_error *
get_all_from_store(mc_tile **tiles, mc_cache *cache, const mc_tile_key *keys, int count, mc_ctx *ctx, apr_pool_t *pool)
{
    const mc_store_call call = {
        .operation = MC_STORE_GET_ALL, .keys = keys, .count = count, .tiles = tiles, .pool = pool
    };
    MC_TRY(mc_cache_attempt(cache, &call, ctx));
    for (int i = 0; i < count; i++) {
        mc_memory_key memory_key;
        if (tiles[i] != NULL)
            MC_TRY(mc_cache_expand(tiles[i], &keys[i], pool));
        if (cache->remember_for <= 0 || (tiles[i] == NULL && keys[i].renderable))
            continue;
        mc_memory_key_build(&memory_key, cache->serial, "", &keys[i]);
        mc_memory_put_for(&memory_key, cache->remember_for, tiles[i], ctx);
    }
    return MC_OK;
}

mc_error *
mc_cache_get_all(mc_tile **tiles, mc_cache *cache, const mc_tile_key *keys, int count, mc_ctx *ctx, apr_pool_t *pool)
{
    MC_SPAN_AS(span, ctx, "mapcache_cache_tile_get");
    mc_span_about(&span, cache->name);
    mc_tile_key *left = apr_palloc(pool, sizeof(*left) * (size_t)(count + 1));
    int *places = apr_palloc(pool, sizeof(*places) * (size_t)(count + 1));
    int missing = recall_all(tiles, left, places, cache, keys, count, ctx, pool);
    mc_tile **found = apr_pcalloc(pool, sizeof(*found) * (size_t)(missing + 1));
    mc_error *error = missing == 0 ? MC_OK : get_all_from_store(found, cache, left, missing, ctx, pool);
    if (error != MC_OK) {
        mc_span_note(&span, "ERROR");
        return error;
    }
    for (int i = 0; i < missing; i++)
        tiles[places[i]] = found[i];
    uint64_t hits = 0;
    for (int i = 0; i < count; i++)
        hits += tiles[i] != NULL;
    mc_count(cache_metrics(ctx), MC_COUNT_cache_hits_total, hits);
    mc_count(cache_metrics(ctx), MC_COUNT_cache_misses_total, (uint64_t)count - hits);
    return MC_OK;
}

mc_error *
mc_cache_redirect(const char **url, mc_cache *cache, const mc_tile_key *key, apr_pool_t *pool)
{
    *url = NULL;
    return cache->ops->redirect == NULL ? MC_OK : cache->ops->redirect(url, cache, key, pool);
}

mc_error *
mc_cache_exists(bool *exists, mc_cache *cache, const mc_tile_key *key, mc_ctx *ctx)
{
    MC_SPAN(ctx, "mapcache_cache_tile_exists");
    *exists = false;
    if (ctx->writes != NULL)
        MC_TRY(mc_cache_writes_settle(cache, key, ctx));
    if (cache->uses != NULL)
        mc_uses_begin(cache->uses, ctx);
    return mc_cache_attempt(cache, &(mc_store_call){ .operation = MC_STORE_EXISTS, .keys = key, .exists = exists },
                            ctx);
}

/* In one series of gets; waiting puts are seen to. */
static mc_error *
exist_one_by_one(bool *exists, mc_cache *cache, const mc_tile_key *keys, int count, mc_ctx *ctx)
{
    mc_error *error = MC_OK;
    mc_cache_reads_begin(ctx);
    for (int i = 0; i < count && error == MC_OK; i++)
        error = mc_cache_exists(&exists[i], cache, &keys[i], ctx);
    mc_cache_reads_end(ctx);
    return error;
}

mc_error *
mc_cache_exist_all(bool *exists, mc_cache *cache, const mc_tile_key *keys, int count, mc_ctx *ctx)
{
    if (count < 2 || cache->ops->exist_all == NULL)
        return exist_one_by_one(exists, cache, keys, count, ctx);
    MC_SPAN(ctx, "mapcache_cache_tile_exists");
    for (int i = 0; i < count; i++) {
        exists[i] = false;
        if (ctx->writes != NULL)
            MC_TRY(mc_cache_writes_settle(cache, &keys[i], ctx));
    }
    if (cache->uses != NULL)
        mc_uses_begin(cache->uses, ctx);
    const mc_store_call call = { .operation = MC_STORE_EXIST_ALL, .keys = keys, .count = count, .exists = exists };
    return mc_cache_attempt(cache, &call, ctx);
}

mc_error *
mc_cache_put(mc_cache *cache, const mc_tile_write *tiles, int count, mc_ctx *ctx)
{
    for (int i = 0; i < count; i++)
        if (tiles[i].data == NULL || tiles[i].data->size == 0)
            return mc_error_create(ctx->pool, MC_ERR_IO, "an empty tile cannot be stored");
    if (ctx->writes != NULL)
        return mc_cache_writes_add(cache, tiles, count, ctx);
    return mc_cache_put_now(cache, tiles, count, ctx);
}

mc_error *
mc_cache_remove(mc_cache *cache, const mc_tile_key *key, mc_ctx *ctx)
{
    MC_SPAN(ctx, "mapcache_cache_tile_delete");
    if (ctx->writes != NULL && cache->ops->remove_all != NULL)
        return mc_cache_writes_remove(cache, key, 1, ctx);
    if (ctx->writes != NULL)
        MC_TRY(mc_cache_writes_settle(cache, key, ctx));
    return mc_cache_remove_now(cache, key, ctx);
}

mc_error *
mc_cache_remove_all(mc_cache *cache, const mc_tile_key *keys, int count, mc_ctx *ctx)
{
    if (cache->ops->remove_all == NULL) {
        for (int i = 0; i < count; i++)
            MC_TRY(mc_cache_remove(cache, &keys[i], ctx));
        return MC_OK;
    }
    if (ctx->writes != NULL) {
        MC_SPAN(ctx, "mapcache_cache_tile_delete");
        return mc_cache_writes_remove(cache, keys, count, ctx);
    }
    return mc_cache_remove_all_now(cache, keys, count, ctx);
}

bool
mc_cache_lists(const mc_cache *cache, const mc_tile_key *key)
{
    return cache->ops->lists != NULL && cache->ops->lists(cache, key);
}

mc_cache *
mc_cache_whole(mc_cache *cache, const mc_tile_key *key)
{
    for (mc_cache *part = cache; part != NULL;) {
        cache = part;
        part = cache->ops->whole == NULL ? NULL : cache->ops->whole(cache, key);
    }
    return cache;
}

mc_error *
mc_cache_list(mc_cache *cache, const mc_tile_key *key, const mc_tile_range *area, mc_tile_visit *visit, void *baton,
              mc_ctx *ctx)
{
    if (ctx->writes != NULL)
        MC_TRY(mc_cache_writes_flush(ctx));
    return cache->ops->list(cache, key, area, visit, baton, ctx);
}
