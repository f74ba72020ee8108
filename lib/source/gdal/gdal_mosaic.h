/* A folder of rasters as one raster. Part of the module mapcache-gdal.so. */
#ifndef MC_SOURCE_GDAL_GDAL_MOSAIC_H
#define MC_SOURCE_GDAL_GDAL_MOSAIC_H

#include <stdbool.h>

#include "base/stamp.h"

enum { MC_GDAL_MOSAIC_NAME = 64 };

/*
 * Where `path` is a folder: a name that GDAL opens as one raster of the rasters right in it (.tif, .tiff, .jp2)
 * in the order of their names, the last one on top; at most 10000. Made once for each state of the folder, whose stamp
 * the caller took; files that are not what their endings say are left out (gdal_open.h). False: it is no folder, or has
 * no rasters of one CRS and kind (GDAL has said why to the error handler).
 */
bool mc_gdal_mosaic(char name[MC_GDAL_MOSAIC_NAME], const char *path, const mc_stamp *stamp);

#endif
