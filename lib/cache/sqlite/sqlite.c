/* Tiles in SQLite files: the cache "sqlite3", and what mbtiles shares with it (docs/reference/configuration.md 5.3). */
#include <string.h>

#include "cache/sqlite/deduplicate.h"

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
    sqlite_binds binds = { .data = tile->data->data, .size = tile->data->size, .made = tile->made };
    if (cache->detect_blank && tile->uniform)
        binds = (sqlite_binds){ .data = blank, .size = sizeof(blank), .made = tile->made };
    bool view = false; /* a file that was there before the key keeps its table */
    if (cache->deduplicate)
        MC_TRY(mc_sqlite_has_view(&view, handle, pool));
    if (view)
        return mc_dedup_put(handle, &tile->key, &binds, pool);
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
                 " VALUES(:tileset, :grid, :x, :y, :z, :data, :dim,"
                 " coalesce(datetime(:made, 'unixepoch'), datetime('now')))";
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

/* Statements of the configuration write what time they like. */
static bool
sqlite_keeps_time(const mc_cache *base)
{
    const sqlite_cache *cache = (const sqlite_cache *)base;
    return strstr(cache->set, ":made") != NULL && strstr(cache->get, "ctime") != NULL;
}

const mc_cache_ops mc_cache_sqlite = {
    MC_KIND("sqlite3", mc_sqlite_keys, sqlite_cache_from_config, "Tiles in SQLite files."),
    .sample = "<dbfile>{folder}/sample.sqlite3</dbfile>",
    MC_SQLITE_OPS,
    .keeps_time = sqlite_keeps_time,
};
