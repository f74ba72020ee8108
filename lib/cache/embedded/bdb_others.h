/* Programs that have a Berkeley DB environment open and take no turns (bdb_turn.h): MapCache, db5.3_stat. */
#ifndef MC_CACHE_EMBEDDED_BDB_OTHERS_H
#define MC_CACHE_EMBEDDED_BDB_OTHERS_H

#include "cache/embedded/embedded.h"

#define MC_BDB_TURNS "mapcache.turns" /* who has the environment open and takes turns has this file open, too */
#define MC_BDB_REGION "__db.001"      /* who has the environment open has this file mapped */

typedef struct mc_bdb_other {
    long process;
    const char *program; /* as the kernel names it */
} mc_bdb_other;

/* Whether there is one, as far as /proc tells: of processes of other users it tells only root. */
bool mc_bdb_find_other(mc_bdb_other *other, const mc_embedded_place *place, apr_pool_t *pool);

#endif
