/* The cache "rest", and the operations of all caches behind HTTP (docs/reference/configuration.md 5.11). */
#include <apr_hash.h>
#include <apr_strings.h>
#include <string.h>

#include "cache/rest/rest_base.h"
#include "mapcache/trace.h"
#include "text/text.h"

enum { AT_ONCE = 256 /* requests that are made and waited for together */ };

typedef struct plain_rest_cache {
    mc_rest_cache rest;
} plain_rest_cache;

static const mc_key rest_keys[] = { MC_REST_KEYS, MC_KEY_END };

static mc_cache *
rest_from_config(const mc_node *node, mc_build *build)
{
    plain_rest_cache *cache = apr_pcalloc(build->pool, sizeof(*cache));
    return mc_rest_read(&cache->rest, &mc_cache_rest, node, build) ? &cache->rest.base.cache : NULL;
}

/* The tile of an answer; an empty one is none, as an empty file is. */
static mc_tile *
tile_of_answer(const mc_rest_ask *ask, apr_pool_t *pool)
{
    const char *date = ask->absent ? NULL : apr_table_get(ask->reply.headers, "Last-Modified");
    if (ask->absent || ask->reply.body->size == 0)
        return NULL;
    return mc_tile_create(ask->reply.body, date == NULL ? 0 : apr_time_from_sec(mc_http_date_parse(date)), pool);
}

static mc_error *
get_tiles_at_once(mc_tile **tiles, mc_cache *base, const mc_tile_key *keys, int count, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_rest_ask *asks = apr_pcalloc(pool, sizeof(*asks) * (size_t)(count + 1));
    for (int i = 0; i < count; i++)
        asks[i] = (mc_rest_ask){ .operation = MC_REST_GET, .key = &keys[i] };
    MC_TRY(mc_rest_send((mc_rest_cache *)base, asks, count, ctx, pool));
    for (int i = 0; i < count; i++)
        tiles[i] = tile_of_answer(&asks[i], pool);
    return MC_OK;
}

mc_error *
mc_rest_get_all(mc_tile **tiles, mc_cache *base, const mc_tile_key *keys, int count, mc_ctx *ctx, apr_pool_t *pool)
{
    MC_SPAN_AS(span, ctx, "_mapcache_cache_rest_get");
    mc_error *error = MC_OK;
    for (int i = 0; i < count && error == MC_OK; i += AT_ONCE)
        error = get_tiles_at_once(tiles + i, base, keys + i, count - i < AT_ONCE ? count - i : AT_ONCE, ctx, pool);
    if (error != MC_OK)
        mc_span_note(&span, "ERROR");
    else if (count == 1 && tiles[0] == NULL)
        mc_span_note(&span, "CACHE_MISS");
    return error;
}

mc_error *
mc_rest_get(mc_tile **tile, mc_cache *base, const mc_tile_key *key, mc_ctx *ctx, apr_pool_t *pool)
{
    *tile = NULL;
    return mc_rest_get_all(tile, base, key, 1, ctx, pool);
}

static mc_error *
look_for_tiles_at_once(bool *exists, mc_cache *base, const mc_tile_key *keys, int count, mc_ctx *ctx)
{
    mc_rest_ask *asks = apr_pcalloc(ctx->pool, sizeof(*asks) * (size_t)(count + 1));
    for (int i = 0; i < count; i++)
        asks[i] = (mc_rest_ask){ .operation = MC_REST_HEAD, .key = &keys[i] };
    MC_TRY(mc_rest_send((mc_rest_cache *)base, asks, count, ctx, ctx->pool));
    for (int i = 0; i < count; i++)
        exists[i] = !asks[i].absent;
    return MC_OK;
}

mc_error *
mc_rest_exist_all(bool *exists, mc_cache *base, const mc_tile_key *keys, int count, mc_ctx *ctx)
{
    for (int i = 0; i < count; i += AT_ONCE)
        MC_TRY(look_for_tiles_at_once(exists + i, base, keys + i, count - i < AT_ONCE ? count - i : AT_ONCE, ctx));
    return MC_OK;
}

mc_error *
mc_rest_exists(bool *exists, mc_cache *base, const mc_tile_key *key, mc_ctx *ctx)
{
    return mc_rest_exist_all(exists, base, key, 1, ctx);
}

