/* The tiles of one series in a small file, without SQLite's machine: which there are, and their bytes. */
#ifndef MC_CACHE_SQLITE_BARE_TILES_H
#define MC_CACHE_SQLITE_BARE_TILES_H

#include "cache/cache_base.h"
#include "cache/sqlite/coverage.h"

/* A file that is open in a read transaction; of one thread. */
typedef struct mc_bare_tiles mc_bare_tiles;

/*
 * Opens the file for the key's tileset, grid and dimensions, as far as `get` asks for them. The caller has seen that
 * there is no -wal beside the file. NULL: the file has to be read by SQLite: its table, its index or its values are not
 * what is known here, it is large, or a writer is at work.
 */
mc_bare_tiles *mc_bare_tiles_open(const char *path, const mc_plain_get *get, const mc_tile_key *key, apr_pool_t *pool);
void mc_bare_tiles_close(mc_bare_tiles *bare); /* NULL is ignored */

/* Whether it was opened for the series of that key. */
bool mc_bare_tiles_serve(const mc_bare_tiles *bare, const mc_tile_key *key);

/* True where it is known what SQLite would give: *tile, NULL: no such row. */
bool mc_bare_tiles_get(mc_tile **tile, mc_bare_tiles *bare, const mc_tile_key *key, apr_pool_t *pool);

/* Of all tiles of the series; from malloc(). NULL where a number is no tile's. */
mc_coverage *mc_bare_tiles_coverage(const mc_bare_tiles *bare);

#endif
