/* The operations of a cache on servers of keys and values. */
#include "cache/keyvalue/keyvalue.h"

#include <apr_strings.h>
#include <string.h>

#include "base/bytes.h"
#include "mapcache/trace.h"

/* Seconds since 1970 of the last moment that a stored time may have: the year 2200. */
#define LATEST_TIME 7258118400

mc_error *
mc_keyvalue_tile(mc_tile **tile, mc_buf *value, const char *cache, apr_pool_t *pool)
{
    if (value->size <= MC_KEYVALUE_TIME)
        return mc_error_create(pool, MC_ERR_CORRUPT, "cache \"%s\" has a value of %lu bytes that is no tile", cache,
                               (unsigned long)value->size);
    value->size -= MC_KEYVALUE_TIME;
    int64_t time = (int64_t)mc_little64(value->data + value->size);
    if (time <= 0 || time > apr_time_from_sec(LATEST_TIME)) /* the end of a picture that somebody else has stored */
        return mc_error_create(pool, MC_ERR_CORRUPT, "cache \"%s\" has a value without a time: that is no tile", cache);
    *tile = mc_tile_create(value, apr_time_from_sec(apr_time_sec(time)), pool);
    return MC_OK;
}

mc_remote_call
mc_keyvalue_call(const mc_keyvalue_cache *cache, mc_ctx *ctx, apr_pool_t *pool)
{
    return (mc_remote_call){ ctx, pool, (apr_interval_time_t)(cache->timeout * APR_USEC_PER_SEC) };
}

static mc_remote_value *
make_keyvalues(const mc_keyvalue_cache *cache, const mc_tile_key *keys, int count, apr_pool_t *pool)
{
    mc_remote_value *values = apr_pcalloc(pool, sizeof(*values) * (size_t)(count + 1));
    for (int i = 0; i < count; i++) {
        values[i].key = mc_keyvalue_key(&keys[i], &cache->kind->rules, pool);
        values[i].key_size = strlen(values[i].key);
        values[i].most = MC_TILE_BYTES_MAX + MC_KEYVALUE_TIME;
    }
    return values;
}

mc_error *
mc_keyvalue_failure(mc_error *error, const mc_keyvalue_cache *cache, apr_pool_t *pool)
{
    mc_error_kind kind =
        error->kind == MC_ERR_NO_MEMORY || error->kind == MC_ERR_CONFIG ? error->kind : MC_ERR_UNAVAILABLE;
    return mc_error_wrap(pool, error, kind, "cache \"%s\" cannot reach its tiles", cache->base.cache.name);
}

mc_error *
mc_keyvalue_get_all(mc_tile **tiles, mc_cache *base, const mc_tile_key *keys, int count, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_keyvalue_cache *cache = (mc_keyvalue_cache *)base;
    MC_SPAN_AS(span, ctx, cache->kind->span);
    mc_remote_call call = mc_keyvalue_call(cache, ctx, pool);
    mc_remote_value *values = make_keyvalues(cache, keys, count, pool);
    mc_error *error = cache->kind->get(cache, values, count, &call);
    if (error != MC_OK)
        error = mc_keyvalue_failure(error, cache, pool);
    for (int i = 0; i < count && error == MC_OK; i++)
        if (values[i].found != NULL)
            error = mc_keyvalue_tile(&tiles[i], values[i].found, base->name, pool);
    if (error != MC_OK)
        mc_span_note(&span, "ERROR");
    else if (count == 1 && tiles[0] == NULL)
        mc_span_note(&span, "CACHE_MISS");
    return error;
}

mc_error *
mc_keyvalue_get(mc_tile **tile, mc_cache *base, const mc_tile_key *key, mc_ctx *ctx, apr_pool_t *pool)
{
    *tile = NULL;
    return mc_keyvalue_get_all(tile, base, key, 1, ctx, pool);
}

mc_error *
mc_keyvalue_exist_all(bool *exists, mc_cache *base, const mc_tile_key *keys, int count, mc_ctx *ctx)
{
    mc_keyvalue_cache *cache = (mc_keyvalue_cache *)base;
    mc_remote_call call = mc_keyvalue_call(cache, ctx, ctx->pool);
    mc_remote_value *values = make_keyvalues(cache, keys, count, ctx->pool);
    mc_error *error = cache->kind->has(cache, values, count, &call);
    for (int i = 0; i < count; i++)
        exists[i] = error == MC_OK && values[i].found != NULL;
    return error == MC_OK ? MC_OK : mc_keyvalue_failure(error, cache, ctx->pool);
}

mc_error *
mc_keyvalue_exists(bool *exists, mc_cache *base, const mc_tile_key *key, mc_ctx *ctx)
{
    return mc_keyvalue_exist_all(exists, base, key, 1, ctx);
}

