/* Each content once. A hash finds candidates, their bytes decide. */
#include "cache/sqlite/deduplicate.h"

#include <apr_strings.h>

#include "base/hash.h"

/* Whole or not at all: a file that has something in it is left as it is. Places have no rowid, as they have no blobs:
 * the index is the table. */
const char mc_dedup_create[] =
    "BEGIN IMMEDIATE;"
    "CREATE TABLE IF NOT EXISTS images(id integer PRIMARY KEY, hash integer, data blob);"
    "CREATE INDEX IF NOT EXISTS images_by_hash ON images(hash);"
    "CREATE TABLE IF NOT EXISTS places(tileset text, grid text, dim text, z integer, x integer, y integer,"
    " image integer NOT NULL, ctime integer, PRIMARY KEY(tileset, grid, dim, z, x, y)) WITHOUT ROWID;"
    "CREATE VIEW IF NOT EXISTS tiles AS SELECT places.tileset AS tileset, places.grid AS grid, places.x AS x,"
    " places.y AS y, places.z AS z, images.data AS data, places.dim AS dim,"
    " datetime(places.ctime, 'unixepoch') AS ctime FROM places LEFT JOIN images ON images.id = places.image;"
    "CREATE TRIGGER IF NOT EXISTS tiles_insert INSTEAD OF INSERT ON tiles BEGIN"
    " INSERT INTO images(data) VALUES(NEW.data);"
    " INSERT OR REPLACE INTO places(tileset, grid, dim, z, x, y, image, ctime) VALUES(NEW.tileset, NEW.grid, NEW.dim,"
    " NEW.z, NEW.x, NEW.y, last_insert_rowid(), CAST(strftime('%s', NEW.ctime) AS integer)); END;"
    "CREATE TRIGGER IF NOT EXISTS tiles_delete INSTEAD OF DELETE ON tiles BEGIN"
    " DELETE FROM places WHERE tileset = OLD.tileset AND grid = OLD.grid AND dim = OLD.dim AND z = OLD.z"
    " AND x = OLD.x AND y = OLD.y; END;"
    "COMMIT";

const char mc_dedup_remove[] =
    "DELETE FROM places WHERE (tileset, grid, dim, z, x, y) IN (SELECT tileset, grid, dim, z, x, y FROM places"
    " WHERE tileset IS :tileset AND grid IS :grid AND dim IS :dim AND z IS :z LIMIT 2000)";
const char mc_dedup_unused[] =
    "SELECT coalesce(sum(length(data)), 0) FROM images WHERE id NOT IN (SELECT image FROM places)";
const char mc_dedup_tidy_up[] = "DELETE FROM images WHERE id NOT IN (SELECT image FROM places)";

const char mc_dedup_content[] = "SELECT image FROM places WHERE tileset = :tileset AND grid = :grid AND dim = :dim"
                                " AND z = :z AND x = :x AND y = :y";
const char mc_dedup_remove_content[] = "DELETE FROM images WHERE id = CAST(:key AS integer)"
                                       " AND NOT EXISTS(SELECT 1 FROM places WHERE image = CAST(:key AS integer))";
const char mc_dedup_index[] = "CREATE INDEX IF NOT EXISTS places_by_image ON places(image)";

/* The first column of a statement's only row, or -1. */
static mc_error *
find_number(int64_t *number, mc_handle *handle, const char *sql, const sqlite_binds *binds, apr_pool_t *pool)
{
    sqlite3_stmt *statement;
    *number = -1;
    MC_TRY(mc_handle_statement(&statement, handle, sql, pool));
    MC_TRY(mc_sqlite_bind(statement, handle, NULL, binds, pool));
    int code = sqlite3_step(statement);
    if (code == SQLITE_ROW)
        *number = sqlite3_column_int64(statement, 0);
    mc_error *error = code == SQLITE_ROW || code == SQLITE_DONE
                          ? MC_OK
                          : mc_handle_error(handle, "a tile store cannot be written", pool);
    sqlite3_reset(statement);
    return error;
}

mc_error *
mc_dedup_put(mc_handle *handle, const mc_tile_key *key, const sqlite_binds *tile, apr_pool_t *pool)
{
    sqlite_binds binds = *tile;
    binds.hash = (int64_t)mc_hash64(binds.data, binds.size, 0);
    MC_TRY(
        find_number(&binds.image, handle, "SELECT id FROM images WHERE hash = :hash AND data = :data", &binds, pool));
    if (binds.image < 0) {
        MC_TRY(mc_sqlite_run(handle, "INSERT INTO images(hash, data) VALUES(:hash, :data)", NULL, &binds, pool));
        binds.image = sqlite3_last_insert_rowid(mc_handle_db(handle));
    }
    return mc_sqlite_run(handle,
                         "INSERT OR REPLACE INTO places(tileset, grid, dim, z, x, y, image, ctime)"
                         " VALUES(:tileset, :grid, :dim, :z, :x, :y, :image,"
                         " coalesce(:made, CAST(strftime('%s', 'now') AS integer)))",
                         key, &binds, pool);
}

mc_error *
mc_dedup_put_picture(const char **id, mc_handle *handle, const void *data, size_t size, apr_pool_t *pool)
{
    sqlite_binds binds = { .data = data, .size = size };
    int64_t same;
    binds.id = *id = apr_psprintf(pool, "=%016" APR_UINT64_T_HEX_FMT "%016" APR_UINT64_T_HEX_FMT,
                                  mc_hash64(data, size, 0), mc_hash64(data, size, 1));
    MC_TRY(mc_sqlite_run(handle, "INSERT OR IGNORE INTO images(tile_id, tile_data) VALUES(:key, :data)", NULL, &binds,
                         pool));
    if (sqlite3_changes(mc_handle_db(handle)) > 0)
        return MC_OK;
    MC_TRY(find_number(&same, handle, "SELECT tile_data = :data FROM images WHERE tile_id = :key", &binds, pool));
    if (same != 1)
        *id = NULL;
    return MC_OK;
}
