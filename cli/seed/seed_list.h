/* Lists of tiles that a run works on instead of walking. */
#ifndef MC_CLI_SEED_LIST_H
#define MC_CLI_SEED_LIST_H

#include <stdio.h>

#include "mapcache/seed.h"

typedef enum mc_seed_list_kind {
    MC_LIST_FAILED, /* "x,y,z" as --log-failed writes them: rows from the grid's origin */
    MC_LIST_TILES,  /* "z/x/y" of osm2pgsql, "x y z" of render_list: rows from the north */
} mc_seed_list_kind;

/*
 * Visits the metatile of each tile of the list; one that holds the tile of the line before, or of another one not long
 * ago, only once. Lines that are no tiles of the area's grid and zooms are named on standard error and counted in *bad.
 * False when a visit ended it. Whether the file could be read to its end, ferror() says.
 */
bool mc_seed_list_visit(FILE *in, const char *name, mc_seed_list_kind kind, const mc_seed_area *area,
                        mc_seed_visit *visit, void *baton, int64_t *bad);

/* Of all that a list says, which is then read from its start. False where that cannot be: it is no file. */
bool mc_seed_list_hash(uint64_t *hash, FILE *in);

#endif
