/* A look at a raster. Part of the module mapcache-gdal.so. */
#ifndef MC_SOURCE_GDAL_GDAL_INSPECT_H
#define MC_SOURCE_GDAL_GDAL_INSPECT_H

#include "source/gdal/gdal_warp.h"

/* The operation `inspect` of mc_gdal_ops. */
mc_opening_look mc_gdal_inspect;

#endif
