/*
 * What <max_size> has to know of caches in SQLite files. What counts are the pages in use: a file does not shrink when
 * tiles are removed, but what is stored next takes their pages.
 */
#include <apr_strings.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cache/sqlite/path_groups.h"
#include "cache/sqlite/sqlite_base.h"

/* --- names of series ---------------------------------------------------------------------------------------------- */

/* Of files whose statements are ours, and of which all tiles of the cache are in one. */
static bool
is_one_known_file(const sqlite_cache *cache)
{
    return cache->single_file && cache->list != NULL;
}

static bool
has_tileset_column(const sqlite_cache *cache)
{
    return strcmp(cache->base.cache.ops->type, "sqlite3") == 0;
}

static mc_quota_name
name_sqlite_series(const mc_cache *base, const mc_tile_key *key, apr_pool_t *pool)
{
    const sqlite_cache *cache = (const sqlite_cache *)base;
    if (!is_one_known_file(cache))
        return (mc_quota_name){ key->tileset, key->grid->name, mc_quota_pack_dimensions(key, pool), key->extension,
                                key->client_named };
    if (has_tileset_column(cache))
        return (mc_quota_name){ key->tileset, key->grid->name, mc_cache_dimension_key(key, pool), "", false };
    return (mc_quota_name){ "", key->grid->name, "", "", false };
}

static void
restore_sqlite_key(mc_tile_key *key, const mc_cache *base, const mc_quota_name *name, apr_pool_t *pool)
{
    key->tileset = name->tileset;
    if (!is_one_known_file((const sqlite_cache *)base)) {
        mc_quota_unpack_dimensions(key, name->dim, pool);
    } else if (*name->dim != '\0') {
        mc_dimension_value *all = apr_palloc(pool, sizeof(*all));
        *all = (mc_dimension_value){ "", name->dim, false };
        key->dimensions = all;
        key->dimension_count = 1;
    }
}

static bool
sqlite_needs_grid(const mc_cache *base)
{
    const sqlite_cache *cache = (const sqlite_cache *)base;
    return !is_one_known_file(cache) || cache->north_west;
}

/* --- size --------------------------------------------------------------------------------------------------------- */

static mc_error *
read_pages(int64_t *bytes, mc_handle *handle, apr_pool_t *pool)
{
    static const char *const sql[] = { "PRAGMA page_size", "PRAGMA page_count", "PRAGMA freelist_count" };
    int64_t numbers[3];
    for (int i = 0; i < 3; i++) {
        sqlite3_stmt *statement;
        MC_TRY(mc_handle_statement(&statement, handle, sql[i], pool));
        MC_TRY(mc_handle_number(&numbers[i], handle, statement, "a tile store cannot be looked at", pool));
    }
    *bytes = numbers[0] * (numbers[1] - numbers[2]);
    return MC_OK;
}

typedef struct pages_reading {
    int64_t bytes;
    apr_pool_t *pool;
} pages_reading;

/* A mc_handle_work. */
static mc_error *
read_file_pages(void *baton, mc_handle *handle)
{
    pages_reading *reading = baton;
    return read_pages(&reading->bytes, handle, reading->pool);
}

static mc_error *
add_file_pages(int64_t *bytes, const sqlite_cache *cache, const char *path, mc_ctx *ctx)
{
    mc_stamp stamp;
    bool present;
    pages_reading reading = { 0, ctx->pool };
    mc_handles *handles = ctx->process == NULL ? NULL : ctx->process->handles;
    MC_TRY(mc_handle_look(&present, &stamp, path, ctx->pool));
    if (!present || stamp.size == 0)
        return MC_OK;
    MC_TRY(mc_handle_read(handles, path, &stamp, &cache->reading, read_file_pages, &reading, ctx, ctx->pool));
    *bytes += reading.bytes;
    return MC_OK;
}