/* Sends so many of the asks together that neither memory nor the store is filled by a seeder's commit. */
static mc_error *
send_in_parts(mc_rest_cache *cache, mc_rest_ask *asks, int count, mc_ctx *ctx)
{
    apr_pool_t *scratch;
    mc_error *error = MC_OK;
    apr_pool_create(&scratch, ctx->pool);
    for (int i = 0; i < count && error == MC_OK; i += AT_ONCE) {
        apr_pool_clear(scratch);
        error = mc_rest_send(cache, asks + i, count - i < AT_ONCE ? count - i : AT_ONCE, ctx, scratch);
    }
    error = mc_error_copy(error, ctx->pool);
    apr_pool_destroy(scratch);
    return error;
}

/* Whether the tile comes again behind `from`: the last one counts. */
static mc_error *
collect_puts(mc_rest_ask *asks, int *kept, mc_rest_cache *cache, const mc_tile_write *tiles, int count, mc_ctx *ctx)
{
    apr_hash_t *stored = apr_hash_make(ctx->pool);
    *kept = 0;
    for (int i = count - 1; i >= 0; i--) {
        const char *url, *path;
        MC_TRY(mc_rest_url(&url, &path, cache, &tiles[i].key, ctx->pool));
        if (apr_hash_get(stored, url, APR_HASH_KEY_STRING) != NULL)
            continue;
        apr_hash_set(stored, url, APR_HASH_KEY_STRING, "");
        /* what was there before would go on showing */
        bool nothing = cache->detect_blank && tiles[i].uniform && tiles[i].bgra[3] == 0;
        asks[(*kept)++] = (mc_rest_ask){ .operation = nothing ? MC_REST_DELETE : MC_REST_PUT,
                                         .key = &tiles[i].key,
                                         .body = tiles[i].data };
    }
    return MC_OK;
}

/*
 * The first one behind all others: whether a metatile is there is told by its first tile, which must not be there
 * before the others, wherever the store fails or the process is killed.
 */
mc_error *
mc_rest_put(mc_cache *base, const mc_tile_write *tiles, int count, mc_ctx *ctx)
{
    mc_rest_cache *cache = (mc_rest_cache *)base;
    mc_rest_ask *asks = apr_pcalloc(ctx->pool, sizeof(*asks) * (size_t)(count + 1));
    int kept;
    MC_TRY(collect_puts(asks, &kept, cache, tiles, count, ctx));
    MC_TRY(send_in_parts(cache, asks, kept - 1, ctx));
    return kept == 0 ? MC_OK : send_in_parts(cache, asks + kept - 1, 1, ctx);
}

mc_error *
mc_rest_remove_all(mc_cache *base, const mc_tile_key *keys, int count, mc_ctx *ctx)
{
    mc_rest_ask *asks = apr_pcalloc(ctx->pool, sizeof(*asks) * (size_t)(count + 1));
    for (int i = 0; i < count; i++)
        asks[i] = (mc_rest_ask){ .operation = MC_REST_DELETE, .key = &keys[i] };
    return send_in_parts((mc_rest_cache *)base, asks, count, ctx);
}

mc_error *
mc_rest_remove(mc_cache *base, const mc_tile_key *key, mc_ctx *ctx)
{
    return mc_rest_remove_all(base, key, 1, ctx);
}

/* Asks for one tile, which need not be there: who cannot read it cannot serve. */
mc_error *
mc_rest_reach(mc_cache *base, mc_ctx *ctx)
{
    mc_rest_cache *cache = (mc_rest_cache *)base;
    mc_rest_ask ask = { .operation = MC_REST_GET, .key = cache->first };
    return cache->first == NULL ? MC_OK : mc_rest_send(cache, &ask, 1, ctx, ctx->pool);
}

mc_error *
mc_rest_redirect(const char **url, mc_cache *base, const mc_tile_key *key, apr_pool_t *pool)
{
    const char *path;
    const mc_rest_cache *cache = (const mc_rest_cache *)base;
    if (!cache->use_redirects)
        return MC_OK;
    MC_TRY(mc_rest_url(url, &path, cache, key, pool));
    const char *host = strstr(*url, "://") + 3;
    const char *user = memrchr(host, '@', (size_t)(path - host));
    if (user != NULL) /* ours, and no client's */
        *url = apr_pstrcat(pool, apr_pstrmemdup(pool, *url, (size_t)(host - *url)), user + 1, NULL);
    return MC_OK;
}

bool
mc_rest_tells_grids(const mc_cache *base)
{
    return mc_template_by_grid(((const mc_rest_cache *)base)->template);
}

const mc_cache_ops mc_cache_rest = {
    MC_KIND("rest", rest_keys, rest_from_config, "Tiles that a web server keeps: GET, HEAD, PUT and DELETE."),
    MC_REST_OPS,
};
