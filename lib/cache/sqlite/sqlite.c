/* Tiles in SQLite files: the cache "sqlite3", and what mbtiles shares with it (spec 5.3). */
#include <apr_strings.h>
#include <string.h>

#include "cache/memory.h"
#include "cache/sqlite/sqlite_base.h"

static const char default_create[] =
    "CREATE TABLE IF NOT EXISTS tiles(tileset text, grid text, x integer, y integer, z integer, data blob, dim text,"
    " ctime datetime, PRIMARY KEY(tileset, grid, x, y, z, dim))";
#define OF_KEY " WHERE tileset=:tileset AND grid=:grid AND x=:x AND y=:y AND z=:z AND dim=:dim"

static const mc_sqlite_counts counts = {
    .area = "SELECT count(*) FROM tiles WHERE x >= :minx AND x <= :maxx AND y >= :miny AND y <= :maxy AND z = :z"
            " AND tileset = :tileset AND grid = :grid AND dim = :dim",
    .series = "SELECT count(*) FROM tiles WHERE tileset = :tileset AND grid = :grid AND dim = :dim",
    .groups = "SELECT tileset, grid, dim, z, count(*), sum(" MC_SQLITE_BLANK("data") "), sum(length(data)) FROM tiles"
                                                                                     " GROUP BY tileset, grid, dim, z",
    .remove = "DELETE FROM tiles WHERE rowid IN (SELECT rowid FROM tiles WHERE tileset IS :tileset AND grid IS :grid"
              " AND dim IS :dim AND z IS :z LIMIT 2000)",
};

static mc_error *
store_blob(mc_handle *handle, sqlite_cache *cache, const mc_tile_write *tile, apr_pool_t *pool)
{
    const uint8_t blank[5] = { '#', tile->bgra[0], tile->bgra[1], tile->bgra[2], tile->bgra[3] };
    sqlite_binds binds = { .data = tile->data->data, .size = tile->data->size };
    if (cache->detect_blank && tile->uniform)
        binds = (sqlite_binds){ .data = blank, .size = sizeof(blank) };
    return mc_sqlite_run(handle, cache->set, &tile->key, &binds, pool);
}

static mc_cache *
sqlite_cache_from_config(const mc_node *node, mc_build *build)
{
    sqlite_cache *cache = apr_pcalloc(build->pool, sizeof(*cache));
    cache->create = default_create;
    cache->exists = "SELECT 1 FROM tiles" OF_KEY;
    cache->get = "SELECT data, strftime('%s', ctime) FROM tiles" OF_KEY;
    cache->coverage = mc_coverage_statement(cache->get, build->pool);
    cache->set = "INSERT OR REPLACE INTO tiles(tileset, grid, x, y, z, data, dim, ctime)"
                 " VALUES(:tileset, :grid, :x, :y, :z, :data, :dim, datetime('now'))";
    cache->remove = "DELETE FROM tiles" OF_KEY;
    cache->list = "SELECT x, y FROM tiles WHERE tileset=:tileset AND grid=:grid AND (x, y) > (:x, :y) AND x >= :minx"
                  " AND x <= :maxx AND z=:z AND dim=:dim AND y >= :miny AND y <= :maxy ORDER BY x, y LIMIT :most";
    cache->counts = counts;
    cache->put_tile = store_blob;
    return mc_sqlite_read(cache, &mc_cache_sqlite, false, node, build) ? &cache->base.cache : NULL;
}

static int
bind_sqlite_name(sqlite3_stmt *statement, int at, const char *name, const mc_tile_key *key, const sqlite_binds *binds,
                 apr_pool_t *pool)
{
    const mc_level *level = key == NULL ? NULL : &key->grid->levels[key->z];
    if (strcmp(name, "x") == 0)
        return sqlite3_bind_int(statement, at, key->x);
    if (strcmp(name, "y") == 0)
        return sqlite3_bind_int(statement, at, key->y);
    if (strcmp(name, "z") == 0)
        return sqlite3_bind_int(statement, at, key->z);
    if (strcmp(name, "inv_x") == 0)
        return sqlite3_bind_int(statement, at, level->columns - key->x - 1);
    if (strcmp(name, "inv_y") == 0)
        return sqlite3_bind_int(statement, at, level->rows - key->y - 1);
    if (strcmp(name, "column") == 0)
        return sqlite3_bind_int(statement, at, mc_grid_from_west(key->grid, key->z, key->x));
    if (strcmp(name, "row") == 0)
        return sqlite3_bind_int(statement, at, mc_grid_flip_y(key->grid, key->z, key->y));
    if (strcmp(name, "tileset") == 0)
        return sqlite3_bind_text(statement, at, key->tileset, -1, SQLITE_STATIC);
    if (strcmp(name, "grid") == 0)
        return sqlite3_bind_text(statement, at, key->grid->name, -1, SQLITE_STATIC);
    if (strcmp(name, "dim") == 0)
        return sqlite3_bind_text(statement, at, mc_cache_dimension_key(key, pool), -1, SQLITE_STATIC);
    if (strcmp(name, "data") == 0 && binds != NULL)
        return sqlite3_bind_blob64(statement, at, binds->data, binds->size, SQLITE_STATIC);
    if (strcmp(name, "key") == 0 && binds != NULL)
        return sqlite3_bind_text(statement, at, binds->id, -1, SQLITE_STATIC);
    if (strcmp(name, "color") == 0 && binds != NULL)
        return sqlite3_bind_text(statement, at, binds->color, -1, SQLITE_STATIC);
    return SQLITE_OK; /* what is not known stays NULL */
}

