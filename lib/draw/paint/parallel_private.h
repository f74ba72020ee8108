/* A parallel painter and its queue, shared by the thread that reads and those that help. */
#ifndef MC_DRAW_PAINT_PARALLEL_PRIVATE_H
#define MC_DRAW_PAINT_PARALLEL_PRIVATE_H

#include <pthread.h>

#include "base/workers.h"
#include "draw/paint/paint_lanes.h"
#include "draw/paint/parallel_painter.h"
#include "vector/feature/packet.h"

enum { MC_PAINT_QUEUE = 8 /* slots */, MC_PAINT_HELPERS = MC_PAINT_LANES_MAX - 1 };

typedef enum mc_slot_state {
    MC_SLOT_READY,    /* to be painted */
    MC_SLOT_PACKED,   /* to be decoded */
    MC_SLOT_DECODING, /* by some thread */
} mc_slot_state;

typedef struct mc_paint_slot {
    mc_slot_state state;        /* under the lock, once the slot is pushed */
    mc_feature_packet *packet;  /* NULL: the batches are all */
    const mc_lane_world *world; /* of the packet */
    mc_paint_batch *first, *last;
    mc_paint_batch *spare; /* batches for what comes next */
} mc_paint_slot;

/* How far a lane has come. Under the lock. */
typedef struct mc_lane_progress {
    int64_t next;          /* slot */
    mc_paint_batch *batch; /* of that slot; NULL: its first one */
    bool taken;
} mc_lane_progress;

typedef struct mc_paint_helper {
    mc_parallel_painter *parallel;
    mc_errand *errand;
    bool sent;
    bool begun, ended; /* under the lock */
} mc_paint_helper;

struct mc_parallel_painter {
    mc_packet_taker taker; /* first: what readers see */
    mc_painter *whole;
    mc_workers *workers;
    mc_ctx *ctx;
    apr_pool_t *pool;
    int64_t features, points; /* that have come, as long as they are painted alone */
    bool together;            /* features go to the queue */
    bool filling;             /* the next slot of the queue has a batch already */
    bool decodes;             /* packets have come */
    mc_paint_helper helpers[MC_PAINT_HELPERS];
    mc_paint_lanes lanes;
    pthread_mutex_t lock; /* of all below, and what is said to be under it */
    pthread_cond_t changed;
    mc_lane_progress progress[MC_PAINT_LANES_MAX];
    mc_paint_slot queue[MC_PAINT_QUEUE];
    int64_t pushed; /* slots */
    bool closed;
    mc_error *error;    /* the first one, */
    apr_pool_t *errors; /* in a root pool; NULL: none */
};

/* ---- Batches of a slot: of the thread that fills it */

void mc_paint_slot_clear(mc_paint_slot *slot);

/* False where the process has no memory for one more batch. */
bool mc_paint_slot_add(mc_paint_slot *slot, const mc_paint_lanes *lanes);
void mc_paint_slot_free(mc_paint_slot *slot);

/* ---- Under the lock, which the last two leave meanwhile */

/* The first error ends the painting. */
void mc_parallel_report(mc_parallel_painter *p, const mc_error *error);

/* The first slot that is not painted on all lanes. */
int64_t mc_parallel_oldest(const mc_parallel_painter *p);

/* Paints one batch on one lane. False: none waits. */
bool mc_parallel_paint(mc_parallel_painter *p, mc_ctx *ctx);

/* Decodes one packet of a slot before `before`. False: none waits. */
bool mc_parallel_decode(mc_parallel_painter *p, int64_t before, mc_ctx *ctx);

#endif
