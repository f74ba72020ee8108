/* The place of an image: world files and GeoTIFF tags. */
#ifndef MC_INGEST_RASTER_GEOREFERENCE_H
#define MC_INGEST_RASTER_GEOREFERENCE_H

#include <stddef.h>
#include <stdint.h>

#include "mapcache/error.h"

/*
 * The six numbers of a world file: size of a pixel in x, rotation in y, rotation in x, size in y (negative where north
 * is up), x and y of the centre of the first pixel. *affine as in mc_raster_info. MC_ERR_CORRUPT names the line.
 */
mc_error *mc_world_file_parse(double affine[6], const char *text, size_t size, apr_pool_t *pool) MC_CHECKED;

/* The tags of a GeoTIFF (OGC 19-008r4, 7), as they stand in the file; NULL and 0 where it has none. */
typedef struct mc_geotiff_tags {
    const double *scale;     /* ModelPixelScaleTag */
    const double *tiepoints; /* ModelTiepointTag */
    const double *matrix;    /* ModelTransformationTag */
    const uint16_t *keys;    /* GeoKeyDirectoryTag */
    size_t scale_count, tiepoint_count, matrix_count, key_count;
} mc_geotiff_tags;

/*
 * *found: the tags say where the image lies, and *affine is filled; *epsg is the code of the CRS, 0 where it has none.
 * MC_ERR_CORRUPT for tags that contradict each other.
 */
mc_error *mc_geotiff_read(bool *found, double affine[6], int *epsg, const mc_geotiff_tags *tags,
                          apr_pool_t *pool) MC_CHECKED;

#endif
