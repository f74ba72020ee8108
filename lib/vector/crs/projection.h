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
 * what PROJ reads (WKT, also ESRI's). NULL, and no error, where both are the same. MC_ERR_CONFIG for a CRS that PROJ
 * does not know or cannot connect, MC_ERR_UNAVAILABLE where the module is not installed.
 */
mc_error *mc_projection_open(mc_projection **projection, const char *from, const char *to, apr_pool_t *pool) MC_CHECKED;

/* In place, x and y in turn. What cannot be transformed becomes HUGE_VAL. */
void mc_projection_points(const mc_projection *projection, double *xy, size_t count);

/* How many units of the second CRS a unit of the first one is, about: by their lengths on the equator. 0 where points
 * are transformed by a formula, in a few nanoseconds each. */
double mc_projection_ratio(const mc_projection *projection);

/* The box around a box of the first CRS in the second, or back (`inverse`). Over the antimeridian: all longitudes.
 * False where there is none. */
bool mc_projection_box(mc_extent *box, const mc_projection *projection, bool inverse);

/* How much x grows on the way around the globe: 360 for CRSs of degrees, its length for those that are Mercator's or of
 * rectangular degrees. 0 for all others: their maps have edges. */
double mc_projection_turn(const char *srs);

/* Whether one CRS is transformed into the other by formula; x of what lies beyond a world is then beyond it as well. */
bool mc_projection_is_formula(const char *from, const char *to);

/* Whether two names are of one CRS as far as can be told without PROJ: 1 yes, 0 no, -1 unknown. */
int mc_projection_same(const char *a, const char *b);

#endif
