/* Caches made of others: composite (by place and dimension), fallback (when the first fails), and what these share with
 * multitier. docs/reference/configuration.md 5.12 to 5.14. */
#include <apr_strings.h>
#include <string.h>

#include "cache/layered.h"
#include "mapcache/upkeep.h"

static const mc_key composite_child_keys[] = {
    MC_KEY_TEXT("", offsetof(mc_layered_child, name), "Name of a cache declared before.", .flags = MC_KEY_REQUIRED),
    MC_KEY_INT("@min-zoom", offsetof(mc_layered_child, minzoom), "First level of the child.", .max = 1000),
    MC_KEY_INT("@max-zoom", offsetof(mc_layered_child, maxzoom), "Last level of the child.", .max = 1000),
    MC_KEY_TEXT("@grids", offsetof(mc_layered_child, grids), "Grids of the child, by commas."),
    MC_KEY_TEXT("@dimensions", offsetof(mc_layered_child, dimensions), "name=value, by commas."),
    MC_KEY_END,
};
static const mc_key composite_keys[] = {
    MC_CACHE_KEYS(mc_layered),
    MC_KEY_TREE("cache", offsetof(mc_layered, nodes), composite_child_keys,
                "A child and where it counts; the first that fits is used.",
                .flags = MC_KEY_REPEATABLE | MC_KEY_REQUIRED),
    MC_KEY_END,
};
const mc_key mc_layered_child_keys[] = {
    MC_KEY_TEXT("", offsetof(mc_layered_child, name), "Name of a cache declared before.", .flags = MC_KEY_REQUIRED),
    MC_KEY_END,
};
static const mc_key layered_keys[] = {
    MC_CACHE_KEYS(mc_layered),
    MC_KEY_TREE("cache", offsetof(mc_layered, nodes), mc_layered_child_keys, "A child, in order.",
                .flags = MC_KEY_REPEATABLE | MC_KEY_REQUIRED),
    MC_KEY_END,
};

/* "name=value,name=value" */
static bool
read_filters(mc_layered_child *child, const mc_node *node, mc_build *build)
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

bool
mc_layered_read(mc_layered *cache, const mc_cache_ops *ops, const mc_key *keys, const mc_node *node, mc_build *build)
{
    if (!mc_cache_read(&cache->base, ops, false, node, build))
        return false;
    bool parts_remember = true;
    cache->count = cache->nodes->nelts;
    cache->children = apr_pcalloc(build->pool, sizeof(mc_layered_child) * (size_t)(cache->count + 1));
    for (int i = 0; i < cache->count; i++) {
        const mc_node *at = APR_ARRAY_IDX(cache->nodes, i, const mc_node *);
        mc_layered_child *child = &cache->children[i];
        child->minzoom = child->maxzoom = -1;
        if (!mc_config_read(child, at, keys, build->diagnostics) || !read_filters(child, at, build))
            return false;
        if (child_missing(child->name, build)) {
            mc_complain(build->diagnostics, MC_NOT_BUILT, at, "cache \"%s\" is not part of this build", child->name);
            return false;
        }
        child->cache = mc_config_find(build->caches, "cache", child->name, at, build->diagnostics);
        if (child->cache == NULL)
            return false;
        child->cache->used = true;
        parts_remember = parts_remember && child->cache->remember;
    }
    /* Only what is named by its content: the parts themselves look whether it still is what they have. */
    if (cache->base.memory == NULL)
        cache->base.cache.remember = parts_remember;
    return true;
}

static mc_cache *
composite_from_config(const mc_node *node, mc_build *build)
{
    mc_layered *cache = apr_pcalloc(build->pool, sizeof(*cache));
    return mc_layered_read(cache, &mc_cache_composite, composite_child_keys, node, build) ? &cache->base.cache : NULL;
}

