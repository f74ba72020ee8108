/*
 * Open rasters, kept between maps. Part of the module mapcache-gdal.so.
 */
#ifndef MC_SOURCE_GDAL_GDAL_POOL_H
#define MC_SOURCE_GDAL_GDAL_POOL_H

#include <gdal.h>
#include <stdbool.h>

enum { MC_GDAL_OVERVIEWS = 32 /* further overviews are not used */ };

typedef struct mc_gdal_dataset mc_gdal_dataset;

/* Registers GDAL's drivers, once in a process; before anything else. */
void mc_gdal_start(void);

/* A dataset for the calling thread alone, from the pool if `pooled`. `drivers`: those that may open it, with blanks
 * between (gdal_open.h); NULL: any. NULL: GDAL has said why to the error handler. */
mc_gdal_dataset *mc_gdal_open(const char *data, const char *drivers, bool pooled);

/* Gives a dataset back to the pool if `keep`, else closes it. */
void mc_gdal_close(mc_gdal_dataset *d, bool keep);

GDALDatasetH mc_gdal_raster_of(const mc_gdal_dataset *d);

/* Overview `level` as a dataset (below 0: the raster itself); the raster when the overview cannot be opened. */
GDALDatasetH mc_gdal_overview(mc_gdal_dataset *d, int level);

/* Least and greatest value of a band: by its statistics, else estimated of a part of its data, once for each time that
 * the raster is opened. False: it has no data. */
bool mc_gdal_range(double range[2], mc_gdal_dataset *d, int band);

/* Whether somebody has made statistics of the band. */
bool mc_gdal_has_statistics(GDALDatasetH raster, int band);

#endif
