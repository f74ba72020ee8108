/* Which tiles of a level a file holds: read a few thousand at a time, so that neither memory nor a lock grows. */
#include <errno.h>

#include "cache/sqlite_base.h"

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

/* Tiles behind `last`, in the order of the list. */
static mc_error *
read_some(listed *tiles, int *count, mc_handle *handle, const sqlite_cache *cache, const mc_tile_key *last,
          const mc_tile_range *area, mc_ctx *ctx)
{
    sqlite3_stmt *statement;
    MC_TRY(mc_handle_statement(&statement, handle, cache->list, ctx->pool));
    MC_TRY(mc_sqlite_bind(statement, handle, last, NULL, ctx->pool));
    bind_number(statement, ":maxx", area->maxx);
    bind_number(statement, ":miny", area->miny);
    bind_number(statement, ":maxy", area->maxy);
    bind_number(statement, ":most", TILES_AT_ONCE);
    int code = SQLITE_DONE;
    *count = 0;
    while (*count < TILES_AT_ONCE && (code = sqlite3_step(statement)) == SQLITE_ROW)
        tiles[(*count)++] = (listed){ sqlite3_column_int(statement, 0), sqlite3_column_int(statement, 1) };
    mc_error *error = code == SQLITE_ROW || code == SQLITE_DONE
                          ? MC_OK
                          : mc_handle_error(handle, "the tiles of a store cannot be listed", ctx->pool);
    sqlite3_reset(statement);
    return error;
}

static mc_error *
read_from_file(listed *tiles, int *count, const char *path, const sqlite_cache *cache, const mc_tile_key *last,
               const mc_tile_range *area, mc_ctx *ctx)
{
    mc_stamp stamp;
    mc_handle *handle;
    *count = 0;
    if (!mc_stamp_take(&stamp, path))
        return errno == ENOENT ? MC_OK : mc_error_create(ctx->pool, MC_ERR_IO, "%s cannot be looked at", path);
    mc_handles *handles = ctx->process == NULL ? NULL : ctx->process->handles;
    MC_TRY(mc_handle_acquire(&handle, handles, path, &stamp, &cache->reading, ctx, ctx->pool));
    mc_error *error = read_some(tiles, count, handle, cache, last, area, ctx);
    mc_handle_release(handle, error == MC_OK);
    return error;
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
    last.x = area->minx - 1; /* no tile has this row: the first one of the first column is behind it */
    last.y = area->maxy;
    apr_pool_create(&own.pool, ctx->pool);
    MC_TRY(mc_template_expand(path, cache->template, key, ctx->pool));
    do {
        apr_pool_clear(own.pool);
        error = read_from_file(tiles, &count, path, cache, &last, area, &own);
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
