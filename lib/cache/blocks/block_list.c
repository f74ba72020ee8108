/*
 * Which tiles the files of a level have. Few files are asked for by their names; of many those that are there are
 * listed, and told apart by their names. Web servers have no lists: files behind HTTP are always asked for, in levels
 * that do not have too many.
 */
#include <glob.h>
#include <string.h>

#include "cache/blocks/blocks.h"

enum { FILES_ASKED_FOR = 4096, FILES_ASKED_FAR = 65536, TILES_AT_ONCE = 4096 };

/* What a list goes through. */
typedef struct block_listing {
    const mc_block_cache *cache;
    const mc_tile_key *key;
    mc_tile_range area;
    mc_tile_visit *visit;
    void *baton;
    mc_ctx *ctx;
    bool on;
    int64_t bytes; /* of the files that were looked at */
} block_listing;

/* How many files have tiles of an area of the key's level, at most. */
static double
count_block_files(const mc_block_shape *shape, const mc_tile_range *area)
{
    return ((double)(area->maxx - area->minx) / shape->columns + 1) *
           ((double)(area->maxy - area->miny) / shape->rows + 1);
}

bool
mc_block_lists(const mc_cache *base, const mc_tile_key *key)
{
    const mc_block_cache *cache = (const mc_block_cache *)base;
    const mc_block_shape shape = cache->kind->shape(cache, key);
    const mc_level *level = &key->grid->levels[key->z];
    const mc_tile_range all = { 0, 0, level->columns, level->rows };
    return cache->remote == NULL || shape.columns == 0 || count_block_files(&shape, &all) <= FILES_ASKED_FAR;
}

mc_tile_range
mc_block_range(const mc_tile_key *key, int column, int row, int columns, int rows)
{
    const mc_level *level = &key->grid->levels[key->z];
    int lastx = column + columns < level->columns ? column + columns - 1 : level->columns - 1;
    int lasty = row + rows < level->rows ? row + rows - 1 : level->rows - 1;
    int x[2] = { mc_grid_from_west(key->grid, key->z, column), mc_grid_from_west(key->grid, key->z, lastx) };
    int y[2] = { mc_grid_flip_y(key->grid, key->z, row), mc_grid_flip_y(key->grid, key->z, lasty) };
    return (mc_tile_range){ x[x[1] < x[0]], y[y[1] < y[0]], x[x[1] >= x[0]] + 1, y[y[1] >= y[0]] + 1 };
}

void
mc_block_put_plain(mc_text_out *out, const char *path)
{
    for (; *path != '\0'; path++) {
        if (strchr("*?[\\", *path) != NULL)
            mc_text_put(out, "\\", 1);
        mc_text_put(out, path, 1);
    }
}

/* The tiles, from *first to before *end, that stand in one file of `size` with `number`. */
static void
find_file_ends(int *first, int *end, int number, int size, int all, bool inverted)
{
    int place = inverted ? all - 1 - number : number, begin = place - place % size;
    int behind = begin + size < all ? begin + size : all;
    *first = inverted ? all - behind : begin;
    *end = inverted ? all - begin : behind;
}

/* The tiles of the file that has the key's tile. */
static mc_tile_range
range_of_file(const mc_block_shape *shape, const mc_tile_key *key)
{
    const mc_level *level = &key->grid->levels[key->z];
    int columns = shape->columns < level->columns ? shape->columns : level->columns;
    int rows = shape->rows < level->rows ? shape->rows : level->rows;
    if (shape->north_west) {
        int column = mc_block_column(key), row = mc_block_row(key);
        return mc_block_range(key, column - column % columns, row - row % rows, columns, rows);
    }
    mc_tile_range range;
    find_file_ends(&range.minx, &range.maxx, key->x, columns, level->columns, shape->inverted_x);
    find_file_ends(&range.miny, &range.maxy, key->y, rows, level->rows, shape->inverted_y);
    return range;
}