mc_error *
mc_sqlite_bind(sqlite3_stmt *statement, mc_handle *handle, const mc_tile_key *key, const sqlite_binds *binds,
               apr_pool_t *pool)
{
    int count = sqlite3_bind_parameter_count(statement);
    for (int i = 1; i <= count; i++) {
        const char *name = sqlite3_bind_parameter_name(statement, i);
        if (name != NULL && bind_sqlite_name(statement, i, name + 1, key, binds, pool) != SQLITE_OK)
            return mc_handle_error(handle, "a tile does not fit into its store", pool);
    }
    return MC_OK;
}

mc_error *
mc_sqlite_run(mc_handle *handle, const char *sql, const mc_tile_key *key, const sqlite_binds *binds, apr_pool_t *pool)
{
    sqlite3_stmt *statement;
    MC_TRY(mc_handle_statement(&statement, handle, sql, pool));
    MC_TRY(mc_sqlite_bind(statement, handle, key, binds, pool));
    int code;
    do
        code = sqlite3_step(statement);
    while (code == SQLITE_ROW);
    mc_error *error = code == SQLITE_DONE ? MC_OK : mc_handle_error(handle, "a tile store cannot be written", pool);
    sqlite3_reset(statement);
    return error;
}

/* Those of the tiles whose file is `path`, in one transaction. */
static mc_error *
put_into_file(sqlite_cache *cache, mc_handle *handle, const char *path, const char *const *paths,
              const mc_tile_write *tiles, int count, mc_ctx *ctx)
{
    if (ctx->bulk)
        mc_handle_bulk(handle, ctx);
    MC_TRY(mc_sqlite_run(handle, "BEGIN IMMEDIATE", NULL, NULL, ctx->pool));
    int z = -1; /* of the tile before */
    for (int i = 0; i < count; i++) {
        if (strcmp(paths[i], path) != 0)
            continue;
        MC_TRY(cache->put_tile(handle, cache, &tiles[i], ctx->pool));
        if (cache->put_level != NULL && tiles[i].key.z != z)
            MC_TRY(cache->put_level(handle, cache, &tiles[i], ctx));
        z = tiles[i].key.z;
    }
    return mc_sqlite_run(handle, "COMMIT", NULL, NULL, ctx->pool);
}

static mc_error *
acquire_writer(mc_handle **handle, sqlite_cache *cache, const char *path, mc_ctx *ctx)
{
    mc_stamp stamp;
    bool present = mc_stamp_take(&stamp, path);
    mc_cache_reads_drop(ctx); /* a read transaction of our own would be waited for in vain */
    return mc_handle_acquire(handle, ctx->process == NULL ? NULL : ctx->process->handles, path, present ? &stamp : NULL,
                             &cache->writing, ctx, ctx->pool);
}

static void
forget_sqlite_tile(const sqlite_cache *cache, const char *path, const mc_tile_key *key, mc_ctx *ctx)
{
    mc_memory_key memory_key;
    mc_memory_key_build(&memory_key, cache->identity, path, key);
    mc_memory_forget(&memory_key, ctx);
    mc_memory_written(ctx->process == NULL ? NULL : ctx->process->memory, path);
}

static bool
seen_before(const char *const *paths, int index)
{
    for (int i = 0; i < index; i++)
        if (strcmp(paths[i], paths[index]) == 0)
            return true;
    return false;
}

