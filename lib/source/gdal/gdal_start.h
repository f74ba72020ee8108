/* What the files of the module mapcache-gdal.so share. */
#ifndef MC_SOURCE_GDAL_GDAL_START_H
#define MC_SOURCE_GDAL_GDAL_START_H

#include "source/gdal/gdal_warp.h"

/* Registers GDAL's drivers, once in a process. */
void mc_gdal_start(void);

/* The operation `inspect` of mc_gdal_ops. */
void mc_gdal_inspect(mc_gdal_findings *findings, const mc_gdal_raster *raster, apr_interval_time_t within,
                     apr_pool_t *pool);

#endif
