/* A folder of rasters as one raster. Part of the module mapcache-gdal.so. */
#ifndef MC_SOURCE_GDAL_GDAL_MOSAIC_H
#define MC_SOURCE_GDAL_GDAL_MOSAIC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/stamp.h"

enum { MC_GDAL_MOSAIC_NAME = 64 };

/* The files of a folder that a mosaic leaves out, and what they were then. */
typedef struct mc_gdal_misfits {
    char **paths; /* to be freed by CSLDestroy; NULL: none */
    uint64_t states;
} mc_gdal_misfits;

/*
 * Where `path` is a folder: a name that GDAL opens as one raster of the rasters right in it (.tif, .tiff, .jp2)
 * in the order of their names, the last one on top; at most 10000. Made once for each state of the folder, whose stamp
 * the caller took, and each state of the misfits: files that are not what their endings say are left out (gdal_open.h).
 * False: it is no folder, or has no rasters of one CRS and kind, or one of them is just being written or cannot be
 * opened for now (GDAL has said why to the error handler).
 */
bool mc_gdal_mosaic(char name[MC_GDAL_MOSAIC_NAME], mc_gdal_misfits *misfits, const char *path, const mc_stamp *stamp);

/* False: one of them was written to (which the stamp of the folder does not tell), and is perhaps a raster now. */
bool mc_gdal_misfits_are_the_same(const mc_gdal_misfits *misfits);

#endif
