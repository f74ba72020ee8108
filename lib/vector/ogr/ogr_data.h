/* GeoPackage, FlatGeobuf and GeoJSON files as data of a layer, read by OGR in the module mapcache-gdal.so. */
#ifndef MC_VECTOR_OGR_OGR_DATA_H
#define MC_VECTOR_OGR_OGR_DATA_H

#include "mapcache/config.h"
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

/* For `mapcache check`: complains, as warnings, of what is wrong with the file, and what would be better another way.
 * `names`: attributes that are asked for. None of it refuses the configuration: files may come, or be made better, at
 * any time. */
void mc_ogr_inspect(mc_diagnostics *diagnostics, const mc_node *at, const mc_ogr_config *config, const char *layer,
                    const apr_array_header_t *names, apr_pool_t *pool);

#endif
