/* Caches made of others: composite (by place and dimension), fallback (when the first fails), multitier (fast before
 * slow). docs/reference/configuration.md 5.12 to 5.14. */
#include <apr_strings.h>
#include <string.h>

#include "cache/cache_base.h"
#include "mapcache/upkeep.h"

/* One child: where it counts (composite only). */
typedef struct child {
    const char *name;
    int minzoom, maxzoom; /* -1: unbounded */
    const char *grids, *dimensions;
    mc_cache *cache;
    int filter_count;
    struct {
        const char *name, *value;
    } * filters;
} child;

typedef struct layered {
    mc_cache_base base;
    apr_array_header_t *nodes; /* of const mc_node * */
    int count;
    child *children;
} layered;

static const mc_key composite_child_keys[] = {
    MC_KEY_TEXT("", offsetof(child, name), "Name of a cache declared before.", .flags = MC_KEY_REQUIRED),
    MC_KEY_INT("@min-zoom", offsetof(child, minzoom), "First level of the child.", .max = 1000),
    MC_KEY_INT("@max-zoom", offsetof(child, maxzoom), "Last level of the child.", .max = 1000),
    MC_KEY_TEXT("@grids", offsetof(child, grids), "Grids of the child, by commas."),
    MC_KEY_TEXT("@dimensions", offsetof(child, dimensions), "name=value, by commas."),
    MC_KEY_END,
};
static const mc_key child_keys[] = {
    MC_KEY_TEXT("", offsetof(child, name), "Name of a cache declared before.", .flags = MC_KEY_REQUIRED),
    MC_KEY_END,
};
static const mc_key composite_keys[] = {
    MC_CACHE_KEYS(layered),
    MC_KEY_TREE("cache", offsetof(layered, nodes), composite_child_keys,
                "A child and where it counts; the first that fits is used.",
                .flags = MC_KEY_REPEATABLE | MC_KEY_REQUIRED),
    MC_KEY_END,
};
static const mc_key layered_keys[] = {
    MC_CACHE_KEYS(layered),
    MC_KEY_TREE("cache", offsetof(layered, nodes), child_keys, "A child, in order.",
                .flags = MC_KEY_REPEATABLE | MC_KEY_REQUIRED),
    MC_KEY_END,
};

/* "name=value,name=value" */
static bool
read_filters(child *child, const mc_node *node, mc_build *build)
{
    if (child->dimensions == NULL)
        return true;
    char *state;
    char *text = apr_pstrdup(build->pool, child->dimensions);
    child->filters = apr_pcalloc(build->pool, sizeof(*child->filters) * (strlen(text) + 1));
    for (char *item = apr_strtok(text, ",", &state); item != NULL; item = apr_strtok(NULL, ",", &state)) {
        char *equals = strchr(item, '=');
        if (equals == NULL) {
            mc_complain(build->diagnostics, MC_REFUSED, node, "attribute \"dimensions\" is not name=value,name=value");
            return false;
        }
        *equals = '\0';
        child->filters[child->filter_count].name = item;
        child->filters[child->filter_count++].value = equals + 1;
    }
    return true;
}

static bool
child_missing(const char *name, mc_build *build)
{
    const char *key = apr_pstrcat(build->pool, "cache ", name, NULL);
    return build->missing != NULL && apr_hash_get(build->missing, key, APR_HASH_KEY_STRING) != NULL;
}