static bool
is_tile_store(const char *path, const char *books)
{
    static const char *const others[] = { "-wal", "-shm", "-journal" };
    const size_t size = strlen(path);
    struct stat info;
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
        if (size >= strlen(others[i]) && strcmp(path + size - strlen(others[i]), others[i]) == 0)
            return false;
    return strcmp(path, books) != 0 && stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

/* A file that is no store of tiles, or cannot be read now, is not counted. */
static mc_error *
measure_sqlite_files(int64_t *bytes, mc_cache *base, mc_ctx *ctx)
{
    const sqlite_cache *cache = (const sqlite_cache *)base;
    char pattern[MC_PATH_MAX];
    glob_t found;
    mc_ctx own = *ctx;
    mc_error *error = MC_OK;
    *bytes = 0;
    if (cache->single_file)
        return add_file_pages(bytes, cache, cache->path_text, ctx);
    if (!mc_template_pattern(pattern, cache->template))
        return mc_error_create(ctx->pool, MC_ERR_LIMIT, "the paths of cache \"%s\" are too long", base->name);
    if (glob(pattern, 0, NULL, &found) != 0)
        return MC_OK;
    apr_pool_create(&own.pool, ctx->pool);
    for (size_t i = 0; i < found.gl_pathc && error == MC_OK; i++) {
        apr_pool_clear(own.pool);
        error = mc_ctx_check(&own, own.pool);
        if (error == MC_OK && is_tile_store(found.gl_pathv[i], mc_quota_books_path(base))) {
            mc_error *of_file = add_file_pages(bytes, cache, found.gl_pathv[i], &own);
            if (of_file != MC_OK)
                mc_log_error(&own, MC_LOG_INFO, of_file);
        }
    }
    error = mc_error_copy(error, ctx->pool);
    apr_pool_destroy(own.pool);
    globfree(&found);
    return error;
}

/* --- removing ----------------------------------------------------------------------------------------------------- */

typedef struct sqlite_eviction {
    const mc_tile_key *keys;
    mc_quota_removal *removal;
} sqlite_eviction;

/* Steps a statement about a tile to its only row. *text: the first column; NULL: there is no row. */
static mc_error *
query_tile_text(const char **text, mc_handle *handle, const char *sql, const mc_tile_key *key, apr_pool_t *pool)
{
    sqlite3_stmt *statement;
    *text = NULL;
    MC_TRY(mc_handle_statement(&statement, handle, sql, pool));
    MC_TRY(mc_sqlite_bind(statement, handle, key, NULL, pool));
    const int code = sqlite3_step(statement);
    if (code == SQLITE_ROW) {
        const char *found = (const char *)sqlite3_column_text(statement, 0);
        *text = apr_pstrdup(pool, found == NULL ? "" : found);
    }
    mc_error *error = code == SQLITE_ROW || code == SQLITE_DONE
                          ? MC_OK
                          : mc_handle_error(handle, "a tile store cannot be read", pool);
    sqlite3_reset(statement);
    return error;
}

/* A tile, and its content where no other tile has it. */
static mc_error *
evict_sqlite_tile(bool *gone, const sqlite_cache *cache, mc_handle *handle, bool view, const mc_tile_key *key,
                  apr_pool_t *pool)
{
    const mc_sqlite_counts *counts = &cache->counts;
    const char *there, *content = NULL;
    MC_TRY(query_tile_text(&there, handle, cache->exists, key, pool));
    *gone = there != NULL;
    if (!*gone)
        return MC_OK;
    if (view)
        MC_TRY(query_tile_text(&content, handle, counts->content, key, pool));
    MC_TRY(mc_sqlite_remove_tile(cache, handle, key, pool));
    if (content == NULL)
        return MC_OK;
    const sqlite_binds binds = { .id = content };
    MC_TRY(mc_sqlite_run(handle, counts->index_contents, NULL, NULL, pool));
    return mc_sqlite_run(handle, counts->remove_content, NULL, &binds, pool);
}

/* The tiles of a file in one transaction, each in a savepoint: how much it gives back shows once it has gone. */
static mc_error *
evict_known_tiles(mc_quota_removal *removal, const sqlite_cache *cache, mc_handle *handle, const mc_path_groups *groups,
                  int group, const mc_tile_key *keys, apr_pool_t *pool)
{
    int64_t before, after;
    bool view = false, gone;
    if (cache->counts.content != NULL)
        MC_TRY(mc_sqlite_has_view(&view, handle, pool));
    MC_TRY(read_pages(&before, handle, pool));
    for (int i = groups->first[group]; i >= 0 && removal->left.tiles == 0; i = groups->next[i]) {
        MC_TRY(mc_sqlite_run(handle, "SAVEPOINT tile", NULL, NULL, pool));
        MC_TRY(evict_sqlite_tile(&gone, cache, handle, view, &keys[i], pool));
        MC_TRY(read_pages(&after, handle, pool));
        if (gone && !mc_quota_removes(removal, before - after)) {
            MC_TRY(mc_sqlite_run(handle, "ROLLBACK TO tile", NULL, NULL, pool));
            removal->left.tiles++;
        } else {
            removal->gone.tiles += gone;
            removal->gone.bytes += before - after;
            before = after;
        }
        MC_TRY(mc_sqlite_run(handle, "RELEASE tile", NULL, NULL, pool));
    }
    return MC_OK;
}

static mc_error *
evict_from_file(sqlite_cache *cache, mc_handle *handle, const mc_path_groups *groups, int group, const void *items,
                mc_ctx *ctx)
{
    const sqlite_eviction *eviction = items;
    mc_quota_removal removal = *eviction->removal;
    MC_TRY(mc_sqlite_run(handle, "BEGIN IMMEDIATE", NULL, NULL, ctx->pool));
    MC_TRY(evict_known_tiles(&removal, cache, handle, groups, group, eviction->keys, ctx->pool));
    MC_TRY(mc_sqlite_run(handle, "COMMIT", NULL, NULL, ctx->pool));
    *eviction->removal = removal;
    return MC_OK;
}

static mc_error *
evict_sqlite_tiles(mc_quota_removal *removal, mc_cache *base, const mc_tile_key *keys, int count, mc_ctx *ctx)
{
    const sqlite_eviction eviction = { keys, removal };
    return mc_sqlite_change((sqlite_cache *)base, keys, count, evict_from_file, &eviction, ctx);
}

/* --- what there is ------------------------------------------------------------------------------------------------ */

typedef struct sqlite_survey {
    const mc_quota_survey *task;
    const mc_cache *cache;
    mc_tile_key key;
    mc_quota_name name;
    const char *place;
    bool on;
} sqlite_survey;

static bool
visit_listed(void *baton, int x, int y)
{
    sqlite_survey *survey = baton;
    mc_tile_key tile = survey->key;
    tile.x = x;
    tile.y = y;
    survey->on = survey->task->visit(survey->task->baton, &survey->name, &tile, 1, survey->place);
    return survey->on;
}

/* One level of a tileset without dimensions, as far as the store can be listed. `place`: "number of the use/level". */
static mc_error *
survey_level(sqlite_survey *survey, mc_cache *base, const mc_cache_use *use, int z, const char *place, mc_ctx *ctx)
{
    const mc_level *level = &use->grid->levels[z];
    const mc_tile_range all = { 0, 0, level->columns, level->rows };
    survey->key = (mc_tile_key){
        .tileset = use->tileset, .grid = use->grid, .z = z, .extension = use->extension, .renderable = true
    };
    survey->name = name_sqlite_series(base, &survey->key, ctx->pool);
    survey->place = place;
    return mc_sqlite_lists(base, &survey->key) ? mc_sqlite_list(base, &survey->key, &all, visit_listed, survey, ctx)
                                               : MC_OK;
}

/* By the tilesets that the configuration has. */
static mc_error *
survey_by_tilesets(mc_cache *base, const mc_quota_survey *task, mc_ctx *ctx)
{
    const apr_array_header_t *uses = mc_uses_tilesets(base->uses);
    sqlite_survey survey = { .task = task, .cache = base, .on = true };
    mc_ctx own = *ctx;
    mc_error *error = MC_OK;
    apr_pool_create(&own.pool, ctx->pool);
    for (int i = 0; i < uses->nelts; i++) {
        const mc_cache_use *use = &APR_ARRAY_IDX(uses, i, mc_cache_use);
        for (int z = 0; z < use->grid->level_count && survey.on && error == MC_OK; z++) {
            apr_pool_clear(own.pool);
            const char *place = apr_psprintf(own.pool, "%06d/%04d", i, z);
            if (strcmp(place, task->from) >= 0)
                error = survey_level(&survey, base, use, z, place, &own);
        }
    }
    error = mc_error_copy(error, ctx->pool);
    apr_pool_destroy(own.pool);
    return error;
}

/* By the rows of our own tables: also tiles of tilesets that are configured no more, and of all values of dimensions.
 * Each statement gives, in the order of an index, what lies behind the place of the survey. */
static const char list_rows[] =
    "SELECT tileset, grid, dim, z, x, y FROM tiles WHERE (tileset, grid, x, y, z, dim) > (:tileset, :grid, :x, :y, :z,"
    " :dim) ORDER BY tileset, grid, x, y, z, dim LIMIT 4096";
static const char list_places[] =
    "SELECT tileset, grid, dim, z, x, y FROM places WHERE (tileset, grid, dim, z, x, y) > (:tileset, :grid, :dim, :z,"
    " :x, :y) ORDER BY tileset, grid, dim, z, x, y LIMIT 4096";

enum { ROWS_AT_ONCE = 4096 };

typedef struct sqlite_row {
    mc_quota_name name;
    int z, x, y;
} sqlite_row;

static const char *
row_text(sqlite3_stmt *statement, int column, apr_pool_t *pool)
{
    const char *text = (const char *)sqlite3_column_text(statement, column);
    return text == NULL ? "" : apr_pstrdup(pool, text);
}

typedef struct survey_reading {
    sqlite_row *rows;
    int *count;
    const sqlite_row *last;
    apr_pool_t *pool;
} survey_reading;

/* A mc_handle_work. */
static mc_error *
read_survey_rows(void *baton, mc_handle *handle)
{
    const survey_reading *reading = baton;
    const sqlite_row *last = reading->last;
    int *count = reading->count;
    apr_pool_t *pool = reading->pool;
    sqlite3_stmt *statement;
    bool view;
    const mc_grid *grid = &(mc_grid){ .name = last->name.grid, .levels = &(mc_level){ 0 } };
    const mc_dimension_value dim = { "", last->name.dim, false };
    const mc_tile_key key = { .tileset = last->name.tileset, .grid = grid, .dimensions = &dim, .dimension_count = 1 };
    *count = 0;
    MC_TRY(mc_sqlite_has_view(&view, handle, pool));
    mc_error *error = mc_handle_statement(&statement, handle, view ? list_places : list_rows, pool);
    if (error != MC_OK && mc_handle_lacks_table(handle))
        return MC_OK;
    MC_TRY(error);
    MC_TRY(mc_sqlite_bind(statement, handle, &key, NULL, pool));
    sqlite3_bind_int(statement, sqlite3_bind_parameter_index(statement, ":z"), last->z);
    sqlite3_bind_int(statement, sqlite3_bind_parameter_index(statement, ":x"), last->x);
    sqlite3_bind_int(statement, sqlite3_bind_parameter_index(statement, ":y"), last->y);
    int code = SQLITE_DONE;
    while (*count < ROWS_AT_ONCE && (code = sqlite3_step(statement)) == SQLITE_ROW) {
        reading->rows[(*count)++] = (sqlite_row){ { row_text(statement, 0, pool), row_text(statement, 1, pool),
                                                    row_text(statement, 2, pool), "", false },
                                                  sqlite3_column_int(statement, 3),
                                                  sqlite3_column_int(statement, 4),
                                                  sqlite3_column_int(statement, 5) };
    }
    if (code != SQLITE_ROW && code != SQLITE_DONE)
        error = mc_handle_error(handle, "the tiles of a store cannot be listed", pool);
    sqlite3_reset(statement);
    return error;
}

static mc_error *
read_survey_file(sqlite_row *rows, int *count, const sqlite_cache *cache, const sqlite_row *last, mc_ctx *ctx)
{
    mc_stamp stamp;
    bool present;
    survey_reading reading = { rows, count, last, ctx->pool };
    mc_handles *handles = ctx->process == NULL ? NULL : ctx->process->handles;
    *count = 0;
    MC_TRY(mc_handle_look(&present, &stamp, cache->path_text, ctx->pool));
    if (!present || stamp.size == 0)
        return MC_OK;
    return mc_handle_read(handles, cache->path_text, &stamp, &cache->reading, read_survey_rows, &reading, ctx,
                          ctx->pool);
}

/* A row as the place of a survey, and back: numbers first, as texts may hold anything. */
static const char *
format_survey_place(const sqlite_row *row, apr_pool_t *pool)
{
    return apr_psprintf(pool, "%d %d %d\n%s\n%s\n%s", row->z, row->x, row->y, row->name.tileset, row->name.grid,
                        row->name.dim);
}

static sqlite_row
parse_survey_place(const char *place, apr_pool_t *pool)
{
    sqlite_row row = { .name = { "", "", "", "", false }, .z = -1, .x = -1, .y = -1 };
    const char **const texts[] = { &row.name.tileset, &row.name.grid, &row.name.dim };
    int *const numbers[] = { &row.z, &row.x, &row.y };
    char *end = apr_pstrdup(pool, place);
    for (int i = 0; i < 3 && *place != '\0'; i++)
        *numbers[i] = (int)strtol(end, &end, 10);
    const char *at = strchr(place, '\n');
    for (int i = 0; i < 3 && at != NULL; i++) {
        const char *begin = at + 1;
        at = i < 2 ? strchr(begin, '\n') : NULL;
        *texts[i] = at == NULL ? apr_pstrdup(pool, begin) : apr_pstrmemdup(pool, begin, (apr_size_t)(at - begin));
    }
    return row;
}

static mc_error *
survey_by_rows(mc_cache *base, const mc_quota_survey *task, mc_ctx *ctx)
{
    sqlite_row *rows = apr_palloc(ctx->pool, sizeof(*rows) * ROWS_AT_ONCE);
    apr_pool_t *pools[2]; /* of these rows, and of the last one */
    mc_ctx own = *ctx;
    mc_error *error = MC_OK;
    int count;
    bool on = true;
    for (int i = 0; i < 2; i++)
        apr_pool_create(&pools[i], ctx->pool);
    sqlite_row last = parse_survey_place(task->from, ctx->pool);
    for (int turn = 0; on && error == MC_OK; turn = 1 - turn) {
        apr_pool_clear(pools[turn]);
        own.pool = pools[turn];
        error = read_survey_file(rows, &count, (const sqlite_cache *)base, &last, &own);
        for (int i = 0; i < count && on && error == MC_OK; i++) {
            const mc_tile_key tile = { .z = rows[i].z, .x = rows[i].x, .y = rows[i].y };
            last = rows[i];
            if (tile.z >= 0 && tile.x >= 0 && tile.y >= 0)
                on = task->visit(task->baton, &rows[i].name, &tile, 1, format_survey_place(&rows[i], own.pool));
        }
        on = on && count == ROWS_AT_ONCE;
    }
    error = mc_error_copy(error, ctx->pool);
    for (int i = 0; i < 2; i++)
        apr_pool_destroy(pools[i]);
    return error;
}

static mc_error *
survey_sqlite(mc_cache *base, const mc_quota_survey *task, mc_ctx *ctx)
{
    const sqlite_cache *cache = (const sqlite_cache *)base;
    return is_one_known_file(cache) && has_tileset_column(cache) ? survey_by_rows(base, task, ctx)
                                                                 : survey_by_tilesets(base, task, ctx);
}

const mc_quota_store mc_sqlite_quota = {
    .name = name_sqlite_series,
    .restore = restore_sqlite_key,
    .needs_grid = sqlite_needs_grid,
    .total = measure_sqlite_files,
    .evict = evict_sqlite_tiles,
    .survey = survey_sqlite,
};
