/*
 * Spatial conditions of filters (OGC 09-026r1, 7.8): the geometry of a feature is compared with a geometry of the
 * style, in pixels of the map, snapped and thinned. A point closer than a quarter of a pixel to an edge may count as
 * being on either side of the edge.
 */
#ifndef MC_DRAW_STYLE_SPATIAL_H
#define MC_DRAW_STYLE_SPATIAL_H

#include "draw/style/style.h"

typedef enum mc_spatial_kind {
    MC_SPATIAL_INTERSECTS, /* and BBOX, whose geometry is a box */
    MC_SPATIAL_DISJOINT,
    MC_SPATIAL_WITHIN,   /* the feature in the areas of the style */
    MC_SPATIAL_CONTAINS, /* the other way round */
    MC_SPATIAL_NEARER,   /* DWithin */
    MC_SPATIAL_FARTHER,  /* Beyond */
} mc_spatial_kind;

/* A part of the style's geometry. */
typedef struct mc_spatial_part {
    mc_shape_kind kind;
    bool hole;        /* of POLYGONS */
    const double *xy; /* x first */
    int count;
} mc_spatial_part;

typedef struct mc_spatial {
    mc_spatial_kind kind;
    const char *srs; /* of its coordinates; NULL: the map's */
    const mc_spatial_part *parts;
    int part_count;
    double distance; /* NEARER, FARTHER: in metres, or in units of the map */
    bool in_metres;
} mc_spatial;

/* False for a feature that is not painted, and where the CRS of the style cannot be transformed into the CRS of the
 * map. */
bool mc_spatial_matches(const mc_spatial *spatial, const mc_feature *feature, apr_pool_t *scratch);

/* The same for two geometries in pixels; `distance` in 1/256 pixel. */
bool mc_spatial_compare(mc_spatial_kind kind, const mc_geometry *feature, const mc_geometry *other, double distance);

#endif
