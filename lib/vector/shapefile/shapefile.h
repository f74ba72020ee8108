/* Shapefiles as data of a layer. */
#ifndef MC_VECTOR_SHAPEFILE_SHAPEFILE_H
#define MC_VECTOR_SHAPEFILE_SHAPEFILE_H

#include "vector/feature/feature.h"

typedef struct mc_shapefile_config {
    const char *path;     /* of the .shp */
    const char *srs;      /* of the coordinates; NULL: that of the .prj, else that of the map */
    const char *encoding; /* of the table; NULL: that of the .cpg, else that of the table's header */
} mc_shapefile_config;

/*
 * The data of a layer in a shapefile. Nothing is opened before the first map; a file that was replaced is opened again
 * for the next map. The configuration is copied, its texts are not.
 */
mc_feature_data *mc_shapefile_create(const mc_shapefile_config *config, const char *layer, apr_pool_t *pool);

/* The configuration of such data; NULL: it is of another kind. */
const mc_shapefile_config *mc_shapefile_config_of(const mc_feature_data *data);

#endif
