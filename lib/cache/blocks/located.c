/* Tiles out of TIFFs: one by one, or those of a map from files behind HTTP, a file at a time: the numbers of all tiles
 * of the file together, then the tiles. */
#include <apr_strings.h>
#include <string.h>

#include "cache/blocks/blocks.h"
#include "cache/blocks/tile_mask.h"
#include "cache/sqlite/path_groups.h"
#include "mapcache/trace.h"

enum { LOOKS_MAX = 3 }; /* at a file that is replaced while it is read */

/* Reads the parts that have a size. */
static mc_error *
read_tile_parts(mc_range_part *parts, int count, mc_ranged_file *file, apr_pool_t *pool)
{
    mc_range_part *there = apr_palloc(pool, sizeof(*there) * (size_t)(count + 1));
    int wanted = 0;
    for (int i = 0; i < count; i++)
        if (parts[i].size > 0)
            there[wanted++] = parts[i];
    if (file->remote != NULL)
        MC_TRY(mc_ranges_fetch_near(there, wanted, file, pool));
    else
        for (int i = 0; i < wanted; i++)
            MC_TRY(mc_ranges_read_buf(&there[i].data, file, there[i].offset, there[i].size, pool));
    for (int i = 0, next = 0; i < count; i++)
        parts[i].data = parts[i].size > 0 ? there[next++].data : NULL;
    return MC_OK;
}

/* The tiles of spots; data[i] NULL: there is none. */
static mc_error *
read_spots(mc_buf **data, const mc_block_spots *spots, mc_ranged_file *file, const mc_tile_key *keys, int count,
           mc_ctx *ctx, apr_pool_t *pool)
{
    mc_range_part *parts = apr_pcalloc(pool, sizeof(*parts) * 2 * (size_t)(count + 1)), *masks = parts + count;
    MC_TRY(mc_tiff_find_tiles(parts, &spots->index, file, spots->numbers, count, pool));
    if (spots->masked)
        MC_TRY(mc_tiff_find_tiles(masks, &spots->mask, file, spots->numbers, count, pool));
    for (int i = 0; i < count; i++)
        if (parts[i].size == 0)
            masks[i].size = 0;
    MC_TRY(read_tile_parts(parts, 2 * count, file, pool));
    for (int i = 0; i < count; i++) {
        data[i] = parts[i].data;
        if (data[i] != NULL && spots->index.tables_size > 0)
            MC_TRY(mc_tiff_join_tile(&data[i], &spots->index, data[i], pool));
        if (data[i] != NULL && spots->cut)
            MC_TRY(mc_tile_mask_apply(&data[i], &spots->index, spots->numbers[i], spots->masked ? &spots->mask : NULL,
                                      masks[i].data, &keys[i], ctx, pool));
    }
    return MC_OK;
}

static mc_block_spots *
make_spots(int count, apr_pool_t *pool)
{
    mc_block_spots *spots = apr_palloc(pool, sizeof(*spots));
    spots->masked = spots->cut = false;
    spots->numbers = apr_palloc(pool, sizeof(*spots->numbers) * (size_t)(count + 1));
    return spots;
}

mc_error *
mc_block_read_located(mc_buf **data, mc_ranged_file *file, const mc_block_cache *cache, const mc_tile_key *key,
                      mc_ctx *ctx, apr_pool_t *pool)
{
    mc_block_spots *spots = make_spots(1, pool);
    MC_TRY(cache->kind->locate(spots, file, cache, key, 1, ctx, pool));
    return read_spots(data, spots, file, key, 1, ctx, pool);
}

mc_error *
mc_block_located_present(bool *present, mc_ranged_file *file, const mc_block_cache *cache, const mc_tile_key *keys,
                         int count, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_block_spots *spots = make_spots(count, pool);
    mc_range_part *parts = apr_palloc(pool, sizeof(*parts) * (size_t)(count + 1));
    MC_TRY(cache->kind->locate(spots, file, cache, keys, count, ctx, pool));
    MC_TRY(mc_tiff_find_tiles(parts, &spots->index, file, spots->numbers, count, pool));
    for (int i = 0; i < count; i++)
        present[i] = parts[i].size > 0;
    return MC_OK;
}

/* Keys of one file, and what is found for them. */
typedef struct far_tiles {
    const mc_block_cache *cache;
    const char *path;
    mc_tile_key *keys;
    mc_tile **tiles; /* entries stay where there is no tile */
    int count;
    mc_ctx *ctx;
    apr_pool_t *pool;
} far_tiles;