static mc_cache *
fallback_cache_from_config(const mc_node *node, mc_build *build)
{
    mc_layered *cache = apr_pcalloc(build->pool, sizeof(*cache));
    return mc_layered_read(cache, &mc_cache_fallback, mc_layered_child_keys, node, build) ? &cache->base.cache : NULL;
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
child_dimensions_fit(const mc_layered_child *child, const mc_tile_key *key)
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

/* NULL: none is for such a tile. */
static mc_cache *
find_child_cache(const mc_cache *base, const mc_tile_key *key)
{
    const mc_layered *cache = (const mc_layered *)base;
    for (int i = 0; i < cache->count; i++) {
        const mc_layered_child *child = &cache->children[i];
        if ((child->minzoom >= 0 && key->z < child->minzoom) || (child->maxzoom >= 0 && key->z > child->maxzoom) ||
            (child->grids != NULL && !grid_list_has_name(child->grids, key->grid->name)) ||
            !child_dimensions_fit(child, key))
            continue;
        return child->cache;
    }
    return NULL;
}

static mc_error *
choose_child_cache(mc_cache **chosen, mc_cache *base, const mc_tile_key *key, apr_pool_t *pool)
{
    *chosen = find_child_cache(base, key);
    return *chosen != NULL
               ? MC_OK
               : mc_error_create(pool, MC_ERR_CONFIG, "no part of cache \"%s\" is for this tile", base->name);
}

/* Tiles in SQLite files are counted file by file, and the files are found by composite_location. */
static mc_cache *
composite_whole(mc_cache *base, const mc_tile_key *key)
{
    mc_cache *child = find_child_cache(base, key);
    return child == NULL || child->ops->location != NULL ? NULL : child;
}

static bool
composite_lists(const mc_cache *base, const mc_tile_key *key)
{
    const mc_cache *child = find_child_cache(base, key);
    return child == NULL || mc_cache_lists(child, key);
}

static mc_error *
composite_list(mc_cache *base, const mc_tile_key *key, const mc_tile_range *area, mc_tile_visit *visit, void *baton,
               mc_ctx *ctx)
{
    mc_cache *child = find_child_cache(base, key);
    return child == NULL ? MC_OK : mc_cache_list(child, key, area, visit, baton, ctx);
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

mc_error *
mc_layered_get_all(mc_tile **tiles, mc_cache *child, const mc_tile_key *keys, int count, mc_ctx *ctx, apr_pool_t *pool)
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
bool
mc_layered_gets_all(const mc_cache *base)
{
    const mc_layered *cache = (const mc_layered *)base;
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
    return mc_layered_get_all(tiles, chosen, keys, count, ctx, pool);
}

static mc_error *
fallback_get_all(mc_tile **tiles, mc_cache *base, const mc_tile_key *keys, int count, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_layered *cache = (mc_layered *)base;
    mc_error *first = MC_OK;
    for (int i = 0; i < cache->count; i++) {
        mc_error *error = mc_layered_get_all(tiles, cache->children[i].cache, keys, count, ctx, pool);
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
    mc_layered *cache = (mc_layered *)base;
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
    return mc_cache_exists(exists, ((mc_layered *)base)->children[0].cache, key, ctx);
}

static mc_error *
fallback_put(mc_cache *base, const mc_tile_write *tiles, int count, mc_ctx *ctx)
{
    mc_layered *cache = (mc_layered *)base;
    mc_error *first = MC_OK;
    for (int i = 0; i < cache->count; i++) {
        mc_error *error = mc_cache_put(cache->children[i].cache, tiles, count, ctx);
        first = first == MC_OK ? error : first;
    }
    return first;
}

/* The slowest child first: a reader may copy what it has into the others. */
mc_error *
mc_layered_remove_all(mc_cache *base, const mc_tile_key *keys, int count, mc_ctx *ctx)
{
    mc_layered *cache = (mc_layered *)base;
    mc_error *first = MC_OK;
    for (int i = cache->count - 1; i >= 0; i--) {
        mc_error *error = mc_cache_remove_all(cache->children[i].cache, keys, count, ctx);
        if (error != MC_OK && first != MC_OK)
            mc_log_error(ctx, MC_LOG_WARN, error);
        first = first == MC_OK ? error : first;
    }
    return first;
}

mc_error *
mc_layered_remove(mc_cache *cache, const mc_tile_key *key, mc_ctx *ctx)
{
    return mc_layered_remove_all(cache, key, 1, ctx);
}

void
mc_layered_parts(mc_cache *base, void (*visit)(void *baton, mc_cache *part), void *baton)
{
    const mc_layered *cache = (const mc_layered *)base;
    for (int i = 0; i < cache->count; i++)
        mc_cache_parts(cache->children[i].cache, visit, baton);
}

void
mc_layered_used_by(mc_cache *base, const mc_cache_use *use, const mc_node *node, mc_build *build)
{
    mc_layered *cache = (mc_layered *)base;
    for (int i = 0; i < cache->count; i++) {
        const char *grids = cache->children[i].grids;
        if (grids == NULL || grid_list_has_name(grids, use->grid->name))
            mc_cache_used_by(cache->children[i].cache, use, node, build);
    }
}

const mc_cache_ops mc_cache_composite = {
    MC_KIND("composite", composite_keys, composite_from_config,
            "The first child that is for the tile's level, grid and dimensions."),
    MC_LAYERED_OPS(composite),
    .remove = composite_remove,
    .list = composite_list,
    .lists = composite_lists,
    .whole = composite_whole,
    .location = composite_location,
};

const mc_cache_ops mc_cache_fallback = {
    MC_KIND("fallback", layered_keys, fallback_cache_from_config, "The next child where one fails."),
    MC_LAYERED_OPS(fallback),
    .remove = mc_layered_remove,
    .remove_all = mc_layered_remove_all,
    .list = mc_layered_list,
    .lists = mc_layered_lists,
    .whole = mc_layered_first,
};