static mc_cache *
layered_read(const mc_cache_ops *ops, const mc_key *keys, const mc_node *node, mc_build *build)
{
    layered *cache = apr_pcalloc(build->pool, sizeof(*cache));
    if (!mc_cache_read(&cache->base, ops, false, node, build))
        return NULL;
    bool parts_remember = true;
    cache->count = cache->nodes->nelts;
    cache->children = apr_pcalloc(build->pool, sizeof(child) * (size_t)(cache->count + 1));
    for (int i = 0; i < cache->count; i++) {
        const mc_node *at = APR_ARRAY_IDX(cache->nodes, i, const mc_node *);
        child *child = &cache->children[i];
        child->minzoom = child->maxzoom = -1;
        if (!mc_config_read(child, at, keys, build->diagnostics) || !read_filters(child, at, build))
            return NULL;
        if (child_missing(child->name, build)) {
            mc_complain(build->diagnostics, MC_NOT_BUILT, at, "cache \"%s\" is not part of this build", child->name);
            return NULL;
        }
        child->cache = mc_config_find(build->caches, "cache", child->name, at, build->diagnostics);
        if (child->cache == NULL)
            return NULL;
        child->cache->used = true;
        parts_remember = parts_remember && child->cache->remember;
    }
    /* Only what is named by its content: the parts themselves look whether it still is what they have. */
    if (cache->base.memory == NULL)
        cache->base.cache.remember = parts_remember;
    return &cache->base.cache;
}

static mc_cache *
composite_from_config(const mc_node *node, mc_build *build)
{
    return layered_read(&mc_cache_composite, composite_child_keys, node, build);
}

static mc_cache *
fallback_cache_from_config(const mc_node *node, mc_build *build)
{
    return layered_read(&mc_cache_fallback, child_keys, node, build);
}

static mc_cache *
multitier_from_config(const mc_node *node, mc_build *build)
{
    return layered_read(&mc_cache_multitier, child_keys, node, build);
}

static bool
grid_list_has_name(const char *list, const char *name)
{
    size_t size = strlen(name);
    for (const char *at = list;;) {
        size_t length = strcspn(at, ",");
        if (length == size && memcmp(at, name, size) == 0)
            return true;
        if (at[length] == '\0')
            return false;
        at += length + 1;
    }
}

static bool
child_dimensions_fit(const child *child, const mc_tile_key *key)
{
    for (int i = 0; i < child->filter_count; i++) {
        bool fits = false;
        for (int j = 0; j < key->dimension_count; j++)
            fits = fits || (strcmp(key->dimensions[j].name, child->filters[i].name) == 0 &&
                            strcmp(key->dimensions[j].value, child->filters[i].value) == 0);
        if (!fits)
            return false;
    }
    return true;
}

static mc_error *
choose_child_cache(mc_cache **chosen, mc_cache *base, const mc_tile_key *key, apr_pool_t *pool)
{
    layered *cache = (layered *)base;
    for (int i = 0; i < cache->count; i++) {
        const child *child = &cache->children[i];
        if ((child->minzoom >= 0 && key->z < child->minzoom) || (child->maxzoom >= 0 && key->z > child->maxzoom) ||
            (child->grids != NULL && !grid_list_has_name(child->grids, key->grid->name)) ||
            !child_dimensions_fit(child, key))
            continue;
        *chosen = child->cache;
        return MC_OK;
    }
    return mc_error_create(pool, MC_ERR_CONFIG, "no part of cache \"%s\" is for this tile", base->name);
}

/* Which part it is may depend on the level. */
static mc_error *
composite_location(mc_store_location *location, mc_cache *cache, const mc_tile_key *key, apr_pool_t *pool)
{
    mc_cache *chosen;
    location->cache = NULL;
    MC_TRY(choose_child_cache(&chosen, cache, key, pool));
    if (chosen->ops->location != NULL)
        MC_TRY(chosen->ops->location(location, chosen, key, pool));
    location->by_tile = true;
    return MC_OK;
}

static mc_error *
composite_get(mc_tile **tile, mc_cache *cache, const mc_tile_key *key, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_cache *chosen;
    MC_TRY(choose_child_cache(&chosen, cache, key, pool));
    return mc_cache_get(tile, chosen, key, ctx, pool);
}

static mc_error *
composite_exists(bool *exists, mc_cache *cache, const mc_tile_key *key, mc_ctx *ctx)
{
    mc_cache *chosen;
    MC_TRY(choose_child_cache(&chosen, cache, key, ctx->pool));
    return mc_cache_exists(exists, chosen, key, ctx);
}

