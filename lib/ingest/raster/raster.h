/* The readers of the three formats. */
#ifndef MC_INGEST_RASTER_RASTER_H
#define MC_INGEST_RASTER_RASTER_H

#include <stdio.h>

#include "ingest/raster/georeference.h"
#include "mapcache/raster.h"

typedef struct mc_raster_ops {
    const char *format;
    /* Fills info (size, bands, opaque; a TIFF its position and CRS too) and state. Sizes are checked by
     * mc_raster_check_size before anything is allocated. */
    mc_error *(*open)(mc_raster *raster, apr_pool_t *pool);
    mc_error *(*rows)(mc_raster *raster, uint8_t *bgra, size_t stride, int count, apr_pool_t *pool);
    /* Decodes all rows at once, faster than row by row. NULL, or *pixels is NULL: the rows are read row by row. */
    mc_error *(*whole)(mc_pixels **pixels, mc_raster *raster, apr_pool_t *pool);
    void (*close)(mc_raster *raster); /* called once after open, also where open failed */
} mc_raster_ops;

struct mc_raster {
    const mc_raster_ops *ops;
    mc_raster_info info;
    mc_raster_options options;
    FILE *file; /* closed by mc_raster_close; libtiff opens its own */
    int64_t file_size;
    void *state;
    int row;
    bool open;
    apr_pool_t *pool;
};

extern const mc_raster_ops mc_raster_png, mc_raster_jpeg;
/* In the module "tiff". */
extern const mc_raster_ops mc_raster_tiff;

/* MC_ERR_CORRUPT with the reason; the path is put before it by raster.c. */
mc_error *mc_raster_broken(apr_pool_t *pool, const char *format, ...) MC_PRINTF(2, 3) MC_CHECKED;

/* Both sides above 0 and within the bounds of mapcache/raster.h. */
mc_error *mc_raster_check_size(int64_t width, int64_t height, apr_pool_t *pool) MC_CHECKED;

#endif
