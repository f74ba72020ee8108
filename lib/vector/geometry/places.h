/* The points of a geometry at which graphics stand. */
#ifndef MC_VECTOR_GEOMETRY_PLACES_H
#define MC_VECTOR_GEOMETRY_PLACES_H

#include "draw/style/style.h"

/*
 * Its points, or those that `part` says. MC_PART_WHOLE is for lines and areas one point that stands for them (OGC
 * 05-077r4, 11.3): half way along the longest line; the centroid where it is inside, else a point that is.
 */
void mc_places_find(mc_shape *places, const mc_geometry *geometry, mc_geometry_part part);

#endif
