/* See stored_walk.h. */
#include "tileset/stored/stored_walk.h"

#include <string.h>

#include "tileset/tileset_private.h"

enum {
    UNLISTED_MAX = 100000, /* tiles of a range that are looked at one by one where the store has no list */
    VALUES_MAX = 256,      /* sets of values of dimensions */
};

typedef struct stored_walk {
    const mc_stored_part *part;
    mc_tile_key key; /* but for x and y */
    mc_stored_visit *visit;
    void *baton;
    mc_ctx *ctx;
    apr_pool_t *scratch;
    mc_error *error;
} stored_walk;

static bool
visit_stored_tile(void *baton, int x, int y)
{
    stored_walk *walk = baton;
    apr_pool_t *outer = walk->ctx->pool;
    apr_pool_clear(walk->scratch);
    walk->ctx->pool = walk->scratch;
    walk->key.x = x;
    walk->key.y = y;
    walk->error = mc_ctx_check(walk->ctx, walk->scratch);
    if (walk->error == MC_OK)
        walk->error = walk->visit(walk->baton, &walk->key, walk->ctx);
    walk->ctx->pool = outer;
    return walk->error == MC_OK;
}

/* Without a list: all that could be there. */
static mc_error *
walk_every_tile(stored_walk *walk)
{
    const mc_tile_range *range = &walk->part->range;
    double count = ((double)range->maxx - range->minx) * ((double)range->maxy - range->miny);
    if (count > UNLISTED_MAX)
        return mc_error_create(walk->ctx->pool, MC_ERR_LIMIT,
                               "cache \"%s\" has no list of its tiles, and more than %d of a level are meant",
                               walk->part->tileset->cache->name, UNLISTED_MAX);
    for (int y = range->miny; y < range->maxy; y++)
        for (int x = range->minx; x < range->maxx; x++)
            if (!visit_stored_tile(walk, x, y))
                return walk->error;
    return MC_OK;
}

/* Of one set of values. */
static mc_error *
walk_stored_level(stored_walk *walk)
{
    const mc_tile_range *range = &walk->part->range;
    mc_cache *cache = walk->part->tileset->cache;
    bool outer = walk->ctx->past_memory;
    walk->error = MC_OK;
    walk->ctx->past_memory = true;
    bool folders = cache->ops->lists_folders != NULL && cache->ops->lists_folders(cache);
    mc_error *error = folders ? cache->ops->list_folders(cache, &walk->key, range, visit_stored_tile, walk, walk->ctx)
                      : mc_cache_lists(cache, &walk->key)
                          ? mc_cache_list(cache, &walk->key, range, visit_stored_tile, walk, walk->ctx)
                          : walk_every_tile(walk);
    walk->ctx->past_memory = outer;
    return walk->error != MC_OK ? mc_error_copy(walk->error, walk->ctx->pool) : error;
}

/* The values of each dimension that are meant; their number is that of the sets. MC_ERR_LIMIT: there are too many. */
static mc_error *
list_meant_values(apr_array_header_t ***values, int *sets, const mc_stored_part *part, mc_ctx *ctx, apr_pool_t *pool)
{
    const mc_tileset *tileset = part->tileset;
    *values = apr_pcalloc(pool, sizeof(**values) * (size_t)(tileset->dimension_count + 1));
    *sets = 1;
    for (int i = 0; i < tileset->dimension_count; i++) {
        const char *given = part->values == NULL ? NULL : apr_table_get(part->values, tileset->dimensions[i]->name);
        if (given != NULL) {
            (*values)[i] = apr_array_make(pool, 1, sizeof(const char *));
            APR_ARRAY_PUSH((*values)[i], const char *) = given;
            continue;
        }
        MC_TRY(mc_dimension_list(&(*values)[i], tileset->dimensions[i], tileset->name, ctx, pool));
        int count = (*values)[i]->nelts;
        if (count > VALUES_MAX / *sets)
            return mc_error_create(pool, MC_ERR_LIMIT,
                                   "tileset \"%s\" has more than %d sets of values of its dimensions, too many to go "
                                   "over for each change",
                                   tileset->name, VALUES_MAX);
        *sets *= count;
    }
    return MC_OK;
}

/* Of one set of values; NULL: the default ones. */
static mc_error *
walk_values_set(stored_walk *walk, const char **chosen, apr_pool_t *pool)
{
    const mc_stored_part *part = walk->part;
    const mc_tile_request wanted = { .tileset = part->tileset, .link = part->link, .z = part->z, .values = chosen };
    mc_tileset_requested_key(&walk->key, &wanted, pool);
    walk->key.renderable = true; /* a store that is not there has no tiles */
    return walk_stored_level(walk);
}

/* All sets of values: what is rendered. */
static mc_error *
walk_values_sets(stored_walk *walk, apr_pool_t *pool)
{
    apr_array_header_t **values;
    int sets, count = walk->part->tileset->dimension_count;
    MC_TRY(list_meant_values(&values, &sets, walk->part, walk->ctx, pool));
    for (int set = 0; set < sets; set++) {
        const char **chosen = apr_palloc(pool, sizeof(*chosen) * (size_t)(count + 1));
        for (int i = 0, rest = set; i < count; rest /= values[i]->nelts, i++)
            chosen[i] = APR_ARRAY_IDX(values[i], rest % values[i]->nelts, const char *);
        MC_TRY(walk_values_set(walk, chosen, pool));
    }
    return MC_OK;
}

/* Whether a tile of the default values may be what something else is assembled of: all of them are listed. */
static mc_error *
find_default_listed(bool *listed, const mc_tileset *tileset, mc_ctx *ctx, apr_pool_t *pool)
{
    *listed = true;
    for (int i = 0; i < tileset->dimension_count && *listed; i++) {
        apr_array_header_t *values;
        MC_TRY(mc_dimension_list(&values, tileset->dimensions[i], tileset->name, ctx, pool));
        *listed = false;
        for (int j = 0; j < values->nelts && !*listed; j++)
            *listed = strcmp(APR_ARRAY_IDX(values, j, const char *), tileset->dimensions[i]->default_value) == 0;
    }
    return MC_OK;
}

/* Assembled tiles that are stored for the default values. */
static mc_error *
walk_assemblies(stored_walk *walk, apr_pool_t *pool)
{
    bool listed;
    MC_TRY(find_default_listed(&listed, walk->part->tileset, walk->ctx, pool));
    return listed ? MC_OK : walk_values_set(walk, NULL, pool);
}

mc_error *
mc_tileset_walk_stored(const mc_stored_part *part, mc_stored_visit *visit, void *baton, mc_ctx *ctx, apr_pool_t *pool)
{
    const mc_tileset *tileset = part->tileset;
    const bool assembles = tileset->assembly != MC_ASSEMBLE_NONE && tileset->dimension_count > 0;
    const bool renders = mc_tileset_renders(tileset) && !(assembles && tileset->subdimensions_read_only);
    if (tileset->cache == NULL || tileset->cache->ops->keeps_nothing || tileset->not_built != NULL ||
        part->range.minx >= part->range.maxx || part->range.miny >= part->range.maxy)
        return MC_OK;
    stored_walk walk = { .part = part, .visit = visit, .baton = baton, .ctx = ctx };
    apr_pool_create(&walk.scratch, pool);
    mc_error *error = renders ? walk_values_sets(&walk, pool) : MC_OK;
    if (error == MC_OK && assembles && tileset->store_assemblies && !tileset->read_only)
        error = walk_assemblies(&walk, pool);
    apr_pool_destroy(walk.scratch);
    return error;
}
