/* Shapefiles as data of a layer. */
#ifndef MC_FEATURE_SHAPEFILE_H
#define MC_FEATURE_SHAPEFILE_H

#include "feature/feature.h"

/*
 * The data of a layer in the shapefile at `path`, in units of the map's CRS. Nothing is opened before the first map; a
 * file that is replaced is opened anew with the next one.
 */
mc_feature_data *mc_shapefile_create(const char *path, const char *layer, apr_pool_t *pool);

#endif
