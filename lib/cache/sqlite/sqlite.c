/* Tiles in SQLite files: the cache "sqlite3", and what mbtiles shares with it (docs/reference/configuration.md 5.3). */
#include <apr_strings.h>
#include <string.h>

#include "cache/memory.h"
#include "cache/sqlite/deduplicate.h"
#include "cache/sqlite/path_groups.h"
#include "cache/sqlite/sqlite_base.h"

static const char default_create[] =
    "CREATE TABLE IF NOT EXISTS tiles(tileset text, grid text, x integer, y integer, z integer, data blob, dim text,"
    " ctime datetime, PRIMARY KEY(tileset, grid, x, y, z, dim))";
#define OF_KEY " WHERE tileset=:tileset AND grid=:grid AND x=:x AND y=:y AND z=:z AND dim=:dim"

#define GROUPS_SQL                                                                                                     \
    "SELECT tileset, grid, dim, z, count(*), sum(" MC_SQLITE_BLANK("data") "), sum(length(data)) FROM tiles"           \
                                                                           " GROUP BY tileset, grid, dim, z"

/* Where `tiles` is a view, the file is one of <deduplicate>. */
static const mc_sqlite_counts counts = {
    .area = "SELECT count(*) FROM tiles WHERE x >= :minx AND x <= :maxx AND y >= :miny AND y <= :maxy AND z = :z"
            " AND tileset = :tileset AND grid = :grid AND dim = :dim",
    .series = "SELECT count(*) FROM tiles WHERE tileset = :tileset AND grid = :grid AND dim = :dim",
    .groups = GROUPS_SQL,
    .remove = mc_dedup_remove,
    .tidy_up = mc_dedup_tidy_up,
    .unused = mc_dedup_unused,
    .content = mc_dedup_content,
    .remove_content = mc_dedup_remove_content,
    .index_contents = mc_dedup_index,
    .table_groups = GROUPS_SQL,
    .table_remove =
        "DELETE FROM tiles WHERE rowid IN (SELECT rowid FROM tiles WHERE tileset IS :tileset AND grid IS :grid"
        " AND dim IS :dim AND z IS :z LIMIT 2000)",
};

static mc_error *
store_blob(mc_handle *handle, sqlite_cache *cache, const mc_tile_write *tile, apr_pool_t *pool)
{
    const uint8_t blank[5] = { '#', tile->bgra[0], tile->bgra[1], tile->bgra[2], tile->bgra[3] };
    sqlite_binds binds = { .data = tile->data->data, .size = tile->data->size };
    if (cache->detect_blank && tile->uniform)
        binds = (sqlite_binds){ .data = blank, .size = sizeof(blank) };
    bool view = false; /* a file that was there before the key keeps its table */
    if (cache->deduplicate)
        MC_TRY(mc_sqlite_has_view(&view, handle, pool));
    if (view)
        return mc_dedup_put(handle, &tile->key, binds.data, binds.size, pool);
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
    if (!mc_sqlite_read(cache, &mc_cache_sqlite, false, node, build))
        return NULL;
    if (cache->deduplicate) {
        cache->create_bare = true;
        cache->create = cache->writing.create = mc_dedup_create;
        cache->writing.profile = mc_open_options_profile(&cache->writing);
    }
    return &cache->base.cache;
}

/* The tiles of one file, in one transaction. */
static mc_error *
put_into_file(sqlite_cache *cache, mc_handle *handle, const mc_path_groups *groups, int group, const void *items,
              mc_ctx *ctx)
{
    const mc_tile_write *tiles = items;
    if (ctx->bulk)
        mc_handle_bulk(handle, ctx);
    MC_TRY(mc_sqlite_run(handle, "BEGIN IMMEDIATE", NULL, NULL, ctx->pool));
    int z = -1; /* of the tile before */
    for (int i = groups->first[group]; i >= 0; i = groups->next[i]) {
        MC_TRY(cache->put_tile(handle, cache, &tiles[i], ctx->pool));
        if (cache->put_level != NULL && tiles[i].key.z != z)
            MC_TRY(cache->put_level(handle, cache, &tiles[i], ctx));
        z = tiles[i].key.z;
    }
    return mc_sqlite_run(handle, "COMMIT", NULL, NULL, ctx->pool);
}

/* Nothing has been made in it: also a file whose first writer was killed after the pragmas. */
static mc_error *
is_bare_file(bool *bare, mc_handle *handle, apr_pool_t *pool)
{
    sqlite3_stmt *statement;
    int64_t entries = 0;
    MC_TRY(mc_handle_statement(&statement, handle, "SELECT count(*) FROM sqlite_master", pool));
    MC_TRY(mc_handle_number(&entries, handle, statement, "a tile store cannot be read", pool));
    *bare = entries == 0;
    return MC_OK;
}

/* A file that a client has named may be anything that lies in the same folder: no tables are made in one that has
 * something in it already. Nor are those of <deduplicate> in a file of another layout. */
