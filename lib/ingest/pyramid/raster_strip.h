/* The decoded rows of an image: all rows of a small image, a strip of rows that moves down of a large image. */
#ifndef MC_INGEST_PYRAMID_RASTER_STRIP_H
#define MC_INGEST_PYRAMID_RASTER_STRIP_H

#include "mapcache/ingest.h"

typedef struct mc_raster_strip {
    mc_raster *raster;
    mc_pixels rows; /* a view: the rows from `first` on */
    int first;
    mc_pixels *whole; /* the image that `rows` is a view of; NULL: `rows` is a view of `memory` */
    uint8_t *memory;
    size_t room; /* bytes */
} mc_raster_strip;

/* Opens the image again whose header is `info`. An image of less than 2^24 pixels is decoded whole. */
mc_error *mc_raster_strip_open(mc_raster_strip *strip, const mc_raster_info *info, const mc_raster_options *options,
                               apr_pool_t *pool) MC_CHECKED;

/* Moves the strip to the rows first <= row < end; earlier rows are gone. `first` never goes back. MC_ERR_LIMIT above a
 * gigabyte. */
mc_error *mc_raster_strip_move(mc_raster_strip *strip, int first, int end, apr_pool_t *pool) MC_CHECKED;
/* Bytes of the pixels of an image that is decoded whole; 0 for other images. */
int64_t mc_raster_strip_bytes(const mc_raster_info *info);

void mc_raster_strip_close(mc_raster_strip *strip);

#endif
