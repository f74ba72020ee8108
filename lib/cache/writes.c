/* A series of puts that reaches the store in few large transactions: what a seeder gathers between two commits. */
#include <apr_strings.h>
#include <string.h>

#include "cache/cache_base.h"

#define BYTES_MAX ((size_t)64 << 20)

struct mc_cache_writes {
    apr_pool_t *pool; /* of this series */
    apr_pool_t *keys; /* of what is gathered */
    apr_pool_t *errors;
    mc_error *lost;  /* why something gathered was lost before the flush that would have told; NULL: nothing was */
    mc_cache *cache; /* NULL: nothing is gathered */
    mc_put *puts;
    int count, room;
    size_t bytes;
};

static void
let_go(mc_cache_writes *writes)
{
    for (int i = 0; i < writes->count; i++)
        mc_buf_unref(writes->puts[i].data);
    writes->count = 0;
    writes->bytes = 0;
    writes->cache = NULL;
    apr_pool_clear(writes->keys);
}

static apr_status_t
let_go_of_all(void *data)
{
    let_go(data);
    return APR_SUCCESS;
}

mc_cache_writes *
mc_cache_writes_create(apr_pool_t *pool)
{
    mc_cache_writes *writes = apr_pcalloc(pool, sizeof(*writes));
    writes->pool = pool;
    apr_pool_create(&writes->keys, pool);
    apr_pool_create(&writes->errors, pool);
    apr_pool_pre_cleanup_register(pool, writes, let_go_of_all);
    return writes;
}

int
mc_cache_writes_count(const mc_cache_writes *writes)
{
    return writes->count;
}

/* The key and what it points at, as long as it is gathered. */
static mc_tile_key
keep_key(mc_cache_writes *writes, const mc_tile_key *key)
{
    mc_tile_key kept = *key;
    const mc_tile_key *last = writes->count == 0 ? NULL : &writes->puts[writes->count - 1].key;
    if (key->dimension_count == 0)
        return kept;
    mc_dimension_value *values = apr_palloc(writes->keys, sizeof(*values) * (size_t)key->dimension_count);
    bool same = last != NULL && last->dimension_count == key->dimension_count;
    for (int i = 0; i < key->dimension_count; i++) {
        values[i] = key->dimensions[i];
        values[i].value = apr_pstrdup(writes->keys, values[i].value);
        same = same && strcmp(values[i].value, last->dimensions[i].value) == 0;
    }
    kept.dimensions = same ? last->dimensions : values;
    return kept;
}

static void
gather(mc_cache_writes *writes, const mc_put *put)
{
    if (writes->count == writes->room) {
        int room = writes->room == 0 ? 256 : writes->room * 2;
        mc_put *grown = apr_palloc(writes->pool, sizeof(*grown) * (size_t)room);
        if (writes->count > 0)
            memcpy(grown, writes->puts, sizeof(*grown) * (size_t)writes->count);
        writes->puts = grown;
        writes->room = room;
    }
    mc_put *kept = &writes->puts[writes->count];
    *kept = *put;
    kept->key = keep_key(writes, &put->key);
    mc_buf_ref(kept->data);
    writes->count++;
    writes->bytes += put->data->size;
}

static mc_error *
store_all(mc_ctx *ctx)
{
    mc_cache_writes *writes = ctx->writes;
    if (writes->count == 0)
        return MC_OK;
    ctx->writes = NULL; /* what the cache is made of writes at once */
    ctx->bulk = true;
    mc_error *error = mc_cache_put(writes->cache, writes->puts, writes->count, ctx);
    ctx->bulk = false;
    ctx->writes = writes;
    let_go(writes);
    return error;
}

/* Between two flushes: whoever put what is lost here is told by the next one. */
static mc_error *
store_early(mc_ctx *ctx)
{
    mc_cache_writes *writes = ctx->writes;
    mc_error *error = store_all(ctx);
    if (error != MC_OK && writes->lost == MC_OK)
        writes->lost = mc_error_copy(error, writes->errors);
    return error;
}

mc_error *
mc_cache_writes_flush(mc_ctx *ctx)
{
    mc_cache_writes *writes = ctx->writes;
    if (writes == NULL)
        return MC_OK;
    mc_error *error = store_all(ctx);
    if (error == MC_OK)
        error = mc_error_copy(writes->lost, ctx->pool);
    writes->lost = MC_OK;
    apr_pool_clear(writes->errors);
    return error;
}

mc_error *
mc_cache_writes_add(mc_cache *cache, const mc_put *tiles, int count, mc_ctx *ctx)
{
    mc_cache_writes *writes = ctx->writes;
    if (writes->cache != NULL && writes->cache != cache)
        MC_TRY(store_early(ctx));
    writes->cache = cache;
    for (int i = 0; i < count; i++)
        gather(writes, &tiles[i]);
    return writes->bytes > BYTES_MAX ? store_early(ctx) : MC_OK;
}

/* A tile that is asked for must be in its store first. */
mc_error *
mc_cache_writes_settle(mc_cache *cache, const mc_tile_key *key, mc_ctx *ctx)
{
    const mc_cache_writes *writes = ctx->writes;
    if (writes->count == 0)
        return MC_OK;
    if (writes->cache != cache) /* it may be part of this one */
        return store_early(ctx);
    for (int i = 0; i < writes->count; i++)
        if (writes->puts[i].key.x == key->x && writes->puts[i].key.y == key->y && writes->puts[i].key.z == key->z)
            return store_early(ctx);
    return MC_OK;
}
