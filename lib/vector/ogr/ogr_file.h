/* Inside of the reader of OGR's files: an open file, and one reading of it. */
#ifndef MC_VECTOR_OGR_OGR_FILE_H
#define MC_VECTOR_OGR_OGR_FILE_H

#include <gdal.h>
#include <stdlib.h>

#include "base/idle.h"
#include "vector/ogr/ogr_reader.h"

/* Rows between two looks at the deadline. */
enum { MC_OGR_BETWEEN_CHECKS = 256 };

/* The features of a file (ogr_memory.h). */
typedef struct mc_ogr_memory mc_ogr_memory;

struct mc_ogr_file {
    mc_idle_thing idle;
    apr_pool_t *pool; /* a root pool of its own */
    const char *path, *table;
    mc_ogr_memory *memory; /* there is no dataset then */
    GDALDatasetH dataset;
    OGRLayerH layer;
    const char *index; /* the name of GeoPackage's table of boxes; NULL: none, or another format */
    mc_ogr_about about;
    int batch_rows; /* rows of a batch of columns */
    uint8_t *wkb;
    size_t wkb_room;
};

/* One reading. Which fields OGR ignores and which features it gives is set at the layer. */
typedef struct mc_ogr_reading {
    mc_ogr_file *file;
    const mc_extent *box;
    bool filter; /* OGR does not look at boxes: it is done here, where the deadline is kept between two features */
    const char *where; /* of a GeoPackage: which rows, in SQL; NULL: all */
    const int *fields;
    int field_count;
    const char **values;
    mc_ogr_visitor *visit;
    void *baton;
    mc_ctx *ctx;
    apr_pool_t *scratch, *pool;
} mc_ogr_reading;

/* Each feature as an object of OGR's. */
mc_error *mc_ogr_read_features(mc_ogr_reading *r) MC_CHECKED;

/* Features in columns, many at a time (Arrow's C data interface). *read is false, and nothing has been visited, where
 * the file's format or a wanted field is not given in columns whose values read as those of features do. */
mc_error *mc_ogr_read_columns(bool *read, mc_ogr_reading *r) MC_CHECKED;

/* What OGR has said since CPLErrorReset, as an error; MC_OK: nothing was wrong. */
mc_error *mc_ogr_said(apr_pool_t *pool) MC_CHECKED;

#endif