/* Those of a metatile share level, grid and dimensions; those of a seeder may be for several children. */
static mc_error *
composite_put(mc_cache *cache, const mc_tile_write *tiles, int count, mc_ctx *ctx)
{
    mc_cache **chosen = apr_palloc(ctx->pool, sizeof(mc_cache *) * (size_t)(count + 1));
    mc_tile_write *part = apr_palloc(ctx->pool, sizeof(*part) * (size_t)(count + 1));
    for (int i = 0; i < count; i++)
        MC_TRY(choose_child_cache(&chosen[i], cache, &tiles[i].key, ctx->pool));
    for (int i = 0; i < count; i++) {
        mc_cache *child = chosen[i];
        int size = 0;
        for (int j = i; j < count && child != NULL; j++)
            if (chosen[j] == child) {
                part[size++] = tiles[j];
                chosen[j] = NULL;
            }
        if (size > 0)
            MC_TRY(mc_cache_put(child, part, size, ctx));
    }
    return MC_OK;
}

static mc_error *
composite_remove(mc_cache *cache, const mc_tile_key *key, mc_ctx *ctx)
{
    mc_cache *chosen;
    MC_TRY(choose_child_cache(&chosen, cache, key, ctx->pool));
    return mc_cache_remove(chosen, key, ctx);
}

/* Of one child, together where the child can; else with one look at each file. Entries of `tiles` for missing tiles
 * become NULL. */
static mc_error *
get_all_of_child(mc_tile **tiles, mc_cache *child, const mc_tile_key *keys, int count, mc_ctx *ctx, apr_pool_t *pool)
{
    memset(tiles, 0, sizeof(mc_tile *) * (size_t)count);
    if (mc_cache_gets_all(child))
        return mc_cache_get_all(tiles, child, keys, count, ctx, pool);
    mc_error *error = MC_OK;
    bool own_series = ctx->reads == NULL;
    if (own_series)
        mc_cache_reads_begin(ctx);
    for (int i = 0; i < count && error == MC_OK; i++)
        error = mc_cache_get(&tiles[i], child, &keys[i], ctx, pool);
    if (own_series)
        mc_cache_reads_end(ctx);
    return error;
}

/* One child that is far away makes it worth while. */
static bool
any_child_gets_all(const mc_cache *base)
{
    const layered *cache = (const layered *)base;
    for (int i = 0; i < cache->count; i++)
        if (mc_cache_gets_all(cache->children[i].cache))
            return true;
    return false;
}

/* Keys of one level, grid and dimensions are all for the same child. */
static mc_error *
composite_get_all(mc_tile **tiles, mc_cache *cache, const mc_tile_key *keys, int count, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_cache *chosen;
    MC_TRY(choose_child_cache(&chosen, cache, &keys[0], pool));
    return get_all_of_child(tiles, chosen, keys, count, ctx, pool);
}

static mc_error *
fallback_get_all(mc_tile **tiles, mc_cache *base, const mc_tile_key *keys, int count, mc_ctx *ctx, apr_pool_t *pool)
{
    layered *cache = (layered *)base;
    mc_error *first = MC_OK;
    for (int i = 0; i < cache->count; i++) {
        mc_error *error = get_all_of_child(tiles, cache->children[i].cache, keys, count, ctx, pool);
        if (error == MC_OK)
            return MC_OK;
        mc_log_error(ctx, MC_LOG_WARN, error);
        first = first == MC_OK ? error : first;
    }
    return first;
}

static mc_error *
fallback_get(mc_tile **tile, mc_cache *base, const mc_tile_key *key, mc_ctx *ctx, apr_pool_t *pool)
{
    layered *cache = (layered *)base;
    mc_error *first = MC_OK;
    for (int i = 0; i < cache->count; i++) {
        mc_error *error = mc_cache_get(tile, cache->children[i].cache, key, ctx, pool);
        if (error == MC_OK)
            return MC_OK;
        mc_log_error(ctx, MC_LOG_WARN, error);
        first = first == MC_OK ? error : first;
    }
    return first;
}

