/* Storing and removing tiles in SQLite files: file by file, each in one transaction. */
#include <apr_strings.h>
#include <string.h>

#include "cache/memory.h"
#include "cache/sqlite/path_groups.h"
#include "cache/sqlite/sqlite_base.h"

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
static mc_error *
write_files(sqlite_cache *cache, const char *const *paths, int count, bool client_named, mc_sqlite_work *write_one,
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
