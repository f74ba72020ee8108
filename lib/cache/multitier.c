/* multitier: fast caches before slow ones, the last of which has all tiles. docs/reference/configuration.md 5.14. */
#include <string.h>

#include "cache/layered.h"
#include "cache/write_behind.h"

typedef struct multitier {
    union {
        mc_layered layered;
        mc_cache_base base; /* its beginning, for the common keys */
    };
    int write; /* multitier_write */
    apr_int64_t behind_queue;
    double behind_time;
    double remember_absent;
    mc_write_behind *queue; /* NULL: <write> is through */
} multitier;

enum multitier_write { WRITE_THROUGH, WRITE_BEHIND };

static const mc_key multitier_keys[] = {
    MC_CACHE_KEYS(multitier),
    MC_KEY_TREE("cache", offsetof(multitier, layered.nodes), mc_layered_child_keys, "A child, in order.",
                .flags = MC_KEY_REPEATABLE | MC_KEY_REQUIRED),
    MC_KEY_CHOICE("write", offsetof(multitier, write), "through|behind",
                  "through: a new tile is stored in the last child before the client gets the tile. behind: in the "
                  "children before the last one, and a moment later in the last one; of servers only, the command "
                  "line's tools always store through.",
                  .flags = MC_KEY_OURS, .fallback = "through"),
    MC_KEY_SIZE("behind_queue", offsetof(multitier, behind_queue),
                "Bytes that waiting tiles may take in a process; who finds no room stores through.",
                .max = 1099511627776.0, .flags = MC_KEY_OURS, .fallback = "64M"),
    MC_KEY_NUMBER("behind_time", offsetof(multitier, behind_time),
                  "Seconds that a tile may wait for the last child before the tile is given up, with a line in the log "
                  "and in the metric behind_lost.",
                  .min = 0.1, .max = 86400, .flags = MC_KEY_OURS, .fallback = "60"),
    MC_KEY_NUMBER("remember_absent", offsetof(multitier, remember_absent),
                  "Seconds for which a tile that no child has is taken for absent without asking them again, where the "
                  "tileset cannot render the tile; kept in <memory_cache>. 0: not at all.",
                  .max = 86400, .flags = MC_KEY_OURS, .fallback = "0"),
    MC_KEY_END,
};

static mc_cache *
multitier_from_config(const mc_node *node, mc_build *build)
{
    multitier *cache = apr_pcalloc(build->pool, sizeof(*cache));
    if (!mc_layered_read(&cache->layered, &mc_cache_multitier, mc_layered_child_keys, node, build))
        return NULL;
    mc_cache *itself = &cache->base.cache;
    if (cache->write == WRITE_BEHIND && cache->layered.count < 2) {
        mc_complain(build->diagnostics, MC_REFUSED, node,
                    "<write>behind</write> needs a child before the last one, where new tiles are meanwhile");
        return NULL;
    }
    const mc_write_behind_rules rules = { .cache = cache->layered.children[cache->layered.count - 1].cache,
                                          .name = itself->name,
                                          .most_bytes = cache->behind_queue,
                                          .longest = cache->behind_time };
    if (cache->write == WRITE_BEHIND)
        cache->queue = mc_write_behind_create(&rules, build->pool);
    return itself;
}

/* --- what no child has -------------------------------------------------------------------------------------------- */

/* A tile that may be rendered may also be there the next moment, rendered by another process. */
static bool
remembers_absence(const multitier *cache, const mc_tile_key *key)
{
    return cache->remember_absent > 0 && !key->renderable;
}

static bool
is_known_absent(const multitier *cache, const mc_tile_key *key, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_memory_key memory_key;
    mc_tile *none = NULL;
    if (!remembers_absence(cache, key))
        return false;
    mc_memory_key_build(&memory_key, cache->base.cache.serial, "absent", key);
    return mc_memory_get(&none, &memory_key, NULL, ctx, pool);
}

