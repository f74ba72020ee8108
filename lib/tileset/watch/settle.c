/* See settle.h. */
#include "tileset/watch/settle.h"

#include <apr_strings.h>
#include <string.h>

#include "tileset/variant.h"

enum {
    UNLISTED_MAX = 100000, /* tiles of a range that are looked at one by one where the store has no list */
    VALUES_MAX = 256,      /* sets of values of dimensions */
};

typedef struct settling {
    mc_tileset *tileset;
    mc_tile_key key; /* but for x and y */
    apr_time_t time;
    mc_ctx *ctx;
    apr_pool_t *scratch;
    mc_error *error;
} settling;

static mc_error *
settle_tile(settling *work, int x, int y)
{
    mc_tile *tile = NULL;
    work->key.x = x;
    work->key.y = y;
    MC_TRY(mc_ctx_check(work->ctx, work->scratch));
    MC_TRY(mc_cache_get(&tile, work->tileset->cache, &work->key, work->ctx, work->scratch));
    if (tile == NULL || !mc_tileset_older_than(work->tileset, &work->key, tile->mtime, work->time))
        return MC_OK;
    MC_TRY(mc_cache_remove(work->tileset->cache, &work->key, work->ctx));
    return mc_variants_forget(work->tileset, &work->key, 1, work->ctx);
}

static bool
settle_listed_tile(void *baton, int x, int y)
{
    settling *work = baton;
    apr_pool_t *outer = work->ctx->pool;
    apr_pool_clear(work->scratch);
    work->ctx->pool = work->scratch;
    work->error = settle_tile(work, x, y);
    work->ctx->pool = outer;
    return work->error == MC_OK;
}

/* Without a list: all that could be there. */
static mc_error *
settle_every_tile(settling *work, const mc_tile_range *range)
{
    double count = ((double)range->maxx - range->minx) * ((double)range->maxy - range->miny);
    if (count > UNLISTED_MAX)
        return mc_error_create(work->ctx->pool, MC_ERR_LIMIT,
                               "cache \"%s\" has no list of its tiles, and a change has made more than %d of them old",
                               work->tileset->cache->name, UNLISTED_MAX);
    for (int y = range->miny; y < range->maxy; y++)
        for (int x = range->minx; x < range->maxx; x++)
            if (!settle_listed_tile(work, x, y))
                return work->error;
    return MC_OK;
}

/* Of one set of values. */
static mc_error *
settle_level(settling *work, const mc_tile_range *range)
{
    bool outer = work->ctx->past_memory;
    work->error = MC_OK;
    work->ctx->past_memory = true;
    mc_cache *cache = work->tileset->cache;
    bool folders = cache->ops->lists_folders != NULL && cache->ops->lists_folders(cache);
    mc_error *error = folders ? cache->ops->list_folders(cache, &work->key, range, settle_listed_tile, work, work->ctx)
                      : mc_cache_lists(cache, &work->key)
                          ? mc_cache_list(cache, &work->key, range, settle_listed_tile, work, work->ctx)
                          : settle_every_tile(work, range);
    work->ctx->past_memory = outer;
    return work->error != MC_OK ? mc_error_copy(work->error, work->ctx->pool) : error;
}

/* All values of each dimension; their number is that of the sets. MC_ERR_LIMIT: there are too many. */
static mc_error *
list_values(apr_array_header_t ***values, int *sets, const mc_tileset *tileset, mc_ctx *ctx, apr_pool_t *pool)
{
    *values = apr_pcalloc(pool, sizeof(**values) * (size_t)(tileset->dimension_count + 1));
    *sets = 1;
    for (int i = 0; i < tileset->dimension_count; i++) {
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

static mc_error *
settle_values_set(settling *work, const mc_watch_link *link, int z, const mc_tile_range *range, const char **chosen,
                  apr_pool_t *pool)
{
    const mc_tile_request wanted = { .tileset = work->tileset, .link = link->link, .z = z, .values = chosen };
    mc_tileset_requested_key(&work->key, &wanted, pool);
    work->key.renderable = true; /* a store that is not there has no old tiles */
    return settle_level(work, range);
}

/* All sets of values: what is rendered. */
static mc_error *
settle_sets(settling *work, const mc_watch_link *link, int z, const mc_tile_range *range, apr_pool_t *pool)
{
    apr_array_header_t **values;
    int sets, count = work->tileset->dimension_count;
    MC_TRY(list_values(&values, &sets, work->tileset, work->ctx, pool));
    for (int set = 0; set < sets; set++) {
        const char **chosen = apr_palloc(pool, sizeof(*chosen) * (size_t)(count + 1));
        for (int i = 0, rest = set; i < count; rest /= values[i]->nelts, i++)
            chosen[i] = APR_ARRAY_IDX(values[i], rest % values[i]->nelts, const char *);
        MC_TRY(settle_values_set(work, link, z, range, chosen, pool));
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

/* Assembled tiles, which are stored for the default values alone. */
static mc_error *
settle_assemblies(settling *work, const mc_watch_link *link, int z, const mc_tile_range *range, apr_pool_t *pool)
{
    bool listed;
    MC_TRY(find_default_listed(&listed, work->tileset, work->ctx, pool));
    return listed ? MC_OK : settle_values_set(work, link, z, range, NULL, pool);
}

mc_error *
mc_tileset_settle(const mc_watch *watch, const mc_watch_link *link, int z, const mc_tile_range *range, apr_time_t time,
                  mc_ctx *ctx, apr_pool_t *pool)
{
    mc_tileset *tileset = watch->subject;
    bool assembles = tileset->assembly != MC_ASSEMBLE_NONE && tileset->dimension_count > 0;
    bool renders = mc_tileset_renders(tileset) && !(assembles && tileset->subdimensions_read_only);
    if (tileset->cache == NULL || tileset->cache->ops->keeps_nothing || tileset->not_built != NULL ||
        range->minx >= range->maxx || range->miny >= range->maxy)
        return MC_OK;
    settling work = { .tileset = tileset, .time = time, .ctx = ctx };
    apr_pool_create(&work.scratch, pool);
    mc_error *error = renders ? settle_sets(&work, link, z, range, pool) : MC_OK;
    if (error == MC_OK && assembles && tileset->store_assemblies && !tileset->read_only)
        error = settle_assemblies(&work, link, z, range, pool);
    apr_pool_destroy(work.scratch);
    return error;
}
