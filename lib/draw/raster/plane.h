/* Memory of planes, which is all zero whenever nobody uses it: kept from map to map, so that it need not be cleared. */
#ifndef MC_DRAW_RASTER_PLANE_H
#define MC_DRAW_RASTER_PLANE_H

#include <stdbool.h>
#include <stddef.h>

#include "mapcache/error.h"

/* `size` zero bytes, until `pool` is cleared. *dirty (of the pool's life) says then whether they are zero no more. */
void *mc_plane_acquire(size_t size, const bool *dirty, apr_pool_t *pool);

#endif