static mc_error *
acquire_writer(mc_handle **handle, sqlite_cache *cache, const char *path, bool client_named, mc_ctx *ctx)
{
    mc_handles *handles = ctx->process == NULL ? NULL : ctx->process->handles;
    mc_stamp stamp;
    bool present = mc_stamp_take(&stamp, path);
    mc_open_options how = cache->writing;
    mc_cache_reads_drop(ctx); /* a read transaction of our own would be waited for in vain */
    if (!(client_named || cache->create_bare) || !present || stamp.size == 0)
        return mc_handle_acquire(handle, handles, path, present ? &stamp : NULL, &how, ctx, ctx->pool);
    bool bare = false;
    how.create = NULL;
    how.profile = mc_open_options_profile(&how);
    MC_TRY(mc_handle_acquire(handle, handles, path, &stamp, &how, ctx, ctx->pool));
    mc_error *error = is_bare_file(&bare, *handle, ctx->pool);
    if (error == MC_OK && !bare)
        return MC_OK;
    mc_handle_release(*handle, error == MC_OK);
    MC_TRY(error);
    return mc_handle_acquire(handle, handles, path, &stamp, &cache->writing, ctx, ctx->pool);
}

/* Puts or removes the members of one group; `items` are all, as the caller has them. */
typedef mc_error *write_file(sqlite_cache *cache, mc_handle *handle, const mc_path_groups *groups, int group,
                             const void *items, mc_ctx *ctx);

static mc_error *
write_files(sqlite_cache *cache, const char *const *paths, int count, bool client_named, write_file *write_one,
            const void *items, mc_ctx *ctx)
{
    const mc_path_groups groups = mc_path_groups_of(paths, count, ctx->pool);
    for (int i = 0; i < groups.count; i++) {
        mc_handle *handle;
        MC_TRY(acquire_writer(&handle, cache, paths[groups.first[i]], client_named, ctx));
        mc_error *error = write_one(cache, handle, &groups, i, items, ctx);
        mc_handle_release(handle, error == MC_OK);
        MC_TRY(error);
    }
    return MC_OK;
}

static void
forget_sqlite_tile(const sqlite_cache *cache, const char *path, const mc_tile_key *key, mc_ctx *ctx)
{
    mc_memory_key memory_key;
    mc_memory_key_build(&memory_key, cache->identity, path, key);
    mc_memory_forget(&memory_key, ctx);
    mc_memory_written(ctx->process == NULL ? NULL : ctx->process->memory, path);
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
    MC_TRY(write_files(cache, paths, count, count > 0 && tiles[0].key.client_named, put_into_file, tiles, ctx));
    for (int i = 0; i < count; i++)
        forget_sqlite_tile(cache, paths[i], &tiles[i].key, ctx);
    return MC_OK;
}

mc_error *
mc_sqlite_remove_tile(const sqlite_cache *cache, mc_handle *handle, const mc_tile_key *key, apr_pool_t *pool)
{
    return cache->remove_tile != NULL ? cache->remove_tile(handle, cache, key, pool)
                                      : mc_sqlite_run(handle, cache->remove, key, NULL, pool);
}

mc_error *
mc_sqlite_remove(mc_cache *base, const mc_tile_key *key, mc_ctx *ctx)
{
    return mc_sqlite_remove_all(base, key, 1, ctx);
}

/* The tiles of one file, in one transaction. */
static mc_error *
remove_from_file(sqlite_cache *cache, mc_handle *handle, const mc_path_groups *groups, int group, const void *items,
                 mc_ctx *ctx)
{
    const mc_tile_key *keys = items;
    MC_TRY(mc_sqlite_run(handle, "BEGIN IMMEDIATE", NULL, NULL, ctx->pool));
    for (int i = groups->first[group]; i >= 0; i = groups->next[i])
        MC_TRY(mc_sqlite_remove_tile(cache, handle, &keys[i], ctx->pool));
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
mc_sqlite_change(sqlite_cache *cache, const mc_tile_key *keys, int count, mc_sqlite_work *work, const void *items,
                 mc_ctx *ctx)
{
    const char **paths = apr_palloc(ctx->pool, sizeof(*paths) * (size_t)(count + 1));
    MC_TRY(locate_all(paths, cache, keys, count, ctx));
    MC_TRY(write_files(cache, paths, count, count > 0 && keys[0].client_named, work, items, ctx));
    for (int i = 0; i < count; i++)
        if (paths[i] != NULL)
            forget_sqlite_tile(cache, paths[i], &keys[i], ctx);
    return MC_OK;
}

mc_error *
mc_sqlite_remove_all(mc_cache *base, const mc_tile_key *keys, int count, mc_ctx *ctx)
{
    return mc_sqlite_change((sqlite_cache *)base, keys, count, remove_from_file, keys, ctx);
}

const mc_cache_ops mc_cache_sqlite = {
    MC_KIND("sqlite3", mc_sqlite_keys, sqlite_cache_from_config, "Tiles in SQLite files."),
    .sample = "<dbfile>{folder}/sample.sqlite3</dbfile>",
    MC_SQLITE_OPS,
};
