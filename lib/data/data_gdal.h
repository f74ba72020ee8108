/* What the module mapcache-gdal.so says of files. */
#ifndef MC_DATA_DATA_GDAL_H
#define MC_DATA_DATA_GDAL_H

#include "data/data_private.h"

typedef struct mc_data_gdal_ops {
    /* Adds the raster, or the vector layers, of `path`; see mc_data_find for errors. `part`: one of the layers, or
     * NULL. Layers have srs and extent, not their degrees; *pixel is the size of a raster's pixel. */
    mc_error *(*look)(mc_data_search *search, double *pixel, const char *path, const char *part);
} mc_data_gdal_ops;

/* The module's symbol. */
#define MC_DATA_GDAL_SYMBOL "mc_data_gdal_look_ops"
extern const mc_data_gdal_ops mc_data_gdal_look_ops;

#endif
