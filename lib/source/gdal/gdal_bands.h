/*
 * Which bands of a raster make the picture, and how their values become colours. Part of the module mapcache-gdal.so.
 */
#ifndef MC_SOURCE_GDAL_GDAL_BANDS_H
#define MC_SOURCE_GDAL_GDAL_BANDS_H

#include <gdal.h>

#include "source/gdal/gdal_pool.h"
#include "source/gdal/gdal_warp.h"

typedef struct mc_gdal_picture {
    int numbers[MC_GDAL_COLORS]; /* of the bands of the colours */
    int colors;                  /* 1: gray, palette or ramp, 3: RGB */
    int alpha;                   /* number of the band, 0: none */
    GDALColorTableH palette;     /* or NULL */
    bool measured;               /* values are not bytes that are colours: they are warped as numbers, `scale` counts */
    bool estimated;              /* nothing says which values are black and white: the bands are asked */
    double scale[MC_GDAL_COLORS][2];
} mc_gdal_picture;

/* NULL, or why the raster's bands make no picture. */
const char *mc_gdal_picture_find(mc_gdal_picture *picture, GDALDatasetH raster, const mc_gdal_raster *wanted,
                                 apr_pool_t *pool);

/* Which values are black and white, where that has to be asked of the raster. NULL, or why that cannot be said. */
const char *mc_gdal_picture_scale(mc_gdal_picture *picture, mc_gdal_dataset *dataset, apr_pool_t *pool);

/* NULL, or why the raster lies nowhere: it has no CRS, no position. */
const char *mc_gdal_place_missing(GDALDatasetH raster);

/* From what GDAL wrote into `pixels`, and of `measured` pictures into `values` (band after band), to premultiplied
 * pixels; finds out their opacity on the way. */
void mc_gdal_pixels_finish(mc_pixels *pixels, const float *values, const mc_gdal_picture *picture,
                           const mc_gdal_raster *raster);

#endif
