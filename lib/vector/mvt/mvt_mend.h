/* Polygons made valid (OGC 06-103r4, 6.1.11): after simplifying and rounding a ring may touch or cross itself. */
#ifndef MC_VECTOR_MVT_MVT_MEND_H
#define MC_VECTOR_MVT_MVT_MEND_H

#include <apr_pools.h>

#include "vector/geometry/shape.h"

typedef struct mc_mvt_mender mc_mvt_mender;
mc_mvt_mender *mc_mvt_mender_create(apr_pool_t *pool);

typedef enum mc_mvt_mending {
    MC_MVT_SOUND,  /* the rings are those of valid polygons as they are */
    MC_MVT_MENDED, /* `out` has other rings, that are */
    MC_MVT_BEYOND, /* there is no memory, or the polygon would take too much work */
} mc_mvt_mending;

/*
 * Rings of polygons (outer ones of positive area, holes negative) that touch or cross become rings of the same area
 * that meet in single points only, where the area is everything that the rings run around (the non-zero rule of the
 * painter). Almost all rings are sound: that is found out first, for little time.
 */
mc_mvt_mending mc_mvt_mend(mc_shape *out, const mc_shape *in, mc_mvt_mender *mender);

/* The work of mending since this was asked last, in about what a vertex costs: for whoever looks at the clock. */
int64_t mc_mvt_mender_take_work(mc_mvt_mender *mender);

#endif
