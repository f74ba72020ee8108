/* Counting the tiles of stores: of SQLite files the template tells the file of a tile, the counts of the cache how many
 * share it. */
#include "mapcache/survey.h"

#include <string.h>

#include "cache/sqlite/sqlite_base.h"

enum { LOOKED_FOR_AT_ONCE = 64 /* tiles of a store that lists none */ };

typedef struct survey {
    const mc_tile_key *key;
    const mc_survey_task *task;
    mc_ctx *ctx;
} survey;

/* The number in the first column of the first row. */
static mc_error *
query_survey_number(int64_t *number, mc_handle *handle, const char *sql, const survey *survey,
                    const mc_tile_range *range)
{
    sqlite3_stmt *statement;
    const mc_tile_key *key = survey->key;
    MC_TRY(mc_handle_statement(&statement, handle, sql, survey->ctx->pool));
    MC_TRY(mc_sqlite_bind(statement, handle, key, NULL, survey->ctx->pool));
    mc_sqlite_bind_area(statement, key, range);
    return mc_handle_number(number, handle, statement, "tiles cannot be counted", survey->ctx->pool);
}

/* Adds up the wanted tiles of a range, and those of them that are stored; without a handle none is. Ranges at the
 * border of the region are halved until they are single tiles. */
static mc_error *
count_range(mc_survey_file *file, mc_handle *handle, const char *sql, const survey *survey, const mc_tile_range *range)
{
    const mc_survey_task *task = survey->task;
    int columns = range->maxx - range->minx, rows = range->maxy - range->miny;
    mc_survey_share share = task->share == NULL ? MC_SURVEY_ALL : task->share(task->baton, range);
    if (share == MC_SURVEY_NONE)
        return MC_OK;
    if (share == MC_SURVEY_ALL || (columns == 1 && rows == 1)) {
        int64_t stored = 0;
        if (handle != NULL)
            MC_TRY(query_survey_number(&stored, handle, sql, survey, range));
        file->most += (int64_t)columns * rows;
        file->stored += stored;
        return MC_OK;
    }
    mc_tile_range one = *range, other = *range;
    if (columns > rows)
        one.maxx = other.minx = range->minx + columns / 2;
    else
        one.maxy = other.miny = range->miny + rows / 2;
    MC_TRY(count_range(file, handle, sql, survey, &one));
    return count_range(file, handle, sql, survey, &other);
}

typedef struct file_counting {
    mc_survey_file *file;
    const sqlite_cache *cache;
    const survey *survey;
} file_counting;

/* A mc_handle_work. */
static mc_error *
count_in_file(void *baton, mc_handle *handle)
{
    const file_counting *counting = baton;
    mc_survey_file *file = counting->file;
    const sqlite_cache *cache = counting->cache;
    const survey *survey = counting->survey;
    const mc_survey_task *task = survey->task;
    file->most = file->stored = 0;
    MC_TRY(count_range(file, handle, task->query != NULL ? task->query : cache->counts.area, survey, &file->wanted));
    return query_survey_number(&file->total, handle, cache->counts.series, survey, &file->wanted);
}

static mc_error *
count_survey_tiles(mc_survey_file *file, const sqlite_cache *cache, const survey *survey)
{
    mc_stamp stamp;
    mc_ctx *ctx = survey->ctx;
    file_counting counting = { file, cache, survey };
    MC_TRY(mc_handle_look(&file->present, &stamp, file->path, ctx->pool));
    if (!file->present)
        return count_range(file, NULL, NULL, survey, &file->wanted);
    file->bytes = stamp.size;
    mc_handles *handles = ctx->process == NULL ? NULL : ctx->process->handles;
    return mc_handle_read(handles, file->path, &stamp, &cache->reading, count_in_file, &counting, ctx, ctx->pool);
}

static bool
in_sqlite(const mc_cache *cache)
{
    return cache->ops == &mc_cache_sqlite || cache->ops == &mc_cache_mbtiles || cache->ops == &mc_cache_geopackage;
}

/* The cache that has the tile, and its path there. */
static mc_error *
find_survey_place(mc_store_location *location, mc_cache *cache, const mc_tile_key *key, const survey *survey)
{
    location->cache = NULL;
    if (cache->ops->location != NULL)
        MC_TRY(cache->ops->location(location, cache, key, survey->ctx->pool));
    if (location->cache != NULL &&
        (survey->task->any ? in_sqlite(location->cache) : location->cache->ops == &mc_cache_sqlite))
        return MC_OK;
    if (survey->task->any)
        return mc_error_create(survey->ctx->pool, MC_ERR_CONFIG, "tiles of cache \"%s\" of type %s cannot be counted",
                               cache->name, cache->ops->type);
    return mc_error_create(survey->ctx->pool, MC_ERR_CONFIG,
                           "cache \"%s\" has no SQLite files for these tiles (type sqlite3)", cache->name);
}

/* Of tiles that share a file: from `first` on, at most `size` (none: all), at most to `limit`. */
static void
survey_block_bounds(int *begin, int *end, int first, int size, int limit)
{
    *begin = size > 0 ? first / size * size : 0;
    *end = size > 0 && *begin + size < limit ? *begin + size : limit;
}

static bool
is_survey_block_wanted(const survey *survey, const mc_tile_range *tiles)
{
    const mc_survey_task *task = survey->task;
    return task->share == NULL || task->share(task->baton, tiles) != MC_SURVEY_NONE;
}

