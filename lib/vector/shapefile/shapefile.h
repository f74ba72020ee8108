/* Shapefiles as data of a layer. */
#ifndef MC_VECTOR_SHAPEFILE_SHAPEFILE_H
#define MC_VECTOR_SHAPEFILE_SHAPEFILE_H

#include "vector/feature/feature.h"

typedef struct mc_shapefile_config {
    const char *path;     /* of the .shp */
    const char *srs;      /* of its coordinates; NULL: the .prj says it, else that of the map */
    const char *encoding; /* of its table; NULL: the .cpg or the table says it */
} mc_shapefile_config;

/*
 * The data of a layer in a shapefile. Nothing is opened before the first map; a file that is replaced is opened anew
 * with the next one. The configuration is copied, its texts are not.
 */
mc_feature_data *mc_shapefile_create(const mc_shapefile_config *config, const char *layer, apr_pool_t *pool);

#endif
