/* Where a raster lies. Part of the module mapcache-gdal.so. */
#ifndef MC_SOURCE_GDAL_GDAL_PLACE_H
#define MC_SOURCE_GDAL_GDAL_PLACE_H

#include <gdal.h>

#include "source/gdal/gdal_warp.h"

/* "EPSG:2056" where the CRS says that, else its WKT; NULL: there is none. */
const char *mc_gdal_crs_name(OGRSpatialReferenceH crs, apr_pool_t *pool);

/* The box around the raster's corners in its CRS, and the size of a pixel there. False: nothing says where it lies. */
bool mc_gdal_box(mc_extent *box, double *pixel, GDALDatasetH raster);

/* The operation `place` of mc_gdal_ops. */
mc_error *mc_gdal_find_place(mc_place *place, const mc_gdal_raster *raster, apr_pool_t *pool) MC_CHECKED;

#endif
