/* Memory of planes. The memory is all zero whenever no plane uses it, and is kept from map to map: no map has to clear
 * it. */
#ifndef MC_DRAW_RASTER_PLANE_H
#define MC_DRAW_RASTER_PLANE_H

#include <stdbool.h>
#include <stddef.h>

#include "mapcache/error.h"

/* `size` zero bytes, until `pool` is cleared. By then *dirty, which lives as long as the pool, says whether the bytes
 * are no longer all zero. */
void *mc_plane_acquire(size_t size, const bool *dirty, apr_pool_t *pool);

/* Gives all planes that are kept back to the system. */
void mc_planes_forget(void);

#endif
