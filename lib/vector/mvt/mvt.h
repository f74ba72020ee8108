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

/* An encoded tile. */
typedef struct mc_mvt_result {
    mc_buf *packed; /* attached to the pool of mc_mvt_finish */
    int64_t features, dropped;
    size_t bytes; /* before compression */
} mc_mvt_result;

/* A block of columns x rows empty tiles, each with room for `layers` layers, until `pool` is cleared. */
mc_mvt *mc_mvt_create(const mc_mvt_options *options, int columns, int rows, int layers, apr_pool_t *pool);

/*
 * The pixel grid of a block: pixels of it are 256 units of a tile (so that steps of mc_shape are whole units). The
 * block's upper left tile is at `column` and `row`, counted to the right and down from the upper left tile of the
 * level. (x0, y0) is the upper left corner of the level's upper left tile; width and height are those of a tile in
 * units of the CRS.
 */
mc_pixel_grid mc_mvt_pixel_grid(const mc_mvt_options *options, double x0, double y0, double width, double height,
                                int column, int row);

/* Begins a layer: features that are visited from now on belong to the layer `name`. `fields` describe the features'
 * values and live as long as the block. `ids`: the features' numbers are written. */
void mc_mvt_layer(mc_mvt *mvt, const char *name, const mc_field *fields, int count, bool ids);

/* The x0 of the pixel grid of features that are where the data has them; of others, which are read for the other side
 * of the antimeridian (vector/feature/wrap.h), it differs. In a tile that has a feature from both sides, only the one
 * that is where the data has it keeps its number. Not called: all features are. */
void mc_mvt_set_origin(mc_mvt *mvt, double x0);

/* An mc_feature_visitor; the block is its baton. The features' geometry is in the pixel grid of the block. Each tile of
 * the block is the same to the last bit as a tile that is made alone. MC_ERR_UNAVAILABLE when time is up, MC_ERR_LIMIT
 * without memory. */
mc_error *mc_mvt_visit(void *mvt, const mc_feature *feature, mc_ctx *ctx) MC_CHECKED;

/*
 * Adds the layers of an encoded tile to a tile of the block, counted from the upper left one, as they are: what the
 * budget of bytes leaves is that of features. They count as features, and none of them is left out. MC_ERR_UPSTREAM:
 * the bytes are no tile (vector/mvt/mvt_parts.h) or are more than the budget; MC_ERR_LIMIT as of mc_mvt_visit.
 */
mc_error *mc_mvt_add_encoded(mc_mvt *mvt, int column, int row, const void *bytes, size_t size,
                             apr_pool_t *pool) MC_CHECKED;

/* How many features a tile of the block shows so far, counted from the upper left one. */
int mc_mvt_count(const mc_mvt *mvt, int column, int row);

/* Whether mc_mvt_visit or mc_mvt_add_encoded failed because the tiles of the block together need too much memory. A
 * smaller block may succeed. */
bool mc_mvt_crowded(const mc_mvt *mvt);

/* A tile of the block, counted from the upper left one. Without any features it has no bytes before compression.
 * MC_ERR_UPSTREAM: two of its layers have the same name. Once all features are there, several threads may finish a tile
 * each. */
mc_error *mc_mvt_finish(mc_mvt_result *result, const mc_mvt *mvt, int column, int row, mc_ctx *ctx,
                        apr_pool_t *pool) MC_CHECKED;

/* A tile without anything in it, which any client takes: gzip, whatever others are packed with. In `pool`. */
mc_error *mc_mvt_empty(mc_buf **gzip, apr_pool_t *pool) MC_CHECKED;

#endif
