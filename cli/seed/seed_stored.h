/* Visits what a store holds of an area instead of all that the area has: a sparse cache of the world is small. */
#ifndef MC_CLI_SEED_STORED_H
#define MC_CLI_SEED_STORED_H

#include "mapcache/seed.h"
#include "mapcache/server.h"

/* Whether the task is about stored tiles only, and their store can list those of levels down to `deepest`. */
bool mc_seed_stored_possible(const mc_seed_task *task, int deepest);

/* Visits the metatiles of the area that have stored tiles, level by level; most of them once. */
mc_error *mc_seed_stored_visit(const mc_seed_area *area, const mc_seed_task *task, const mc_config *config,
                               const mc_log *log, mc_seed_visit *visit, void *baton, apr_pool_t *pool) MC_CHECKED;

#endif
