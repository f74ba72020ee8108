/* Which tiles a file has: learnt with one statement, so that what it lacks need not be looked for. */
#ifndef MC_CACHE_SQLITE_COVERAGE_H
#define MC_CACHE_SQLITE_COVERAGE_H

#include <apr_pools.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mapcache/grid.h"

/* Files with more tiles than this keep their coverage to themselves. */
enum { MC_COVERAGE_TILES = 4096, MC_COVERAGE_LEVELS = 64 };

typedef struct mc_coverage_tile {
    int z, x, y;
} mc_coverage_tile;

/* Read-only once made, from malloc(): free() ends it. */
typedef struct mc_coverage mc_coverage;

/* Of all tiles that there are (in any order, also several times); z 0..63. NULL when a number is out of bounds. */
mc_coverage *mc_coverage_create(const mc_coverage_tile *tiles, int count);

/* False: there is certainly no such tile. */
bool mc_coverage_may_have(const mc_coverage *coverage, int z, int x, int y);

/* False: there is certainly no tile of level z in that range (columns and rows, the last ones excluded). */
bool mc_coverage_may_touch(const mc_coverage *coverage, int z, int minx, int miny, int maxx, int maxy);

/* The tiles of a level as a box; false: there are none, and the box is empty. */
bool mc_coverage_box(mc_tile_range *box, const mc_coverage *coverage, int z);

/* For a file: writes what mc_coverage_read reads to `bytes`, unless that is NULL. Returns how many bytes. */
size_t mc_coverage_write(uint8_t *bytes, const mc_coverage *coverage);

/* NULL: these bytes, which may be anybody's, are no coverage. */
mc_coverage *mc_coverage_read(const uint8_t *bytes, size_t size);

size_t mc_coverage_bytes(const mc_coverage *coverage);

/* What a tile is found by in a table of tiles: names of columns, by MC_TILE_Z and so on. */
enum { MC_TILE_Z, MC_TILE_X, MC_TILE_Y, MC_TILE_TILESET, MC_TILE_GRID, MC_TILE_DIM, MC_TILE_COLUMNS };
extern const char *const mc_tile_columns[MC_TILE_COLUMNS];

/* A plain select of `data` (and its ctime) from the table `tiles` where columns equal the parameters of the same names;
 * x, y and z are among them. */
typedef struct mc_plain_get {
    unsigned columns;     /* bits 1 << MC_TILE_Z and so on */
    bool timed, raw_time; /* it gives the time: as seconds; or as it stands */
    bool unindexed;       /* no index may be used */
} mc_plain_get;

/* False where a statement is any other. */
bool mc_plain_get_read(mc_plain_get *get, const char *statement);

/*
 * The statement that gives z, x and y of all tiles that `get` can find, at most MC_COVERAGE_TILES + 1 rows; NULL where
 * that is not certain. Certain is only a plain get (docs/reference/design.md 3.2).
 */
const char *mc_coverage_statement(const char *get, apr_pool_t *pool);

#endif
