/*
 * Lanes: bands of the rows of a map, each with a painter of its own, or the whole map with the one that it has; and
 * batches of copied features, which know by which lanes each of their features is painted.
 */
#ifndef MC_DRAW_PAINT_PAINT_LANES_H
#define MC_DRAW_PAINT_PAINT_LANES_H

#include "draw/paint/feature_batch.h"
#include "draw/paint/painter.h"

enum { MC_PAINT_LANES_MAX = 16, MC_PAINT_WORLDS_MAX = 16, MC_BATCH_FEATURES = 512 };

/* Where the features lie that a lane paints of a batch. */
typedef struct mc_lane_list {
    int count;
    uint16_t places[MC_BATCH_FEATURES];
} mc_lane_list;

/* In one block of memory with its lists and features. */
typedef struct mc_paint_batch {
    struct mc_paint_batch *next; /* of whoever has it */
    mc_feature_batch features;
    int count;
    mc_lane_list lists[]; /* of all lanes */
} mc_paint_batch;

/* The query of one world of the map, as each lane needs it. */
typedef struct mc_lane_world {
    const mc_feature_query *given;
    mc_feature_query of_lanes[];
} mc_lane_world;

typedef struct mc_paint_lane {
    mc_painter *painter;
    int top;
    mc_shape_point *points; /* of the feature that is being painted, moved */
    int room;
    apr_pool_t *root; /* NULL: it is the whole map's */
} mc_paint_lane;

typedef struct mc_paint_lanes {
    int count, rows;    /* 0: there are none so far */
    int margin;         /* rows that symbols reach over their features */
    bool leaves_bounds; /* by any number of rows, those of lines and areas */
    mc_paint_lane lanes[MC_PAINT_LANES_MAX];
    mc_lane_world *worlds[MC_PAINT_WORLDS_MAX];
    int world_count;
    apr_pool_t *pool; /* of the thread that makes lanes and worlds */
} mc_paint_lanes;

/* At most `most` lanes for the map of a painter. Lanes that have been made are to be ended, also after an error. */
mc_error *mc_paint_lanes_create(mc_paint_lanes *lanes, mc_painter *whole, int most, apr_pool_t *pool) MC_CHECKED;
void mc_paint_lanes_end(mc_paint_lanes *lanes);

/* The queries of the lanes for a world. NULL: it is one too many. */
const mc_lane_world *mc_paint_lanes_world(mc_paint_lanes *lanes, const mc_feature_query *query);

/* An empty batch of 64 KB. NULL: the process has no memory for it. To be given back with mc_scratch_release. */
mc_paint_batch *mc_paint_batch_create(const mc_paint_lanes *lanes);
void mc_paint_batch_clear(mc_paint_batch *batch, const mc_paint_lanes *lanes);

typedef enum mc_batch_add {
    MC_BATCH_ADDED,
    MC_BATCH_FULL,
    MC_BATCH_REFUSED, /* the feature is so large, or so far away, that it can be in none */
} mc_batch_add;

/* Copies a feature of `world` into a batch; any thread that has the batch. */
mc_batch_add mc_paint_batch_add(mc_paint_batch *batch, const mc_paint_lanes *lanes, const mc_lane_world *world,
                                const mc_feature *feature);

/* Paints what a lane has to paint of a batch. The lane is of one thread meanwhile. */
mc_error *mc_paint_lane_batch(mc_paint_lanes *lanes, int number, const mc_paint_batch *batch, mc_ctx *ctx) MC_CHECKED;

#endif
