/* Which values of a band are black and white, where nobody has said it. Part of the module mapcache-gdal.so. */
#ifndef MC_SOURCE_GDAL_GDAL_STRETCH_H
#define MC_SOURCE_GDAL_GDAL_STRETCH_H

#include <gdal.h>
#include <stdbool.h>

/*
 * The values below and above which 2 % of a sample of the band lie: of an overview of about a quarter of a million
 * pixels, or of the whole band where it is not larger than sixteen million. False: the band is larger and has no such
 * overview, or has too few different values.
 */
bool mc_gdal_stretch(double range[2], GDALRasterBandH band);

#endif
