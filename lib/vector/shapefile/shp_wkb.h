/* Shapes of shapefiles as well-known binary. */
#ifndef MC_VECTOR_SHAPEFILE_SHP_WKB_H
#define MC_VECTOR_SHAPEFILE_SHP_WKB_H

#include "vector/geometry/wkb_thin.h"
#include "vector/shapefile/shp.h"

/*
 * Appends a record's shape as little-endian WKB without Z and M (ESRI Shapefile Technical Description; OGC 06-103r4,
 * 8.2). Rings that run as the first one does begin a polygon each, the others are holes of the polygon before: painted
 * by the winding rule that is the shape again. False, with nothing useful appended: a null shape, or broken.
 */
bool mc_shp_to_wkb(mc_wkb_buffer *wkb, const mc_shp_record *record);

#endif
