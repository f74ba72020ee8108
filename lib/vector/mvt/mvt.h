/* Vector tiles (Mapbox Vector Tile Specification 2.1), made of features as they are read: one, or a block of them. */
#ifndef MC_VECTOR_MVT_MVT_H
#define MC_VECTOR_MVT_MVT_H

#include "mapcache/image.h"
#include "vector/feature/feature.h"

typedef struct mc_mvt mc_mvt;

enum {
    MC_MVT_LAYERS = 256, /* of one tile, at most */
    MC_MVT_TILES = 256,  /* that are made together, at most */
};

/* What came of a tile. */
typedef struct mc_mvt_result {
    mc_buf *gzip; /* attached to the pool of mc_mvt_finish */
    int64_t features, dropped;
    size_t bytes; /* before compression */
} mc_mvt_result;

/* A block of so many empty tiles, each with room for so many layers, until `pool` is cleared. */
mc_mvt *mc_mvt_create(const mc_mvt_options *options, int columns, int rows, int layers, apr_pool_t *pool);

/*
 * The pixel grid of a block: pixels of it are 256 units of a tile (so that steps of mc_shape are whole units). Its
 * upper left tile is the one at `column` and `row`, counted from the upper left tile of the level to the right and
 * down; (x0, y0) is that one's upper left corner, width and height are a tile's in units of the CRS.
 */
mc_pixel_grid mc_mvt_pixel_grid(const mc_mvt_options *options, double x0, double y0, double width, double height,
                                int column, int row);

/* What is taken from now on is a layer of that name. `fields`, of the features' values, live as long as the block.
 * ids: the features' numbers are written. */
void mc_mvt_layer(mc_mvt *mvt, const char *name, const mc_field *fields, int count, bool ids);

/* An mc_feature_visitor; the block is its baton. Geometry is in that pixel grid. Each tile gets what it would get
 * alone, to the last bit. MC_ERR_UNAVAILABLE when time is up, MC_ERR_LIMIT without memory. */
mc_error *mc_mvt_visit(void *mvt, const mc_feature *feature, mc_ctx *ctx) MC_CHECKED;

/* Whether taking ended because so many tiles together need too much memory: fewer at a time may do. */
bool mc_mvt_crowded(const mc_mvt *mvt);

/* A tile of the block, counted from the upper left one. Without any features it has no bytes before compression. */
mc_error *mc_mvt_finish(mc_mvt_result *result, mc_mvt *mvt, int column, int row, mc_ctx *ctx,
                        apr_pool_t *pool) MC_CHECKED;

/* A tile without anything in it, as it is stored: gzip. In `pool`. */
mc_error *mc_mvt_empty(mc_buf **gzip, apr_pool_t *pool) MC_CHECKED;

#endif
