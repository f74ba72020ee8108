/* GeoPackage, FlatGeobuf and GeoJSON files as data of a layer, read by OGR in the module mapcache-gdal.so. */
#ifndef MC_VECTOR_OGR_OGR_DATA_H
#define MC_VECTOR_OGR_OGR_DATA_H

#include "vector/feature/feature.h"

typedef struct mc_ogr_config {
    const char *path;  /* of the file */
    const char *table; /* which of the file's layers; NULL: its only one */
    const char *srs;   /* of the coordinates; NULL: that of the file, else that of the map */
} mc_ogr_config;

/*
 * The data of a layer in a file. Nothing is opened before the first map; a file that was replaced is opened again for
 * the next map. The configuration is copied, its texts are not.
 */
mc_feature_data *mc_ogr_create(const mc_ogr_config *config, const char *layer, apr_pool_t *pool);

/* What is wrong with the file, for `mapcache check`: NULL, or why no map can be drawn. *advice: what would be better
 * another way, or NULL. `names`: attributes that are asked for; *missing: the first of them that is not there. */
const char *mc_ogr_inspect(const char **advice, const char **missing, const mc_ogr_config *config,
                           const apr_array_header_t *names, apr_pool_t *pool);

#endif