mc_error *
mc_sqlite_put(mc_cache *base, const mc_tile_write *tiles, int count, mc_ctx *ctx)
{
    sqlite_cache *cache = (sqlite_cache *)base;
    const char **paths = apr_palloc(ctx->pool, sizeof(*paths) * (size_t)(count > 0 ? count : 1));
    for (int i = 0; i < count; i++) {
        char path[MC_PATH_MAX];
        MC_TRY(mc_template_expand(path, cache->template, &tiles[i].key, ctx->pool));
        paths[i] = i > 0 && strcmp(path, paths[i - 1]) == 0 ? paths[i - 1] : apr_pstrdup(ctx->pool, path);
    }
    for (int i = 0; i < count; i++) {
        if (seen_before(paths, i))
            continue;
        mc_handle *handle;
        MC_TRY(acquire_writer(&handle, cache, paths[i], ctx));
        mc_error *error = put_into_file(cache, handle, paths[i], paths, tiles, count, ctx);
        mc_handle_release(handle, error == MC_OK);
        MC_TRY(error);
    }
    for (int i = 0; i < count; i++)
        forget_sqlite_tile(cache, paths[i], &tiles[i].key, ctx);
    return MC_OK;
}

static mc_error *
remove_sqlite_tile(const sqlite_cache *cache, mc_handle *handle, const mc_tile_key *key, apr_pool_t *pool)
{
    return cache->remove_tile != NULL ? cache->remove_tile(handle, cache, key, pool)
                                      : mc_sqlite_run(handle, cache->remove, key, NULL, pool);
}

mc_error *
mc_sqlite_remove(mc_cache *base, const mc_tile_key *key, mc_ctx *ctx)
{
    return mc_sqlite_remove_all(base, key, 1, ctx);
}

/* Those of the keys whose file is `path`. */
static mc_error *
remove_from_file(sqlite_cache *cache, mc_handle *handle, const char *path, const char *const *paths,
                 const mc_tile_key *keys, int count, mc_ctx *ctx)
{
    MC_TRY(mc_sqlite_run(handle, "BEGIN IMMEDIATE", NULL, NULL, ctx->pool));
    for (int i = 0; i < count; i++)
        if (paths[i] != NULL && strcmp(paths[i], path) == 0)
            MC_TRY(remove_sqlite_tile(cache, handle, &keys[i], ctx->pool));
    return mc_sqlite_run(handle, "COMMIT", NULL, NULL, ctx->pool);
}

static mc_error *
locate_all(const char **paths, const sqlite_cache *cache, const mc_tile_key *keys, int count, mc_ctx *ctx)
{
    for (int i = 0; i < count; i++) {
        char path[MC_PATH_MAX];
        bool present;
        MC_TRY(mc_sqlite_locate(path, &present, cache, &keys[i], ctx));
        paths[i] = present ? apr_pstrdup(ctx->pool, path) : NULL;
    }
    return MC_OK;
}

mc_error *
mc_sqlite_remove_all(mc_cache *base, const mc_tile_key *keys, int count, mc_ctx *ctx)
{
    sqlite_cache *cache = (sqlite_cache *)base;
    const char **paths = apr_palloc(ctx->pool, sizeof(*paths) * (size_t)(count + 1));
    MC_TRY(locate_all(paths, cache, keys, count, ctx));
    for (int i = 0; i < count; i++) {
        bool done = paths[i] == NULL;
        for (int j = 0; j < i && !done; j++)
            done = paths[j] != NULL && strcmp(paths[j], paths[i]) == 0;
        if (done)
            continue;
        mc_handle *handle;
        MC_TRY(acquire_writer(&handle, cache, paths[i], ctx));
        mc_error *error = remove_from_file(cache, handle, paths[i], paths, keys, count, ctx);
        mc_handle_release(handle, error == MC_OK);
        MC_TRY(error);
    }
    for (int i = 0; i < count; i++)
        if (paths[i] != NULL)
            forget_sqlite_tile(cache, paths[i], &keys[i], ctx);
    return MC_OK;
}

const mc_cache_ops mc_cache_sqlite = {
    .type = "sqlite3",
    .keys = mc_sqlite_keys,
    .help = "Tiles in SQLite files.",
    .from_config = sqlite_cache_from_config,
    .get = mc_sqlite_get,
    .exists = mc_sqlite_exists,
    .put = mc_sqlite_put,
    .remove = mc_sqlite_remove,
    .remove_all = mc_sqlite_remove_all,
    .upkeep = mc_sqlite_upkeep,
    .list = mc_sqlite_list,
    .lists = mc_sqlite_lists,
    .location = mc_sqlite_location,
};
