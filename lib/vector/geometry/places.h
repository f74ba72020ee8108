/* The points of a geometry at which graphics stand. */
#ifndef MC_VECTOR_GEOMETRY_PLACES_H
#define MC_VECTOR_GEOMETRY_PLACES_H

#include "vector/geometry/geometry.h"

/* The part of a feature's geometry that is drawn. */
typedef enum mc_geometry_part {
    MC_PART_WHOLE,
    MC_PART_CENTROID, /* one point of it, for areas and lines */
    MC_PART_INSIDE,   /* one point that is inside of an area for certain */
    MC_PART_START,
    MC_PART_END,
    MC_PART_MIDDLE, /* of lines: half way */
    MC_PART_VERTICES,
    MC_PART_BOUNDARY, /* areas as lines */
    MC_PART_POINTS,   /* the points of the geometry: nothing of lines and areas */
} mc_geometry_part;

/*
 * The points of the part `part` of a geometry. MC_PART_WHOLE gives one point for lines and areas (OGC 05-077r4, 11.3):
 * the point half way along the longest line; the centroid of areas where the centroid is inside, else a point inside.
 */
void mc_places_find(mc_shape *places, const mc_geometry *geometry, mc_geometry_part part);

#endif
