/* A series of puts and removals that reaches the store in few large transactions: what a seeder gathers between two
 * commits. No tile is in both: where they meet, what was first goes first. */
#include <apr_strings.h>
#include <string.h>

#include "cache/attempt.h"
#include "mapcache/upkeep.h"

#define BYTES_MAX ((size_t)64 << 20)

struct mc_cache_writes {
    apr_pool_t *pool; /* of this series */
    apr_pool_t *keys; /* of what is gathered */
    apr_pool_t *errors;
    mc_error *lost;  /* why something gathered was lost before the flush that would have told; NULL: nothing was */
    mc_cache *cache; /* NULL: nothing is gathered */
    mc_tile_write *puts;
    int count, room;
    size_t bytes;
    mc_tile_key *removals; /* of one series */
    int removed, removal_room;
};

static void
release_pending_puts(mc_cache_writes *writes)
{
    for (int i = 0; i < writes->count; i++)
        mc_buf_unref(writes->puts[i].data);
    writes->count = writes->removed = 0;
    writes->bytes = 0;
    writes->cache = NULL;
    apr_pool_clear(writes->keys);
}

static apr_status_t
cache_writes_cleanup(void *data)
{
    release_pending_puts(data);
    return APR_SUCCESS;
}

mc_cache_writes *
mc_cache_writes_create(apr_pool_t *pool)
{
    mc_cache_writes *writes = apr_pcalloc(pool, sizeof(*writes));
    writes->pool = pool;
    apr_pool_create(&writes->keys, pool);
    apr_pool_create(&writes->errors, pool);
    apr_pool_pre_cleanup_register(pool, writes, cache_writes_cleanup);
    return writes;
}

int
mc_cache_writes_count(const mc_cache_writes *writes)
{
    return writes->count + writes->removed;
}

/* The key and what it points at, as long as it is gathered; `last`: the one before, or NULL. */
static mc_tile_key
keep_key(mc_cache_writes *writes, const mc_tile_key *key, const mc_tile_key *last)
{
    mc_tile_key kept = *key;
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

/* Room for one more item of an array. */
static void *
grow_writes_array(mc_cache_writes *writes, void *items, int count, int *room, size_t size)
{
    if (count < *room)
        return items;
    *room = *room == 0 ? 256 : *room * 2;
    void *grown = apr_palloc(writes->pool, size * (size_t)*room);
    if (count > 0)
        memcpy(grown, items, size * (size_t)count);
    return grown;
}

static void
gather_pending_put(mc_cache_writes *writes, const mc_tile_write *put)
{
    writes->puts = grow_writes_array(writes, writes->puts, writes->count, &writes->room, sizeof(*put));
    mc_tile_write *kept = &writes->puts[writes->count];
    *kept = *put;
    kept->key = keep_key(writes, &put->key, writes->count == 0 ? NULL : &kept[-1].key);
    mc_buf_ref(kept->data);
    writes->count++;
    writes->bytes += put->data->size;
}

static mc_error *
store_all(mc_ctx *ctx)
{
    mc_cache_writes *writes = ctx->writes;
    mc_error *error = MC_OK;
    if (mc_cache_writes_count(writes) == 0)
        return MC_OK;
    ctx->writes = NULL; /* what the cache is made of writes at once */
    ctx->bulk = true;
    if (writes->removed > 0)
        error = mc_cache_remove_all_now(writes->cache, writes->removals, writes->removed, ctx);
    if (writes->count > 0 && error == MC_OK)
        error = mc_cache_put_now(writes->cache, writes->puts, writes->count, ctx);
    ctx->bulk = false;
    ctx->writes = writes;
    release_pending_puts(writes);
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

static bool
same_tile(const mc_tile_key *a, const mc_tile_key *b)
{
    return a->x == b->x && a->y == b->y && a->z == b->z; /* of whatever series: once too often is no harm */
}

mc_error *
mc_cache_writes_add(mc_cache *cache, const mc_tile_write *tiles, int count, mc_ctx *ctx)
{
    mc_cache_writes *writes = ctx->writes;
    bool meets = writes->cache != NULL && writes->cache != cache;
    for (int i = 0; i < count && !meets; i++)
        for (int j = 0; j < writes->removed && !meets; j++)
            meets = same_tile(&tiles[i].key, &writes->removals[j]);
    if (meets)
        MC_TRY(store_early(ctx));
    writes->cache = cache;
    for (int i = 0; i < count; i++)
        gather_pending_put(writes, &tiles[i]);
    return writes->bytes > BYTES_MAX ? store_early(ctx) : MC_OK;
}

static bool
same_write_series(const mc_tile_key *a, const mc_tile_key *b)
{
    if (strcmp(a->tileset, b->tileset) != 0 || a->grid != b->grid || a->dimension_count != b->dimension_count)
        return false;
    for (int i = 0; i < a->dimension_count; i++)
        if (strcmp(a->dimensions[i].value, b->dimensions[i].value) != 0)
            return false;
    return true;
}

mc_error *
mc_cache_writes_remove(mc_cache *cache, const mc_tile_key *keys, int count, mc_ctx *ctx)
{
    mc_cache_writes *writes = ctx->writes;
    bool meets = writes->cache != NULL && writes->cache != cache;
    for (int i = 0; i < count && !meets; i++)
        for (int j = 0; j < writes->count && !meets; j++)
            meets = same_tile(&keys[i], &writes->puts[j].key);
    if (count > 0 && writes->removed > 0)
        meets = meets || !same_write_series(&keys[0], &writes->removals[0]);
    if (meets)
        MC_TRY(store_early(ctx));
    writes->cache = cache;
    for (int i = 0; i < count; i++) {
        writes->removals = grow_writes_array(writes, writes->removals, writes->removed, &writes->removal_room,
                                             sizeof(*writes->removals));
        const mc_tile_key *last = writes->removed == 0 ? NULL : &writes->removals[writes->removed - 1];
        writes->removals[writes->removed] = keep_key(writes, &keys[i], last);
        writes->removed++;
    }
    return MC_OK;
}

typedef struct kinship {
    mc_cache *other;
    mc_cache *part; /* of the one; looked for among the parts of the other */
    bool found;
} kinship;

static void
compare_part(void *baton, mc_cache *part)
{
    kinship *kin = baton;
    kin->found = kin->found || part == kin->part;
}

static void
look_in_other(void *baton, mc_cache *part)
{
    kinship *kin = baton;
    kin->part = part;
    mc_cache_parts(kin->other, compare_part, kin);
}

/* Whether the two have a store in common, as what a cache is made of. */
static bool
caches_share_store(mc_cache *one, mc_cache *other)
{
    kinship kin = { .other = other };
    if (one != other)
        mc_cache_parts(one, look_in_other, &kin);
    return one == other || kin.found;
}

/* A tile that is asked for must be in its store first, or have gone. */
mc_error *
mc_cache_writes_settle(mc_cache *cache, const mc_tile_key *key, mc_ctx *ctx)
{
    const mc_cache_writes *writes = ctx->writes;
    bool waits = false;
    if (mc_cache_writes_count(writes) == 0 || !caches_share_store(writes->cache, cache))
        return MC_OK;
    for (int i = 0; i < writes->count && !waits; i++)
        waits = same_tile(&writes->puts[i].key, key);
    for (int i = 0; i < writes->removed && !waits; i++)
        waits = same_tile(&writes->removals[i], key);
    return waits ? store_early(ctx) : MC_OK;
}
