/* One run of the seeder: what the options and the configuration make of it. */
#ifndef MC_CLI_SEED_SETUP_H
#define MC_CLI_SEED_SETUP_H

#include "mapcache/server.h"
#include "seed_options.h"

/* What is to be done where; without what only lasts as long as the work. */
typedef struct mc_seed_setup {
    apr_pool_t *pool;
    mc_seed_options options;
    const mc_config *config;
    mc_tileset *tileset;
    mc_seed_area area;
    mc_seed_order order;
    mc_seed_task task;
    bool nothing; /* the area has no features: there is nothing to do */
} mc_seed_setup;

/* From setup->options to the rest. NULL, or what is wrong. */
const char *mc_seed_setup_make(mc_seed_setup *setup);

/* area->limits and area->region, from the options, once grid and zooms are known. NULL, or what is wrong. */
const char *mc_seed_setup_area(mc_seed_setup *setup);

/* The file that the tiles are taken from, or NULL. */
const char *mc_seed_setup_list(const mc_seed_setup *setup);

/* Of everything that decides which metatiles come in which order. `list`: a hash of what the file of tiles says. */
uint64_t mc_seed_setup_hash(const mc_seed_setup *setup, uint64_t list);

#endif
