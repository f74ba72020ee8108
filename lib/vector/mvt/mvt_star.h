/* Rings that are told to be valid polygons by a glance: those of which one point inside sees all. */
#ifndef MC_VECTOR_MVT_MVT_STAR_H
#define MC_VECTOR_MVT_MVT_STAR_H

#include "vector/geometry/shape.h"

/*
 * Whether a shape is one outer ring (of positive area, MVT 2.1, 4.3.4.4) that turns at each vertex and is seen whole
 * from the middle of its box. Such a ring touches itself nowhere, so that mc_mvt_clean_rings, mc_mvt_mend and
 * mc_mvt_order_rings would leave the ring as it is. False says nothing: the ring may be valid all the same.
 */
bool mc_mvt_is_star(const mc_shape *shape);

#endif
