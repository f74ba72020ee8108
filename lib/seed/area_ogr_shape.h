/* Inside mapcache-gdal.so: the geometry of an area, kept to be cut by boxes. */
#ifndef MC_SEED_AREA_OGR_SHAPE_H
#define MC_SEED_AREA_OGR_SHAPE_H

#include <ogr_api.h>

#include "seed/area_private.h"

mc_seed_shape *mc_seed_shape_begin(apr_pool_t *pool);

/* Adds a copy of a polygon, a line or a point; nothing of other types. */
void mc_seed_shape_add(mc_seed_shape *shape, OGRGeometryH geometry, OGRwkbGeometryType type);

/* Unites the polygons. MC_ERR_CORRUPT where that fails. */
mc_error *mc_seed_shape_finish(mc_seed_shape *shape, apr_pool_t *pool) MC_CHECKED;

/* mc_seed_shape_cut. */
mc_error *mc_seed_shape_part(const char **json, mc_extent *bounds, const mc_seed_shape *shape, const mc_extent *box,
                             apr_pool_t *pool) MC_CHECKED;

#endif
