/* Geometry as databases and files send it, read straight into pixels of a map. */
#ifndef MC_FEATURE_GEOMETRY_H
#define MC_FEATURE_GEOMETRY_H

#include <stddef.h>

#include "feature/shape.h"
#include "mapcache/error.h"

/* A feature's geometry, by what it is made of: a collection may fill all three. */
typedef struct mc_geometry {
    mc_shape shapes[3]; /* by mc_shape_kind */
    int srid;           /* of EWKB; 0: it does not say */
} mc_geometry;

void mc_geometry_clear(mc_geometry *geometry);
void mc_geometry_free(mc_geometry *geometry);
bool mc_geometry_is_empty(const mc_geometry *geometry);

/* Bounds of all its points in 1/256 pixel; false without any. */
bool mc_geometry_bounds(const mc_geometry *geometry, int32_t *minx, int32_t *miny, int32_t *maxx, int32_t *maxy);

/*
 * Reads WKB, in ISO's form or PostGIS' extended one, of either byte order; Z and M are passed over (OGC 06-103r4, 8.2;
 * ISO/IEC 13249-3). What is left of a geometry with a vertex that is not finite: nothing of that ring or line.
 * MC_ERR_CORRUPT for what is truncated or no WKB or nested too deep, MC_ERR_NOT_BUILT for curves and surfaces,
 * MC_ERR_LIMIT for too many points.
 */
mc_error *mc_wkb_read(mc_geometry *geometry, const void *bytes, size_t size, const mc_lattice *lattice,
                      apr_pool_t *pool) MC_CHECKED;

/* The same for tiny well-known binary, as ST_AsTWKB makes it. */
mc_error *mc_twkb_read(mc_geometry *geometry, const void *bytes, size_t size, const mc_lattice *lattice,
                       apr_pool_t *pool) MC_CHECKED;

/* Decimals of TWKB whose steps are at most a tenth of a pixel of that size (units of the CRS), -7 to 7: an error of at
 * most a twentieth of a pixel. */
int mc_twkb_precision(double pixel);

#endif
