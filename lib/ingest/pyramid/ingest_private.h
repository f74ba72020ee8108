/* An ingestion, shared by the files of this room: the plan in tiles, and the tiles under way. */
#ifndef MC_INGEST_PYRAMID_INGEST_PRIVATE_H
#define MC_INGEST_PYRAMID_INGEST_PRIVATE_H

#include "ingest/pyramid/draw.h"
#include "ingest/pyramid/partial.h"
#include "ingest/pyramid/tile_index.h"

typedef struct mc_ingest_image {
    mc_raster_info info;
    mc_image_placement placement;
    int number; /* in plan->paths */
} mc_ingest_image;

/*
 * Levels that are made from one another: images are drawn on the finest level `direct`; each level above, up to `top`,
 * is halved from the level below. There are several chains where resolutions do not halve.
 */
typedef struct mc_ingest_chain {
    int direct, top;
    mc_tile_range *ranges;     /* tiles of `direct` that each image may touch */
    mc_ingest_resample *modes; /* the way in which each image is drawn */
    mc_tile_index *tile_index; /* of `ranges` */
} mc_ingest_chain;

struct mc_ingest {
    mc_ingest_plan plan;
    apr_pool_t *pool;
    mc_ingest_image *images;
    int count;
    mc_ingest_chain *chains;
    int chain_count;
    mc_ingest_outline outline;
    mc_ingest_counts counts;
    /* The format of stored tiles: that of the tileset, but PNG without a <compression> is compressed quickly. */
    const mc_format *format;
    mc_dimension_value *dimensions;
    mc_partials *partials;
};

const mc_ingest_chain *mc_ingest_chain_of(const mc_ingest *ingest, int z);

/* The quarter of a tile in the tile above: 0 and 1 are the upper quarters from the left, 2 and 3 the lower quarters. */
int mc_ingest_quarter(const mc_grid *grid, int x, int y);

/* The number of the four tiles below a tile that are touched by an image. */
int mc_ingest_touched_below(const mc_ingest *ingest, const mc_ingest_chain *chain, int z, int x, int y);

/*
 * Finishes a tile on which all images are drawn: completes the tile from the stored tile, puts the halved tile into the
 * tile above (NULL: none), and encodes the tile. put->data has one reference, the caller's. Any thread.
 */
mc_error *mc_ingest_finish(mc_tile_write *put, const mc_ingest *ingest, mc_partial *tile, mc_partial *above,
                           mc_ctx *ctx) MC_CHECKED;

#endif