static void
remember_absences(const multitier *cache, const mc_tile_key *keys, int count, mc_ctx *ctx)
{
    for (int i = 0; i < count; i++) {
        mc_memory_key memory_key;
        if (!remembers_absence(cache, &keys[i]))
            continue;
        mc_memory_key_build(&memory_key, cache->base.cache.serial, "absent", &keys[i]);
        mc_memory_put_for(&memory_key, cache->remember_absent, NULL, ctx);
    }
}

static void
forget_absence(const multitier *cache, const mc_tile_key *key, mc_ctx *ctx)
{
    mc_memory_key memory_key;
    if (cache->remember_absent <= 0)
        return;
    mc_memory_key_build(&memory_key, cache->base.cache.serial, "absent", key);
    mc_memory_forget(&memory_key, ctx);
}

/* --- getting ------------------------------------------------------------------------------------------------------ */

/* Copies hits of a child into the faster ones before it. They get what a client would get: a stored colour as its
 * picture. */
static void
copy_to_faster_children(const multitier *cache, int child, mc_tile *const *found, const mc_tile_key *keys, int count,
                        mc_ctx *ctx, apr_pool_t *pool)
{
    mc_tile_write *copies = apr_pcalloc(pool, sizeof(*copies) * (size_t)(count + 1));
    int size = 0;
    for (int i = 0; i < count; i++)
        if (found[i] != NULL && (cache->queue == NULL || !mc_write_behind_get(NULL, cache->queue, &keys[i], pool)))
            copies[size++] = (mc_tile_write){ .key = keys[i], .data = found[i]->data };
    for (int i = 0; i < child && size > 0; i++) {
        mc_error *error = mc_cache_put(cache->layered.children[i].cache, copies, size, ctx);
        if (error != MC_OK)
            mc_log_error(ctx, MC_LOG_WARN, error);
    }
}

/* Those tiles that a get has not found so far. */
typedef struct tiles_to_find {
    mc_tile_key *keys;
    int *places; /* of each in the get's own list */
    int count;
} tiles_to_find;

/* Takes those from the list that are there now: found[i] belongs to keys[i] of the list. */
static void
take_found_tiles(tiles_to_find *missing, mc_tile **tiles, mc_tile *const *found)
{
    int left = 0;
    for (int i = 0; i < missing->count; i++) {
        if (found[i] != NULL) {
            tiles[missing->places[i]] = found[i];
            continue;
        }
        missing->keys[left] = missing->keys[i];
        missing->places[left++] = missing->places[i];
    }
    missing->count = left;
}

static mc_error *
get_missing_of_child(tiles_to_find *missing, mc_tile **tiles, const multitier *cache, int child, mc_ctx *ctx,
                     apr_pool_t *pool)
{
    mc_tile **found = apr_pcalloc(pool, sizeof(*found) * (size_t)(missing->count + 1));
    MC_TRY(mc_layered_get_all(found, cache->layered.children[child].cache, missing->keys, missing->count, ctx, pool));
    if (child > 0)
        copy_to_faster_children(cache, child, found, missing->keys, missing->count, ctx, pool);
    take_found_tiles(missing, tiles, found);
    return MC_OK;
}

/* A tile that waits for the last child is newer than the one there. */
static void
get_waiting_tiles(tiles_to_find *missing, mc_tile **tiles, const multitier *cache, apr_pool_t *pool)
{
    mc_tile **found = apr_pcalloc(pool, sizeof(*found) * (size_t)(missing->count + 1));
    for (int i = 0; i < missing->count; i++)
        mc_write_behind_get(&found[i], cache->queue, &missing->keys[i], pool);
    take_found_tiles(missing, tiles, found);
}

