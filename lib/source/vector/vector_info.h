/* Feature info of vector sources, shared by the files that write it. */
#ifndef MC_SOURCE_VECTOR_VECTOR_INFO_H
#define MC_SOURCE_VECTOR_VECTOR_INFO_H

#include "source/vector/vector.h"
#include "vector/crs/projection.h"

enum { MC_INFO_POINTS_MAX = 20000 /* vertices of a geometry that is written */ };

/* A layer that is asked. */
typedef struct mc_info_layer {
    const char *name;
    bool has_ids;
    const mc_field *fields;
    int field_count;
    const mc_projection *to_degrees; /* from the map's CRS to longitude and latitude; NULL: the map is in degrees */
    bool no_geometry;                /* the map's CRS cannot be transformed to degrees */
} mc_info_layer;

/* How features are written: one row for each media type. */
typedef struct mc_info_writer {
    const char *mime;
    const char *begin, *between, *end;
    bool with_geometry;
    const char *(*feature)(const mc_info_layer *layer, const mc_feature *feature, apr_pool_t *pool);
} mc_info_writer;

extern const mc_info_writer mc_info_writers[]; /* ends with a NULL mime */

/* A feature's geometry as GeoJSON in longitudes and latitudes (RFC 7946); "null" where the geometry is too long. */
const char *mc_info_geojson(const mc_info_layer *layer, const mc_feature *feature, apr_pool_t *pool);

#endif
