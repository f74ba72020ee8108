/* Geometry as databases and files send it, read straight into pixels of a map. */
#ifndef MC_VECTOR_GEOMETRY_GEOMETRY_H
#define MC_VECTOR_GEOMETRY_GEOMETRY_H

#include <stddef.h>

#include "mapcache/error.h"
#include "mapcache/grid.h"
#include "vector/geometry/shape.h"

/* A feature's geometry, by what it is made of: a collection may fill all three. */
typedef struct mc_geometry {
    mc_shape shapes[3];   /* by mc_shape_kind */
    int srid;             /* of EWKB; 0: it does not say */
    int64_t vertex_count; /* that were read, before any was left out */
} mc_geometry;

void mc_geometry_clear(mc_geometry *geometry);
void mc_geometry_free(mc_geometry *geometry);
bool mc_geometry_is_empty(const mc_geometry *geometry);

/* For readers: ends the part or ring that began at the point `begin`. Nothing is left of it where a vertex of it is not
 * finite. MC_ERR_LIMIT where the shape has become too large. */
mc_error *mc_geometry_end_part(mc_shape *shape, int begin, bool finite, bool hole, apr_pool_t *pool) MC_CHECKED;

/* Bounds of all its points in 1/256 pixel; false without any. */
bool mc_geometry_bounds(const mc_geometry *geometry, int32_t *minx, int32_t *miny, int32_t *maxx, int32_t *maxy);

/*
 * Reads WKB, in ISO's form or PostGIS' extended one, of either byte order; Z and M are passed over (OGC 06-103r4, 8.2;
 * ISO/IEC 13249-3). Curves become lines of chords; surfaces and networks of triangles their faces. What is left of a
 * geometry with a vertex that is not finite: nothing of that ring or line. MC_ERR_CORRUPT for what is truncated or no
 * WKB or nested too deep, MC_ERR_NOT_BUILT for types that are not known, MC_ERR_LIMIT for too many points.
 */
mc_error *mc_wkb_read(mc_geometry *geometry, const void *bytes, size_t size, const mc_pixel_grid *pixel_grid,
                      apr_pool_t *pool) MC_CHECKED;

/*
 * Bytes of the WKB that `bytes` begins with, of a point, line or polygon or several of one kind; 0: it is none, or
 * truncated. *meets: its bounds and the box, in the same units and order, have a place in common.
 */
size_t mc_wkb_measure(bool *meets, const void *bytes, size_t size, const mc_extent *box);

/* Bounds of such WKB, in its units; false: it is none, or has no vertex. */
bool mc_wkb_bounds(mc_extent *bounds, const void *bytes, size_t size);

/* As mc_wkb_read for tiny well-known binary, as ST_AsTWKB makes it. */
mc_error *mc_twkb_read(mc_geometry *geometry, const void *bytes, size_t size, const mc_pixel_grid *pixel_grid,
                       apr_pool_t *pool) MC_CHECKED;

/* As mc_wkb_bounds for such TWKB of a point, line or polygon that has neither a box nor a size of its own. */
bool mc_twkb_bounds(mc_extent *bounds, const void *bytes, size_t size);

/* Most decimals that TWKB can have, and ST_AsTWKB gives. */
#define MC_TWKB_DIGITS 7

/* Decimals of TWKB whose steps are at most a tenth of a pixel of that size (units of the CRS), so that no coordinate is
 * more than a twentieth of a pixel off: -7 to MC_TWKB_DIGITS; more than that where no TWKB is so exact. */
int mc_twkb_digits(double pixel);

#endif
