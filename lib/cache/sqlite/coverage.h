/* Which tiles a file has: learnt with one statement, so that what it lacks need not be looked for. */
#ifndef MC_CACHE_SQLITE_COVERAGE_H
#define MC_CACHE_SQLITE_COVERAGE_H

#include <apr_pools.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Files with more tiles than this keep their coverage to themselves. */
enum { MC_COVERAGE_TILES = 4096 };

typedef struct mc_coverage_tile {
    int z, x, y;
} mc_coverage_tile;

/* Read-only once made, from malloc(): free() ends it. */
typedef struct mc_coverage mc_coverage;

/* Of all tiles that there are (in any order, also several times); z 0..63. NULL when a number is out of bounds. */
mc_coverage *mc_coverage_create(const mc_coverage_tile *tiles, int count);

/* False: there is certainly no such tile. */
bool mc_coverage_may_have(const mc_coverage *coverage, int z, int x, int y);

size_t mc_coverage_bytes(const mc_coverage *coverage);

/*
 * The statement that gives z, x and y of all tiles that `get` can find, at most MC_COVERAGE_TILES + 1 rows; NULL where
 * that is not certain. Certain is only a plain select of `data` (and its ctime) from the table `tiles` where x, y and
 * z, and perhaps tileset, grid and dim, equal the parameters of the same names (docs/reference/design.md 3.2).
 */
const char *mc_coverage_statement(const char *get, apr_pool_t *pool);

#endif
