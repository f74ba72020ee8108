/* What a run of the seeder would visit, without doing it: counts by level, and an estimate of bytes from what is
 * stored. */
#ifndef MC_CLI_SEED_DRY_H
#define MC_CLI_SEED_DRY_H

#include "mapcache/seed.h"
#include "mapcache/server.h"

enum { MC_SEED_DRY_LEVELS = 256, MC_SEED_SAMPLES = 200 };

typedef struct mc_seed_dry {
    const mc_seed_area *area;
    const mc_seed_task *task;
    int64_t expected; /* metatiles; the samples are spread over them */

    mc_ctx ctx;
    mc_runtime *runtime;
    int64_t visited, metatiles[MC_SEED_DRY_LEVELS], tiles[MC_SEED_DRY_LEVELS];
    int64_t asked, stored, bytes; /* of the samples */
} mc_seed_dry;

mc_error *mc_seed_dry_begin(mc_seed_dry *dry, const mc_config *config, const mc_log *log, apr_pool_t *pool) MC_CHECKED;
bool mc_seed_dry_visit(void *baton, int z, int x, int y);

/* Writes the table, or one object of JSON, to standard output. */
void mc_seed_dry_end(mc_seed_dry *dry, bool json);

#endif