/* What is stored of a tile: its bytes, or '#' and its colour; then the time. */
static void
fill_keyvalue(mc_remote_value *value, const mc_keyvalue_cache *cache, const mc_tile_write *tile, const uint8_t *time,
              apr_pool_t *pool)
{
    const uint8_t blank[5] = { '#', tile->bgra[0], tile->bgra[1], tile->bgra[2], tile->bgra[3] };
    bool uniform = cache->detect_blank && tile->uniform;
    value->data = uniform ? apr_pmemdup(pool, blank, sizeof(blank)) : tile->data->data;
    value->data_size = uniform ? sizeof(blank) : tile->data->size;
    value->tail = time;
    value->tail_size = MC_KEYVALUE_TIME;
    value->lifetime = tile->lifetime > 0 ? tile->lifetime : cache->expires;
}

static mc_error *
find_refused_value(const mc_remote_value *values, int count, const mc_keyvalue_cache *cache, apr_pool_t *pool)
{
    for (int i = 0; i < count; i++)
        if (values[i].refusal != NULL)
            return mc_error_create(pool, MC_ERR_IO, "cache \"%s\" does not take a tile of %lu bytes: %s",
                                   cache->base.cache.name, (unsigned long)values[i].data_size, values[i].refusal);
    return MC_OK;
}

/* The last tile first: the first one of a metatile tells whether the metatile is there. Of a tile that comes twice, the
 * last one. Returns how many. */
static int
fill_keyvalues(mc_remote_value *values, const mc_keyvalue_cache *cache, const mc_tile_write *tiles, int count,
               const uint8_t *time, apr_pool_t *pool)
{
    apr_hash_t *seen = apr_hash_make(pool);
    int filled = 0;
    for (int i = count - 1; i >= 0; i--) {
        mc_remote_value *value = &values[filled];
        value->key = mc_keyvalue_key(&tiles[i].key, &cache->kind->rules, pool);
        value->key_size = strlen(value->key);
        if (apr_hash_get(seen, value->key, (apr_ssize_t)value->key_size) != NULL)
            continue;
        apr_hash_set(seen, value->key, (apr_ssize_t)value->key_size, value);
        fill_keyvalue(value, cache, &tiles[i], time, pool);
        filled++;
    }
    return filled;
}

mc_error *
mc_keyvalue_put(mc_cache *base, const mc_tile_write *tiles, int count, mc_ctx *ctx)
{
    mc_keyvalue_cache *cache = (mc_keyvalue_cache *)base;
    apr_pool_t *pool;
    uint8_t time[MC_KEYVALUE_TIME];
    apr_pool_create(&pool, ctx->pool);
    (void)mc_store_little64(time, (uint64_t)(tiles[0].made != 0 ? tiles[0].made : apr_time_now()));
    mc_remote_call call = mc_keyvalue_call(cache, ctx, pool);
    mc_remote_value *values = apr_pcalloc(pool, sizeof(*values) * (size_t)(count + 1));
    int filled = fill_keyvalues(values, cache, tiles, count, time, pool);
    mc_error *error = cache->kind->set(cache, values, filled, &call);
    error = error == MC_OK ? find_refused_value(values, filled, cache, pool) : mc_keyvalue_failure(error, cache, pool);
    error = mc_error_copy(error, ctx->pool);
    apr_pool_destroy(pool);
    return error;
}

mc_error *
mc_keyvalue_remove_all(mc_cache *base, const mc_tile_key *keys, int count, mc_ctx *ctx)
{
    mc_keyvalue_cache *cache = (mc_keyvalue_cache *)base;
    apr_pool_t *pool;
    apr_pool_create(&pool, ctx->pool);
    mc_remote_call call = mc_keyvalue_call(cache, ctx, pool);
    mc_remote_value *values = make_keyvalues(cache, keys, count, pool);
    mc_error *error = cache->kind->remove(cache, values, count, &call);
    error = error == MC_OK ? MC_OK : mc_error_copy(mc_keyvalue_failure(error, cache, pool), ctx->pool);
    apr_pool_destroy(pool);
    return error;
}

mc_error *
mc_keyvalue_remove(mc_cache *base, const mc_tile_key *key, mc_ctx *ctx)
{
    return mc_keyvalue_remove_all(base, key, 1, ctx);
}

bool
mc_keyvalue_tells_grids(const mc_cache *cache)
{
    (void)cache; /* the key has the grid's name */
    return true;
}

/* The servers could only tell by looking through all that they keep. */
mc_error *
mc_keyvalue_measure(int64_t *bytes, int64_t *tiles, mc_cache *cache, const mc_tile_key *key, mc_ctx *ctx)
{
    (void)cache, (void)key, (void)ctx;
    *bytes = -1;
    *tiles = 0;
    return MC_OK;
}

mc_error *
mc_keyvalue_reach(mc_cache *base, mc_ctx *ctx)
{
    mc_keyvalue_cache *cache = (mc_keyvalue_cache *)base;
    mc_remote_value value = { .key = "%reach", .key_size = 6, .most = MC_TILE_BYTES_MAX }; /* no tile's key */
    mc_remote_call call = mc_keyvalue_call(cache, ctx, ctx->pool);
    mc_error *error = cache->kind->reach(cache, &value, 1, &call);
    return error == MC_OK ? MC_OK : mc_keyvalue_failure(error, cache, ctx->pool);
}

bool
mc_keyvalue_keeps_time(const mc_cache *cache)
{
    (void)cache;
    return true;
}
