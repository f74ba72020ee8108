/* What the parts of `mapcache purge` share. */
#ifndef MC_CLI_PURGE_H
#define MC_CLI_PURGE_H

#include "cli/seed/seed_options.h"
#include "mapcache/server.h"
#include "mapcache/upkeep.h"

typedef struct mc_purge_options {
    mc_seed_options seed; /* tileset, area, levels, dimensions, age, workers */
    bool stale, yes, dry_run, json;
} mc_purge_options;

/* Tiles of one level of a grid, in all stores and of all values of dimensions. */
typedef struct mc_purge_level {
    const char *grid;
    int z;
    int64_t tiles, bytes;
} mc_purge_level;

/* One run. */
typedef struct mc_purge {
    const mc_purge_options *options;
    bool quiet;
    mc_server *server;
    mc_tileset *tileset;
    apr_pool_t *pool;
    apr_array_header_t *levels; /* of mc_purge_level */
    apr_array_header_t *values; /* of const char *: the values of dimensions that stores have, joined by '#' */
    int64_t tiles, bytes;       /* of all levels */
    bool untold;                /* a store does not tell what its tiles belong to */
    int failures;               /* stores that could not be read or changed */
} mc_purge;

/*
 * Looks through the stores of the tileset for the groups of tiles that the options mean, and with `removing` deletes
 * these. Areas and ages are not looked at.
 */
mc_error *mc_purge_groups(mc_purge *purge, bool removing, mc_ctx *ctx) MC_CHECKED;

/* Whether the options mean that grid: also GRID@2x, the tiles for fine screens, where they name GRID. */
bool mc_purge_means_grid(const mc_purge *purge, const char *grid);

/* Set by an interrupt. */
extern volatile int mc_purge_stop;

#endif
