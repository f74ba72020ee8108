/*
 * Opening rasters whose names nobody has written by hand: those of a folder, of `mapcache serve` and of <data> of a
 * tileset. GDAL takes a file for what it holds, and some kinds of files name other files and addresses: a file is
 * opened only as what its ending says. Part of the module mapcache-gdal.so.
 */
#ifndef MC_SOURCE_GDAL_GDAL_OPEN_H
#define MC_SOURCE_GDAL_GDAL_OPEN_H

#include <gdal.h>
#include <stdbool.h>

/* The drivers of GDAL that may open a raster of this name, by its ending; never empty. To be freed by CSLDestroy. */
char **mc_gdal_drivers(const char *name);

/* Whether neither the file nor what GDAL reads beside it is a pipe or a device, which would be waited for. True where
 * there is nothing, too. False: GDAL's error handler was told which one. */
bool mc_gdal_is_plain(const char *name);

/*
 * The raster, by one of `drivers` only. Refused: what is no regular file, has something else beside it where GDAL looks
 * for overviews, masks and metadata, or says that its overviews are elsewhere. NULL: GDAL's error handler was told why.
 */
GDALDatasetH mc_gdal_open_as(const char *name, const char *const *drivers);

#endif
