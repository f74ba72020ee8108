/* What the files of footprints share. */
#ifndef MC_CACHE_FOOTPRINT_PRIVATE_H
#define MC_CACHE_FOOTPRINT_PRIVATE_H

#include "cache/cache_base.h"
#include "cache/footprint.h"

/* A footprint of a decoded tile with one reference, the caller's. It keeps a reference to `pixels` where they are
 * mostly box; else a copy of the box. */
mc_footprint *mc_footprint_create(mc_pixels *pixels, mc_tile *tile);

/* What a footprint holds in memory, in bytes. */
size_t mc_footprint_bytes(const mc_footprint *footprint);

#endif
