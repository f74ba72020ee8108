/* What a run of the seeder would visit, without doing it: counts by level, and an estimate of bytes from what is
 * stored. */
#ifndef MC_CLI_SEED_DRY_H
#define MC_CLI_SEED_DRY_H

#include "mapcache/seed.h"
#include "mapcache/server.h"

enum { MC_SEED_DRY_LEVELS = 256 };

typedef struct mc_seed_dry_level {
    int64_t metatiles, tiles, stride;
    int64_t asked, stored, bytes; /* of the samples: each stride'th metatile's first tile */
} mc_seed_dry_level;

typedef struct mc_seed_dry {
    const mc_seed_area *area;
    const mc_seed_task *task;
    mc_ctx ctx;
    mc_runtime *runtime;
    apr_pool_t *pool;  /* of the run */
    mc_error *failure; /* why a store cannot be looked into; MC_OK: nothing is known against it */
    mc_seed_dry_level levels[MC_SEED_DRY_LEVELS];
} mc_seed_dry;

mc_error *mc_seed_dry_begin(mc_seed_dry *dry, const mc_config *config, const mc_log *log, apr_pool_t *pool) MC_CHECKED;
bool mc_seed_dry_visit(void *baton, int z, int x, int y);

/* Writes the table, or one object of JSON, to standard output; nothing where not all was `counted`. */
void mc_seed_dry_end(mc_seed_dry *dry, bool counted, bool json);

#endif