/* The tiles of a range that a file has, some at a time. */
static mc_error *
list_in_file(block_listing *listing, mc_ranged_file *file, const mc_tile_range *range, apr_pool_t *pool)
{
    mc_tile_key *keys = apr_palloc(pool, sizeof(*keys) * TILES_AT_ONCE);
    bool *present = apr_palloc(pool, sizeof(*present) * TILES_AT_ONCE);
    int count = 0;
    for (int y = range->miny; y < range->maxy && listing->on; y++)
        for (int x = range->minx; x < range->maxx && listing->on; x++) {
            keys[count] = *listing->key;
            keys[count].x = x;
            keys[count++].y = y;
            if (count < TILES_AT_ONCE && (x + 1 < range->maxx || y + 1 < range->maxy))
                continue;
            apr_pool_t *scratch;
            apr_pool_create(&scratch, pool);
            mc_error *error = mc_error_copy(
                listing->cache->kind->present(present, file, listing->cache, keys, count, listing->ctx, scratch), pool);
            apr_pool_destroy(scratch);
            MC_TRY(error);
            for (int i = 0; i < count && listing->on; i++)
                if (present[i])
                    listing->on = listing->visit(listing->baton, keys[i].x, keys[i].y);
            count = 0;
            MC_TRY(mc_ctx_check(listing->ctx, pool));
        }
    return MC_OK;
}

/* `wanted` NULL: what the kind says. A file that is written to meanwhile is read as it is: what was there all the time
 * is found. */
static mc_error *
list_file(block_listing *listing, const char *path, const mc_tile_range *wanted, apr_pool_t *pool)
{
    mc_ranged_file file;
    mc_tile_range range = listing->area;
    mc_error *error = mc_block_look(&file, listing->cache, path, listing->ctx, pool);
    if (error == MC_OK && file.missing != 0) {
        mc_ranges_close(&file);
        return mc_block_judge_missing(&file, listing->cache, listing->key, pool);
    }
    if (error == MC_OK && wanted == NULL)
        error = listing->cache->kind->range(&range, &file, listing->cache, listing->key, listing->ctx, pool);
    if (wanted != NULL)
        range = *wanted;
    range = mc_tile_range_intersection(&range, &listing->area);
    if (error == MC_OK) {
        listing->bytes += (int64_t)mc_ranges_size(&file);
        error = list_in_file(listing, &file, &range, pool);
    }
    mc_ranges_close(&file);
    return error;
}

/* Files by their names, one after the other. */
static mc_error *
list_asked_files(block_listing *listing, const mc_block_shape *shape, apr_pool_t *scratch)
{
    mc_tile_key key = *listing->key;
    mc_tile_range range = { 0 };
    char path[MC_PATH_MAX];
    for (int y = listing->area.miny; y < listing->area.maxy; y = range.maxy)
        for (int x = listing->area.minx; x < listing->area.maxx; x = range.maxx) {
            apr_pool_clear(scratch);
            MC_TRY(mc_ctx_check(listing->ctx, scratch));
            key.x = x;
            key.y = y;
            range = range_of_file(shape, &key);
            MC_TRY(listing->cache->kind->path(path, listing->cache, &key, scratch));
            MC_TRY(list_file(listing, path, &range, scratch));
            if (!listing->on)
                return MC_OK;
        }
    return MC_OK;
}

/* For glob(): ends it where a folder cannot be read, which may have files; errno is the folder's. */
static int
stop_at_unread(const char *path, int code)
{
    (void)path;
    return !mc_stamp_absent(code);
}

