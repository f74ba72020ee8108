/* Looking at a raster in a child process. Part of the module mapcache-gdal.so. */
#ifndef MC_SOURCE_GDAL_GDAL_INSPECT_H
#define MC_SOURCE_GDAL_GDAL_INSPECT_H

#include "source/gdal/gdal_warp.h"

/* The operation `inspect` of mc_gdal_ops. */
void mc_gdal_inspect(mc_gdal_findings *findings, const mc_gdal_raster *raster, apr_interval_time_t within,
                     apr_pool_t *pool);

#endif