static tiles_to_find
list_wanted_tiles(mc_tile **tiles, const multitier *cache, const mc_tile_key *keys, int count, mc_ctx *ctx,
                  apr_pool_t *pool)
{
    tiles_to_find missing = { apr_palloc(pool, sizeof(*missing.keys) * (size_t)(count + 1)),
                              apr_palloc(pool, sizeof(*missing.places) * (size_t)(count + 1)), 0 };
    for (int i = 0; i < count; i++) {
        tiles[i] = NULL;
        if (is_known_absent(cache, &keys[i], ctx, pool))
            continue;
        missing.keys[missing.count] = keys[i];
        missing.places[missing.count++] = i;
    }
    return missing;
}

/* A child that fails is no child without the tile: what may be there must not be rendered. The last child has all
 * tiles, so that its word is enough; but of those that wait for it in another process. */
static bool
may_hide_tiles(const multitier *cache, int child)
{
    return child == cache->layered.count - 1 || cache->queue != NULL;
}

/* Of the children from one on. `first`: the failure of one before them that may have the tiles; where no child has a
 * tile, the first such failure is told. */
static mc_error *
get_from_tiers(mc_tile **tiles, const multitier *cache, int child, mc_error *first, const mc_tile_key *keys, int count,
               mc_ctx *ctx, apr_pool_t *pool)
{
    const int children = cache->layered.count;
    tiles_to_find missing = list_wanted_tiles(tiles, cache, keys, count, ctx, pool);
    for (int i = child; i < children && missing.count > 0; i++) {
        if (i == children - 1 && cache->queue != NULL)
            get_waiting_tiles(&missing, tiles, cache, pool);
        mc_error *error = missing.count == 0 ? MC_OK : get_missing_of_child(&missing, tiles, cache, i, ctx, pool);
        if (error == MC_OK)
            continue;
        mc_log_error(ctx, MC_LOG_WARN, error);
        if (first == MC_OK && may_hide_tiles(cache, i))
            first = error;
    }
    if (first == MC_OK)
        remember_absences(cache, missing.keys, missing.count, ctx); /* not those that were recalled: once is enough */
    return missing.count > 0 ? first : MC_OK;
}

static mc_error *
multitier_get_all(mc_tile **tiles, mc_cache *base, const mc_tile_key *keys, int count, mc_ctx *ctx, apr_pool_t *pool)
{
    return get_from_tiers(tiles, (const multitier *)base, 0, MC_OK, keys, count, ctx, pool);
}

/* The first child has most tiles: a hit there costs nothing else. */
static mc_error *
multitier_get(mc_tile **tile, mc_cache *base, const mc_tile_key *key, mc_ctx *ctx, apr_pool_t *pool)
{
    const multitier *cache = (const multitier *)base;
    mc_error *error = mc_cache_get(tile, cache->layered.children[0].cache, key, ctx, pool);
    if (error == MC_OK && *tile != NULL)
        return MC_OK;
    if (error != MC_OK)
        mc_log_error(ctx, MC_LOG_WARN, error);
    return get_from_tiers(tile, cache, 1, may_hide_tiles(cache, 0) ? error : MC_OK, key, 1, ctx, pool);
}

static mc_error *
multitier_exists(bool *exists, mc_cache *base, const mc_tile_key *key, mc_ctx *ctx)
{
    multitier *cache = (multitier *)base;
    *exists = cache->queue != NULL && mc_write_behind_get(NULL, cache->queue, key, ctx->pool);
    for (int i = 0; i < cache->layered.count && !*exists; i++) {
        mc_error *error = mc_cache_exists(exists, cache->layered.children[i].cache, key, ctx);
        if (error != MC_OK && may_hide_tiles(cache, i))
            return error;
        if (error != MC_OK)
            mc_log_error(ctx, MC_LOG_WARN, error);
    }
    return MC_OK;
}

/* --- putting and removing ----------------------------------------------------------------------------------------- */