/* Files that are there, by their names in the order of the folder. */
static mc_error *
list_found_files(block_listing *listing, const mc_block_shape *shape, apr_pool_t *scratch)
{
    char pattern[MC_PATH_MAX], path[MC_PATH_MAX];
    glob_t found = { 0 };
    mc_error *error = listing->cache->kind->pattern(pattern, listing->cache, listing->key, scratch);
    int code = error != MC_OK ? GLOB_NOMATCH : glob(pattern, GLOB_NOSORT, stop_at_unread, &found);
    if (code != 0 && code != GLOB_NOMATCH)
        error = mc_error_create(scratch, MC_ERR_IO, "the files of cache \"%s\" cannot be listed",
                                listing->cache->base.cache.name);
    for (size_t i = 0; i < found.gl_pathc && error == MC_OK && listing->on; i++) {
        mc_tile_key key = *listing->key;
        apr_pool_clear(scratch);
        const mc_level *level = &key.grid->levels[key.z];
        if (!listing->cache->kind->tell(&key, listing->cache, found.gl_pathv[i], scratch) || key.x < 0 || key.y < 0 ||
            key.x >= level->columns || key.y >= level->rows ||
            listing->cache->kind->path(path, listing->cache, &key, scratch) != MC_OK ||
            strcmp(path, found.gl_pathv[i]) != 0)
            continue;
        const mc_tile_range range = range_of_file(shape, &key);
        error = list_file(listing, path, &range, scratch);
    }
    globfree(&found);
    return error;
}

static mc_error *
list_level(block_listing *listing)
{
    const mc_block_shape shape = listing->cache->kind->shape(listing->cache, listing->key);
    const mc_tile_range *area = &listing->area;
    apr_pool_t *scratch;
    mc_error *error;
    if (area->minx >= area->maxx || area->miny >= area->maxy)
        return MC_OK;
    apr_pool_create(&scratch, listing->ctx->pool);
    if (shape.columns == 0) {
        char path[MC_PATH_MAX];
        error = listing->cache->kind->path(path, listing->cache, listing->key, scratch);
        if (error == MC_OK)
            error = list_file(listing, path, NULL, scratch);
    } else {
        const bool asks = listing->cache->remote != NULL || count_block_files(&shape, area) <= FILES_ASKED_FOR;
        error = asks ? list_asked_files(listing, &shape, scratch) : list_found_files(listing, &shape, scratch);
    }
    error = mc_error_copy(error, listing->ctx->pool);
    apr_pool_destroy(scratch);
    return error;
}

mc_error *
mc_block_list(mc_cache *base, const mc_tile_key *key, const mc_tile_range *area, mc_tile_visit *visit, void *baton,
              mc_ctx *ctx)
{
    block_listing listing = { .cache = (const mc_block_cache *)base,
                              .key = key,
                              .area = *area,
                              .visit = visit,
                              .baton = baton,
                              .ctx = ctx,
                              .on = true };
    return list_level(&listing);
}

static bool
count_block_tile(void *baton, int x, int y)
{
    (void)x, (void)y;
    ++*(int64_t *)baton;
    return true;
}

mc_error *
mc_block_measure(int64_t *bytes, int64_t *tiles, mc_cache *base, const mc_tile_key *key, mc_ctx *ctx)
{
    const mc_block_cache *cache = (const mc_block_cache *)base;
    mc_tile_key deepest = *key;
    deepest.z = key->grid->level_count - 1;
    *bytes = *tiles = 0;
    if (!mc_block_lists(base, &deepest)) {
        *bytes = -1;
        return MC_OK;
    }
    for (int z = 0; z < key->grid->level_count; z++) {
        mc_tile_key first = *key;
        const mc_level *level = &key->grid->levels[z];
        first.z = z;
        first.x = first.y = 0;
        block_listing listing = { .cache = cache,
                                  .key = &first,
                                  .area = { 0, 0, level->columns, level->rows },
                                  .visit = count_block_tile,
                                  .baton = tiles,
                                  .ctx = ctx,
                                  .on = true };
        MC_TRY(list_level(&listing));
        if (z == 0 || cache->kind->shape(cache, key).columns > 0)
            *bytes += listing.bytes;
    }
    return MC_OK;
}
