/*
 * Transformations between coordinate reference systems, x (longitude) always first. Between degrees of WGS 84 and the
 * spherical Mercator of web maps by formula; all others by PROJ, in a module that is loaded at first use.
 */
#ifndef MC_VECTOR_CRS_PROJECTION_H
#define MC_VECTOR_CRS_PROJECTION_H

#include "mapcache/grid.h"

typedef struct mc_projection mc_projection;

/*
 * The transformation from one CRS to another until `pool` is cleared; of one thread. A CRS is "EPSG:2056", CRS:84, or
 * any text that PROJ reads (WKT, also ESRI's). NULL, and no error, where both are the same. MC_ERR_CONFIG for a CRS
 * that PROJ does not know or cannot connect, MC_ERR_UNAVAILABLE where the module is not installed.
 */
mc_error *mc_projection_open(mc_projection **projection, const char *from, const char *to, apr_pool_t *pool) MC_CHECKED;

/* Transforms points in place, x and y in turn. Points that cannot be transformed become HUGE_VAL. */
void mc_projection_points(const mc_projection *projection, double *xy, size_t count);

/* The length of a unit of the first CRS in units of the second CRS, approximately: by the lengths on the equator. 0
 * where points are transformed by a formula, in a few nanoseconds each. */
double mc_projection_ratio(const mc_projection *projection);

/* Turns a box of the first CRS into the box around it in the second CRS, or back (`inverse`). A box over the
 * antimeridian gets all longitudes. False where there is no such box. */
bool mc_projection_box(mc_extent *box, const mc_projection *projection, bool inverse);

/* A CRS as a string of PROJ 4 ("+proj=somerc ..."), with the shift of its datum where that is one of seven parameters:
 * what programs read that have no database of CRSs. NULL where PROJ has none, or is not installed. */
const char *mc_projection_formula(const char *srs, apr_pool_t *pool);

/* The growth of x on the way around the globe: 360 in CRSs of degrees, the length of the equator in CRSs of Mercator or
 * of rectangular degrees. 0 for all other CRSs: their maps have edges. */
double mc_projection_turn(const char *srs);

/* Whether one CRS is transformed into the other by formula. A point beyond the edge of the world is then beyond that
 * edge in both CRSs. */
bool mc_projection_is_formula(const char *from, const char *to);

/* Whether two names are of one CRS as far as can be told without PROJ: 1 yes, 0 no, -1 unknown. */
int mc_projection_same(const char *a, const char *b);

#endif