static const mc_tile_key *
list_written_keys(const mc_tile_write *tiles, int count, apr_pool_t *pool)
{
    mc_tile_key *keys = apr_palloc(pool, sizeof(*keys) * (size_t)(count + 1));
    for (int i = 0; i < count; i++)
        keys[i] = tiles[i].key;
    return keys;
}

/* An older copy in a faster child would hide what is stored now. Where the child does not remove it, the new tile may
 * still take its place. A child that does neither is away, or only read: the tile is stored all the same, and the log
 * says that clients may get an older one. */
static void
replace_older_copies(const multitier *cache, int child, const mc_tile_write *tiles, const mc_tile_key *keys, int count,
                     mc_ctx *ctx)
{
    mc_cache *faster = cache->layered.children[child].cache;
    mc_error *error = mc_cache_remove_all(faster, keys, count, ctx);
    if (error == MC_OK)
        return;
    mc_error_ignore(error);
    error = mc_cache_put(faster, tiles, count, ctx);
    if (error != MC_OK)
        mc_log_error(ctx, MC_LOG_WARN,
                     mc_error_wrap(ctx->pool, error, error->kind,
                                   "a tile is stored, and an older one may still be in cache \"%s\"", faster->name));
}

static mc_error *
put_through(multitier *cache, const mc_tile_write *tiles, int count, mc_ctx *ctx)
{
    const mc_tile_key *keys = list_written_keys(tiles, count, ctx->pool);
    if (cache->queue != NULL)
        mc_write_behind_forget(cache->queue, keys, count, ctx);
    MC_TRY(mc_cache_put(cache->layered.children[cache->layered.count - 1].cache, tiles, count, ctx));
    for (int i = cache->layered.count - 2; i >= 0; i--) /* not before, as a reader would copy it there again */
        replace_older_copies(cache, i, tiles, keys, count, ctx);
    return MC_OK;
}

/* False: there is no room, or one of the faster children fails, so that the tiles have to be stored through. They wait
 * first: a reader that has an older copy of the last child sees that, and copies nothing. */
static bool
put_behind(multitier *cache, const mc_tile_write *tiles, int count, mc_ctx *ctx)
{
    if (cache->queue == NULL || ctx->bulk || ctx->writes != NULL ||
        !mc_write_behind_put(cache->queue, tiles, count, ctx))
        return false;
    for (int i = 0; i < cache->layered.count - 1; i++) {
        mc_error *error = mc_cache_put(cache->layered.children[i].cache, tiles, count, ctx);
        if (error != MC_OK) {
            mc_log_error(ctx, MC_LOG_WARN, error);
            return false;
        }
    }
    return true;
}

static mc_error *
multitier_put(mc_cache *base, const mc_tile_write *tiles, int count, mc_ctx *ctx)
{
    multitier *cache = (multitier *)base;
    mc_error *error = put_behind(cache, tiles, count, ctx) ? MC_OK : put_through(cache, tiles, count, ctx);
    for (int i = 0; i < count; i++)
        forget_absence(cache, &tiles[i].key, ctx);
    return error;
}

static mc_error *
multitier_remove_all(mc_cache *base, const mc_tile_key *keys, int count, mc_ctx *ctx)
{
    multitier *cache = (multitier *)base;
    if (cache->queue != NULL)
        mc_write_behind_forget(cache->queue, keys, count, ctx);
    return mc_layered_remove_all(base, keys, count, ctx);
}

static mc_error *
multitier_remove(mc_cache *cache, const mc_tile_key *key, mc_ctx *ctx)
{
    return multitier_remove_all(cache, key, 1, ctx);
}

const mc_cache_ops mc_cache_multitier = {
    MC_KIND("multitier", multitier_keys, multitier_from_config, "Fast children before slow ones."),
    MC_LAYERED_OPS(multitier),
    .remove = multitier_remove,
    .remove_all = multitier_remove_all,
    .list = mc_layered_list,
    .lists = mc_layered_lists,
    .whole = mc_layered_last,
};
