/* The rows of an image that are decoded: all of a small one, a strip that moves down of a large one. */
#ifndef MC_INGEST_PYRAMID_RASTER_STRIP_H
#define MC_INGEST_PYRAMID_RASTER_STRIP_H

#include "mapcache/ingest.h"

typedef struct mc_raster_strip {
    mc_raster *raster;
    mc_pixels rows; /* a view: the rows from `first` on */
    int first;
    mc_pixels *whole; /* what it is a view of; NULL: of memory of its own */
    uint8_t *memory;
    size_t room; /* bytes */
} mc_raster_strip;

/* Opens the image again whose header `info` is. One of less than 2^24 pixels is decoded whole. */
mc_error *mc_raster_strip_open(mc_raster_strip *strip, const mc_raster_info *info, const mc_raster_options *options,
                               apr_pool_t *pool) MC_CHECKED;

/* The rows first <= row < end, and none before `first`, which never goes back. MC_ERR_LIMIT above a gigabyte. */
mc_error *mc_raster_strip_move(mc_raster_strip *strip, int first, int end, apr_pool_t *pool) MC_CHECKED;
/* What the pixels of an image take that is decoded whole; 0 for others. */
int64_t mc_raster_strip_bytes(const mc_raster_info *info);

void mc_raster_strip_close(mc_raster_strip *strip);

#endif
