/* The operations of the module with OGR (mapcache-gdal.so) that read features. */
#ifndef MC_VECTOR_OGR_OGR_READER_H
#define MC_VECTOR_OGR_OGR_READER_H

#include "vector/feature/feature.h"

/* An open file, of one thread at a time. */
typedef struct mc_ogr_file mc_ogr_file;

/* What a file says of its layer; lives as long as the file is open. */
typedef struct mc_ogr_about {
    const char *driver;
    const char *srs; /* "EPSG:2056" or WKT; NULL: none */
    bool has_bounds; /* they are known without a look at all features, or the features are kept */
    mc_extent bounds;
    bool indexed; /* features of a box are found without a look at all of them */
    bool kept;    /* the features are kept in memory from one map to the next */
    const mc_field *fields;
    int field_count;
} mc_ogr_about;

/* A row: its geometry as WKB, and its values in the order in which they were asked for. */
typedef mc_error *mc_ogr_visitor(void *baton, int64_t id, const void *wkb, size_t size, const char *const *values);

typedef struct mc_ogr_ops {
    /* Registers OGR's drivers, once in a process. */
    void (*start)(void);

    /* Takes the file out of those that wait, if it has not changed, else opens it, for reading only.
     * MC_ERR_UNAVAILABLE: there is no such file; MC_ERR_CONFIG: it is none of these kinds, or has no such layer. */
    mc_error *(*open)(mc_ogr_file **file, const char *path, const char *table, mc_ctx *ctx, apr_pool_t *pool);
    const mc_ogr_about *(*about)(const mc_ogr_file *file);

    /* Visits all features whose box meets `box` (in the CRS of the data), in an order that does not depend on it.
     * `fields`: numbers of the wanted fields; -1: null. An error of the visitor ends the reading and comes back. */
    mc_error *(*read)(mc_ogr_file *file, const mc_extent *box, const int *fields, int field_count,
                      mc_ogr_visitor *visit, void *baton, mc_ctx *ctx, apr_pool_t *pool);

    /* Lets the file wait for the next map if `keep`, else closes it. */
    void (*close)(mc_ogr_file *file, bool keep);
} mc_ogr_ops;

/* The module's symbol. */
#define MC_OGR_SYMBOL "mc_ogr_reader_ops"
extern const mc_ogr_ops mc_ogr_reader_ops;

#endif
