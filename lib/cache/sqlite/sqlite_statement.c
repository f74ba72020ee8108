/* Statements of the caches in SQLite files: parameters by their names, and statements that give no rows. */
#include <string.h>

#include "cache/sqlite/sqlite_base.h"
#include "grid/tile_id.h"

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
    if (strcmp(name, "tile_id") == 0)
        return sqlite3_bind_int64(statement, at,
                                  (sqlite3_int64)mc_tile_id(key->z,
                                                            (uint32_t)mc_grid_from_west(key->grid, key->z, key->x),
                                                            (uint32_t)mc_grid_flip_y(key->grid, key->z, key->y)));
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
    if (strcmp(name, "hash") == 0 && binds != NULL)
        return sqlite3_bind_int64(statement, at, binds->hash);
    if (strcmp(name, "made") == 0 && binds != NULL && binds->made != 0)
        return sqlite3_bind_int64(statement, at, apr_time_sec(binds->made));
    if (strcmp(name, "image") == 0 && binds != NULL)
        return sqlite3_bind_int64(statement, at, binds->image);
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