static mc_error *
fallback_exists(bool *exists, mc_cache *base, const mc_tile_key *key, mc_ctx *ctx)
{
    return mc_cache_exists(exists, ((layered *)base)->children[0].cache, key, ctx);
}

static mc_error *
fallback_put(mc_cache *base, const mc_tile_write *tiles, int count, mc_ctx *ctx)
{
    layered *cache = (layered *)base;
    mc_error *first = MC_OK;
    for (int i = 0; i < cache->count; i++) {
        mc_error *error = mc_cache_put(cache->children[i].cache, tiles, count, ctx);
        first = first == MC_OK ? error : first;
    }
    return first;
}

/* The slowest child first: a reader may copy what it has into the others. */
static mc_error *
remove_from_all(mc_cache *base, const mc_tile_key *key, mc_ctx *ctx)
{
    layered *cache = (layered *)base;
    for (int i = cache->count - 1; i >= 0; i--) {
        mc_error *error = mc_cache_remove(cache->children[i].cache, key, ctx);
        if (error != MC_OK)
            mc_log_error(ctx, MC_LOG_WARN, error); /* docs/reference/configuration.md 5.13: not an error of the whole */
    }
    return MC_OK;
}

/* Copies hits of a child into the faster ones before it. They get what a client would get: a stored colour as its
 * picture. */
static void
copy_to_faster_children(const layered *cache, int child, mc_tile *const *found, const mc_tile_key *keys, int count,
                        mc_ctx *ctx, apr_pool_t *pool)
{
    mc_tile_write *copies = apr_pcalloc(pool, sizeof(*copies) * (size_t)(count + 1));
    int size = 0;
    for (int i = 0; i < count; i++)
        if (found[i] != NULL)
            copies[size++] = (mc_tile_write){ .key = keys[i], .data = found[i]->data };
    for (int i = 0; i < child && size > 0; i++) {
        mc_error *error = mc_cache_put(cache->children[i].cache, copies, size, ctx);
        if (error != MC_OK)
            mc_log_error(ctx, MC_LOG_WARN, error);
    }
}

/* Those that are missing so far, of one child. Returns how many are missing then. */
static mc_error *
get_missing_of_child(int *missing, mc_tile **tiles, const layered *cache, int child, const mc_tile_key *keys, int count,
                     mc_ctx *ctx, apr_pool_t *pool)
{
    mc_tile_key *left = apr_palloc(pool, sizeof(*left) * (size_t)(count + 1));
    mc_tile **found = apr_pcalloc(pool, sizeof(*found) * (size_t)(count + 1));
    int *places = apr_palloc(pool, sizeof(*places) * (size_t)(count + 1));
    int asked = 0;
    for (int i = 0; i < count; i++)
        if (tiles[i] == NULL) {
            left[asked] = keys[i];
            places[asked++] = i;
        }
    *missing = asked;
    MC_TRY(get_all_of_child(found, cache->children[child].cache, left, asked, ctx, pool));
    for (int i = 0; i < asked; i++)
        if (found[i] != NULL) {
            tiles[places[i]] = found[i];
            --*missing;
        }
    if (child > 0)
        copy_to_faster_children(cache, child, found, left, asked, ctx, pool);
    return MC_OK;
}

/* Tiles that are missing so far, of the children from one on. A child that fails is no child without the tile: where no
 * other one has it, the first failure is told, so that nothing is rendered that may be there. */
static mc_error *
get_from_tiers(mc_tile **tiles, const layered *cache, int child, mc_error *first, const mc_tile_key *keys, int count,
               mc_ctx *ctx, apr_pool_t *pool)
{
    int missing = count;
    for (int i = child; i < cache->count && missing > 0; i++) {
        mc_error *error = get_missing_of_child(&missing, tiles, cache, i, keys, count, ctx, pool);
        if (error == MC_OK)
            continue;
        mc_log_error(ctx, MC_LOG_WARN, error);
        first = first == MC_OK ? error : first;
    }
    return missing > 0 ? first : MC_OK;
}