/* The file of tile x, y. */
static mc_error *
visit_file(mc_survey_file *file, bool *on, mc_cache *cache, int x, int y, const survey *survey)
{
    mc_tile_key key = *survey->key;
    const mc_level *level = &key.grid->levels[key.z];
    mc_store_location location;
    key.x = x;
    key.y = y;
    MC_TRY(find_survey_place(&location, cache, &key, survey));
    const sqlite_cache *store = (const sqlite_cache *)location.cache;
    bool split = location.by_tile || mc_template_by_tile(store->template);
    *file = (mc_survey_file){ .path = location.path };
    survey_block_bounds(&file->block.minx, &file->block.maxx, x, split ? store->columns : 0, level->columns);
    survey_block_bounds(&file->block.miny, &file->block.maxy, y, split ? store->rows : 0, level->rows);
    file->wanted = mc_tile_range_intersection(&file->block, &survey->task->area);
    if (!is_survey_block_wanted(survey, &file->wanted))
        return MC_OK;
    MC_TRY(count_survey_tiles(file, store, survey));
    *on = file->most == 0 || survey->task->visit(survey->task->baton, file);
    return MC_OK;
}

typedef struct counting {
    const survey *survey;
    int64_t *stored;
} counting;

static bool
count_one(void *baton, int x, int y)
{
    counting *c = baton;
    *c->stored += is_survey_block_wanted(c->survey, &(mc_tile_range){ x, y, x + 1, y + 1 });
    return true;
}

/* A part of a column of the area, of which each tile is looked for; the store may be far away. */
static mc_error *
count_by_looking(int64_t *stored, mc_cache *cache, mc_tile_key *key, int last, const survey *survey, mc_ctx *ctx)
{
    mc_tile_key keys[LOOKED_FOR_AT_ONCE];
    bool exists[LOOKED_FOR_AT_ONCE] = { false };
    int count = 0;
    for (; key->y < last && count < LOOKED_FOR_AT_ONCE; key->y++)
        if (is_survey_block_wanted(survey, &(mc_tile_range){ key->x, key->y, key->x + 1, key->y + 1 }))
            keys[count++] = *key;
    if (count > 0)
        MC_TRY(mc_cache_exist_all(exists, cache, keys, count, ctx));
    for (int i = 0; i < count; i++)
        *stored += exists[i];
    return MC_OK;
}

/* Of a store that counts as one file: by its list, or tile by tile. */
static mc_error *
count_in_store(mc_survey_file *file, mc_cache *cache, const survey *survey)
{
    mc_tile_key key = *survey->key;
    counting counting = { survey, &file->stored };
    file->present = true;
    MC_TRY(count_range(file, NULL, NULL, survey, &file->wanted));
    MC_TRY(cache->ops->measure(&file->bytes, &file->total, cache, &key, survey->ctx));
    file->bytes = file->bytes < 0 ? 0 : file->bytes;
    if (mc_cache_lists(cache, &key))
        return mc_cache_list(cache, &key, &file->wanted, count_one, &counting, survey->ctx);
    apr_pool_t *scratch;
    mc_ctx own = *survey->ctx;
    apr_pool_create(&scratch, survey->ctx->pool);
    own.pool = scratch;
    mc_error *error = MC_OK;
    for (key.x = file->wanted.minx; key.x < file->wanted.maxx && error == MC_OK; key.x++)
        for (key.y = file->wanted.miny; key.y < file->wanted.maxy && error == MC_OK;) {
            apr_pool_clear(scratch);
            error = count_by_looking(&file->stored, cache, &key, file->wanted.maxy, survey, &own);
        }
    error = mc_error_copy(error, survey->ctx->pool);
    apr_pool_destroy(scratch);
    return error;
}

static mc_error *
visit_store(mc_cache *cache, const survey *survey)
{
    const mc_level *level = &survey->key->grid->levels[survey->key->z];
    mc_survey_file file = { .path = cache->name, .block = { 0, 0, level->columns, level->rows } };
    file.wanted = mc_tile_range_intersection(&file.block, &survey->task->area);
    MC_TRY(count_in_store(&file, cache, survey));
    if (file.most > 0 || survey->task->share == NULL)
        (void)survey->task->visit(survey->task->baton, &file);
    return MC_OK;
}

mc_error *
mc_survey(mc_cache *cache, const mc_tile_key *key, const mc_survey_task *task, mc_ctx *ctx)
{
    apr_pool_t *scratch;
    apr_pool_create(&scratch, ctx->pool);
    mc_ctx own = *ctx;
    own.pool = scratch;
    survey survey = { key, task, &own };
    const mc_tile_range *area = &task->area;
    mc_survey_file file = { 0 };
    cache = task->any ? mc_cache_whole(cache, key) : cache;
    mc_error *error = MC_OK;
    bool on = true;
    if (area->minx >= area->maxx || area->miny >= area->maxy)
        error = MC_OK; /* nothing of it lies in the grid */
    else if (task->any && cache->ops->measure != NULL)
        error = visit_store(cache, &survey);
    else
        for (int x = area->minx; x < area->maxx && on && error == MC_OK; x = file.block.maxx)
            for (int y = area->miny; y < area->maxy && on && error == MC_OK; y = file.block.maxy) {
                apr_pool_clear(scratch);
                error = visit_file(&file, &on, cache, x, y, &survey);
            }
    error = mc_error_copy(error, ctx->pool);
    apr_pool_destroy(scratch);
    return error;
}
