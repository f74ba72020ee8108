/* What building a region and asking it share. */
#ifndef MC_SEED_REGION_PRIVATE_H
#define MC_SEED_REGION_PRIVATE_H

#include <math.h>

#include "seed/region.h"

/*
 * A region of `count` vertices, x and y in turn, each joined to the next one by an edge, but for those beside a vertex
 * that is no number (mc_region_is_gap). `areal` vertices of areas, which lie to the left of their edges, then those of
 * lines and points; a point is an edge of no length. The vertices stay the caller's, and must outlive the region.
 */
mc_seed_region *mc_region_create(const double *xy, size_t areal, size_t count, apr_pool_t *pool);

static inline bool
mc_region_is_gap(const double *vertex)
{
    return isnan(vertex[0]);
}

#endif