static mc_error *
multitier_get_all(mc_tile **tiles, mc_cache *base, const mc_tile_key *keys, int count, mc_ctx *ctx, apr_pool_t *pool)
{
    memset(tiles, 0, sizeof(mc_tile *) * (size_t)count);
    return get_from_tiers(tiles, (const layered *)base, 0, MC_OK, keys, count, ctx, pool);
}

/* The first child has most tiles: a hit there costs nothing else. */
static mc_error *
multitier_get(mc_tile **tile, mc_cache *base, const mc_tile_key *key, mc_ctx *ctx, apr_pool_t *pool)
{
    const layered *cache = (const layered *)base;
    mc_error *error = mc_cache_get(tile, cache->children[0].cache, key, ctx, pool);
    if (error == MC_OK && *tile != NULL)
        return MC_OK;
    if (error != MC_OK)
        mc_log_error(ctx, MC_LOG_WARN, error);
    *tile = NULL;
    return get_from_tiers(tile, cache, 1, error, key, 1, ctx, pool);
}

static mc_error *
multitier_exists(bool *exists, mc_cache *base, const mc_tile_key *key, mc_ctx *ctx)
{
    layered *cache = (layered *)base;
    for (int i = 0; i < cache->count && !*exists; i++)
        MC_TRY(mc_cache_exists(exists, cache->children[i].cache, key, ctx));
    return MC_OK;
}

static mc_error *
multitier_put(mc_cache *base, const mc_tile_write *tiles, int count, mc_ctx *ctx)
{
    layered *cache = (layered *)base;
    MC_TRY(mc_cache_put(cache->children[cache->count - 1].cache, tiles, count, ctx));
    /* An older copy in a faster child would hide what is stored now; not before, as a reader would copy it there again.
     */
    for (int i = cache->count - 2; i >= 0; i--)
        for (int j = 0; j < count; j++) {
            mc_error *error = mc_cache_remove(cache->children[i].cache, &tiles[j].key, ctx);
            if (error != MC_OK)
                mc_log_error(ctx, MC_LOG_WARN, error);
        }
    return MC_OK;
}

static void
layered_parts(mc_cache *base, void (*visit)(void *baton, mc_cache *part), void *baton)
{
    const layered *cache = (const layered *)base;
    for (int i = 0; i < cache->count; i++)
        mc_cache_parts(cache->children[i].cache, visit, baton);
}

static void
layered_used_by(mc_cache *base, const mc_cache_use *use, const mc_node *node, mc_build *build)
{
    layered *cache = (layered *)base;
    for (int i = 0; i < cache->count; i++)
        mc_cache_used_by(cache->children[i].cache, use, node, build);
}

/* The members of the kinds that have the same form in all of them: <prefix>_get and so on. */
#define LAYERED_OPS(prefix_)                                                                                           \
    .get = prefix_##_get, .get_all = prefix_##_get_all, .gets_all = any_child_gets_all, .exists = prefix_##_exists,    \
    .put = prefix_##_put, .used_by = layered_used_by, .parts = layered_parts

const mc_cache_ops mc_cache_composite = {
    MC_KIND("composite", composite_keys, composite_from_config,
            "The first child that is for the tile's level, grid and dimensions."),
    LAYERED_OPS(composite),
    .remove = composite_remove,
    .location = composite_location,
};

const mc_cache_ops mc_cache_fallback = {
    MC_KIND("fallback", layered_keys, fallback_cache_from_config, "The next child where one fails."),
    LAYERED_OPS(fallback),
    .remove = remove_from_all,
};

const mc_cache_ops mc_cache_multitier = {
    MC_KIND("multitier", layered_keys, multitier_from_config, "Fast children before slow ones."),
    LAYERED_OPS(multitier),
    .remove = remove_from_all,
};
