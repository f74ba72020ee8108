/* What building a region and asking it share. */
#ifndef MC_SEED_REGION_PRIVATE_H
#define MC_SEED_REGION_PRIVATE_H

#include "seed/region.h"

/* A directed line; areas lie to the left of theirs. Points are lines of no length. */
typedef struct mc_region_edge {
    double ax, ay, bx, by;
} mc_region_edge;

/* `areal` edges of areas, then those of lines and points up to `count`; they stay the caller's, and must outlive the
 * region. */
mc_seed_region *mc_region_create(const mc_region_edge *edges, size_t areal, size_t count, apr_pool_t *pool);

#endif
