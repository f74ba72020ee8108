/* Vector tiles (Mapbox Vector Tile Specification 2.1), made of features as they are read. */
#ifndef MC_FEATURE_MVT_H
#define MC_FEATURE_MVT_H

#include "feature/feature.h"
#include "mapcache/image.h"

typedef struct mc_mvt mc_mvt;

enum { MC_MVT_LAYERS = 256 /* of one tile, at most */ };

/* What came of a tile. */
typedef struct mc_mvt_result {
    mc_buf *gzip; /* attached to the pool of mc_mvt_finish */
    int64_t features, dropped;
    size_t bytes; /* before compression */
} mc_mvt_result;

/* An empty tile, until `pool` is cleared. */
mc_mvt *mc_mvt_create(const mc_mvt_options *options, apr_pool_t *pool);

/*
 * The lattice of a tile: pixels of it are 256 units of the tile (so that steps of mc_shape are whole units). The tile
 * is the one at `column` and `row`, counted from the upper left tile of the level to the right and down; (x0, y0) is
 * that one's upper left corner, width and height are a tile's in units of the CRS.
 */
mc_lattice mc_mvt_lattice(const mc_mvt_options *options, double x0, double y0, double width, double height, int column,
                          int row);

/* What is taken from now on is a layer of that name. `fields`, of the features' values, live as long as the tile.
 * ids: the features' numbers are written. */
void mc_mvt_layer(mc_mvt *mvt, const char *name, const mc_field *fields, int count, bool ids);

/* An mc_feature_taker; the tile is its baton. Geometry is in that lattice. MC_ERR_UNAVAILABLE when time is up. */
mc_error *mc_mvt_take(void *mvt, const mc_feature *feature, mc_ctx *ctx) MC_CHECKED;

/* The tile. Without any features it has no bytes before compression. */
mc_error *mc_mvt_finish(mc_mvt_result *result, mc_mvt *mvt, mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

/* A tile without anything in it, as it is stored: gzip. In `pool`. */
mc_error *mc_mvt_empty(mc_buf **gzip, apr_pool_t *pool) MC_CHECKED;

#endif
