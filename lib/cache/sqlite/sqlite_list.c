/* Which tiles of a level a file holds: read a few thousand at a time, so that neither memory nor a lock grows. */
#include "cache/sqlite/sqlite_base.h"

enum { TILES_AT_ONCE = 4096 };

typedef struct listed {
    int x, y;
} listed;

bool
mc_sqlite_lists(const mc_cache *base, const mc_tile_key *key)
{
    const sqlite_cache *cache = (const sqlite_cache *)base;
    (void)key;
    return cache->list != NULL && !mc_template_by_tile(cache->template);
}

static void
bind_number(sqlite3_stmt *statement, const char *name, int value)
{
    int at = sqlite3_bind_parameter_index(statement, name);
    if (at > 0)
        sqlite3_bind_int(statement, at, value);
}

static void
bind_ends(sqlite3_stmt *statement, const char *least, const char *most, int one, int other)
{
    bind_number(statement, least, one < other ? one : other);
    bind_number(statement, most, one < other ? other : one);
}

void
mc_sqlite_bind_area(sqlite3_stmt *statement, const mc_tile_key *key, const mc_tile_range *area)
{
    bind_ends(statement, ":minx", ":maxx", area->minx, area->maxx - 1);
    bind_ends(statement, ":miny", ":maxy", area->miny, area->maxy - 1);
    bind_ends(statement, ":mincolumn", ":maxcolumn", mc_grid_from_west(key->grid, key->z, area->minx),
              mc_grid_from_west(key->grid, key->z, area->maxx - 1));
    bind_ends(statement, ":minrow", ":maxrow", mc_grid_flip_y(key->grid, key->z, area->miny),
              mc_grid_flip_y(key->grid, key->z, area->maxy - 1));
}

/* The place of a tile in the file, and back. */
static listed
flip_listed_tile(const sqlite_cache *cache, const mc_tile_key *key, int x, int y)
{
    return cache->north_west ? (listed){ mc_grid_from_west(key->grid, key->z, x), mc_grid_flip_y(key->grid, key->z, y) }
                             : (listed){ x, y };
}

mc_error *
mc_sqlite_has_view(bool *view, mc_handle *handle, apr_pool_t *pool)
{
    static const char sql[] = "SELECT 1 FROM sqlite_master WHERE name='tiles' AND type='view'";
    sqlite3_stmt *statement;
    bool *known =
        mc_handle_user_flag(handle); /* only that it is one: where there is no `tiles` yet, it may become one */
    *view = *known;
    if (*known)
        return MC_OK;
    MC_TRY(mc_handle_statement(&statement, handle, sql, pool));
    int code = sqlite3_step(statement);
    *view = *known = code == SQLITE_ROW;
    mc_error *error = code == SQLITE_ROW || code == SQLITE_DONE
                          ? MC_OK
                          : mc_handle_error(handle, "a tile store cannot be looked at", pool);
    sqlite3_reset(statement);
    return error;
}

/* The statement of a file that is open. */
static mc_error *
choose_list(const char **sql, mc_handle *handle, const sqlite_cache *cache, apr_pool_t *pool)
{
    bool view = false;
    if (cache->list_view != NULL)
        MC_TRY(mc_sqlite_has_view(&view, handle, pool));
    *sql = view ? cache->list_view : cache->list;
    return MC_OK;
}

typedef struct tile_list_reading {
    listed *tiles;
    int *count;
    const sqlite_cache *cache;
    const mc_tile_key *last;
    const mc_tile_range *area;
    mc_ctx *ctx;
} tile_list_reading;

/* Tiles behind `last`, in the order of the list: a mc_handle_work. */
static mc_error *
read_some(void *baton, mc_handle *handle)
{
    const tile_list_reading *reading = baton;
    const sqlite_cache *cache = reading->cache;
    const mc_tile_key *last = reading->last;
    mc_ctx *ctx = reading->ctx;
    int *count = reading->count;
    sqlite3_stmt *statement;
    const char *sql;
    *count = 0;
    MC_TRY(choose_list(&sql, handle, cache, ctx->pool));
    mc_error *error = mc_handle_statement(&statement, handle, sql, ctx->pool);
    if (error != MC_OK && mc_handle_lacks_table(handle))
        return MC_OK;
    MC_TRY(error);
    MC_TRY(mc_sqlite_bind(statement, handle, last, NULL, ctx->pool));
    mc_sqlite_bind_area(statement, last, reading->area);
    bind_number(statement, ":most", TILES_AT_ONCE);
    int code = SQLITE_DONE;
    while (*count < TILES_AT_ONCE && (code = sqlite3_step(statement)) == SQLITE_ROW)
        reading->tiles[(*count)++] =
            flip_listed_tile(cache, last, sqlite3_column_int(statement, 0), sqlite3_column_int(statement, 1));
    if (code != SQLITE_ROW && code != SQLITE_DONE)
        error = mc_handle_error(handle, "the tiles of a store cannot be listed", ctx->pool);
    sqlite3_reset(statement);
    return error;
}

static mc_error *
read_from_file(tile_list_reading *reading, const char *path)
{
    mc_stamp stamp;
    bool present;
    mc_ctx *ctx = reading->ctx;
    *reading->count = 0;
    MC_TRY(mc_handle_look(&present, &stamp, path, ctx->pool));
    if (!present)
        return MC_OK;
    mc_handles *handles = ctx->process == NULL ? NULL : ctx->process->handles;
    return mc_handle_read(handles, path, &stamp, &reading->cache->reading, read_some, reading, ctx, ctx->pool);
}

mc_error *
mc_sqlite_list(mc_cache *base, const mc_tile_key *key, const mc_tile_range *area, mc_tile_visit *visit, void *baton,
               mc_ctx *ctx)
{
    const sqlite_cache *cache = (const sqlite_cache *)base;
    listed tiles[TILES_AT_ONCE];
    char path[MC_PATH_MAX];
    mc_tile_key last = *key;
    mc_ctx own = *ctx;
    mc_error *error = MC_OK;
    int count = 0;
    tile_list_reading reading = { tiles, &count, cache, &last, area, &own };
    /* Before all of them, by columns and by rows, wherever the file counts from. */
    listed one = flip_listed_tile(cache, key, area->minx, area->miny),
           other = flip_listed_tile(cache, key, area->maxx - 1, area->maxy - 1);
    one = (listed){ (one.x < other.x ? one.x : other.x) - 1, (one.y < other.y ? one.y : other.y) - 1 };
    one = flip_listed_tile(cache, key, one.x, one.y);
    last.x = one.x;
    last.y = one.y;
    apr_pool_create(&own.pool, ctx->pool);
    MC_TRY(mc_template_expand(path, cache->template, key, ctx->pool));
    do {
        apr_pool_clear(own.pool);
        error = read_from_file(&reading, path);
        for (int i = 0; i < count && error == MC_OK; i++) {
            last.x = tiles[i].x;
            last.y = tiles[i].y;
            if (!visit(baton, tiles[i].x, tiles[i].y))
                count = 0;
        }
    } while (error == MC_OK && count == TILES_AT_ONCE);
    error = mc_error_copy(error, ctx->pool);
    apr_pool_destroy(own.pool);
    return error;
}