static bool
may_remember(const far_tiles *far)
{
    return far->cache->base.cache.remember && far->ctx->process != NULL && far->ctx->process->memory != NULL;
}

/* The keys whose tiles the memory has not got stay in front; places[i]: of which of the tiles. Returns how many. */
static int
take_remembered(int *places, mc_tile_key *left, const far_tiles *far, const mc_ranged_file *file)
{
    int count = 0;
    for (int i = 0; i < far->count; i++) {
        mc_memory_key memory_key;
        mc_memory_key_build(&memory_key, far->cache->identity ^ far->cache->base.cache.definition, far->path,
                            &far->keys[i]);
        if (may_remember(far) && mc_memory_get(&far->tiles[i], &memory_key, &file->stamp, far->ctx, far->pool))
            continue;
        places[count] = i;
        left[count++] = far->keys[i];
    }
    return count;
}

static mc_error *
get_from_looked_at(const far_tiles *far, mc_ranged_file *file)
{
    apr_pool_t *pool = far->pool;
    size_t room = (size_t)(far->count + 1);
    int *places = apr_palloc(pool, sizeof(*places) * room);
    mc_tile_key *left = apr_palloc(pool, sizeof(*left) * room);
    mc_buf **data = apr_pcalloc(pool, sizeof(*data) * room);
    int count = take_remembered(places, left, far, file);
    if (count == 0)
        return MC_OK;
    mc_block_spots *spots = make_spots(count, pool);
    MC_TRY(far->cache->kind->locate(spots, file, far->cache, left, count, far->ctx, pool));
    MC_TRY(read_spots(data, spots, file, left, count, far->ctx, pool));
    for (int i = 0; i < count; i++) {
        mc_memory_key memory_key;
        mc_tile *tile = data[i] == NULL ? NULL : mc_tile_create(data[i], 0, pool);
        far->tiles[places[i]] = tile;
        mc_memory_key_build(&memory_key, far->cache->identity ^ far->cache->base.cache.definition, far->path, &left[i]);
        if (may_remember(far))
            mc_memory_put(&memory_key, &file->stamp, file->taken, tile, far->ctx);
    }
    return MC_OK;
}

static mc_error *
get_far_tiles(const far_tiles *far)
{
    mc_error *error = MC_OK;
    for (int look = 0; look < LOOKS_MAX; look++) {
        mc_ranged_file file;
        error = mc_block_look(&file, far->cache, far->path, far->ctx, far->pool);
        if (error == MC_OK && file.missing != 0)
            error = mc_block_judge_missing(&file, far->cache, &far->keys[0], far->pool);
        else if (error == MC_OK)
            error = get_from_looked_at(far, &file);
        mc_ranges_close(&file);
        if (error == MC_OK || error->kind != MC_ERR_UNAVAILABLE)
            return error;
    }
    return error;
}

bool
mc_block_gets_all(const mc_cache *cache)
{
    return ((const mc_block_cache *)cache)->remote != NULL;
}

mc_error *
mc_block_get_all(mc_tile **tiles, mc_cache *base, const mc_tile_key *keys, int count, mc_ctx *ctx, apr_pool_t *pool)
{
    const mc_block_cache *cache = (const mc_block_cache *)base;
    MC_SPAN(ctx, "_mapcache_cache_blocks_get");
    const char **paths = apr_palloc(pool, sizeof(*paths) * (size_t)(count + 1));
    for (int i = 0; i < count; i++) {
        char path[MC_PATH_MAX];
        MC_TRY(cache->kind->path(path, cache, &keys[i], pool));
        paths[i] = apr_pmemdup(pool, path, strlen(path) + 1);
    }
    const mc_path_groups groups = mc_path_groups_of(paths, count, pool);
    for (int i = 0; i < groups.count; i++) {
        far_tiles far = { .cache = cache, .path = paths[groups.first[i]], .ctx = ctx, .pool = pool };
        int *members = apr_palloc(pool, sizeof(*members) * (size_t)(count + 1));
        far.keys = apr_palloc(pool, sizeof(*far.keys) * (size_t)(count + 1));
        far.tiles = apr_pcalloc(pool, sizeof(*far.tiles) * (size_t)(count + 1));
        for (int member = groups.first[i]; member >= 0; member = groups.next[member]) {
            members[far.count] = member;
            far.keys[far.count++] = keys[member];
        }
        MC_TRY(get_far_tiles(&far));
        for (int j = 0; j < far.count; j++)
            if (far.tiles[j] != NULL)
                tiles[members[j]] = far.tiles[j];
    }
    return MC_OK;
}
