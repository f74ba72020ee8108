/*
 * Seeding: filling, refreshing, emptying or copying the tiles of an area, metatile by metatile, with any number of
 * threads or processes (docs/seeding.md). Options and progress lines belong to the command line, not to the engine.
 */
#ifndef MAPCACHE_SEED_H
#define MAPCACHE_SEED_H

#include <stdio.h>

#include "mapcache/tileset.h"

/* TRANSFER copies a metatile by its first tile. COPY copies each tile; COMPARE holds each tile against its copy. MARK
 * marks stored tiles as old (lib/tileset/stored/mark_stored.h). The first three stand in the order of
 * `mapcache seed --mode`. */
typedef enum mc_seed_mode {
    MC_SEED_FILL,
    MC_SEED_DELETE,
    MC_SEED_TRANSFER,
    MC_SEED_COPY,
    MC_SEED_COMPARE,
    MC_SEED_MARK
} mc_seed_mode;

/* The area of a walk. Tiles are counted from the grid's origin. */
typedef struct mc_seed_area {
    const mc_grid *grid;
    int minzoom, maxzoom;        /* inclusive */
    const mc_tile_range *limits; /* by zoom level; rounded outwards to metatile borders by the walk */
    int columns, rows;           /* tiles in a metatile */

    const struct mc_seed_region *region; /* lib/seed/region.h: only metatiles that meet it; NULL: all metatiles */
    bool outside;                        /* only metatiles that do not meet the region */
} mc_seed_area;

typedef enum mc_seed_order { MC_SEED_DOWN, MC_SEED_LEVELS, MC_SEED_HILBERT } mc_seed_order;

/* Called for each metatile, named by its lowest tile. False ends the walk. */
typedef bool mc_seed_visit(void *baton, int z, int x, int y);

/*
 * Visits each metatile of the area once, in an order:
 *   MC_SEED_LEVELS   level after level, x inner, y outer
 *   MC_SEED_DOWN     each metatile of the first level, followed by those under it, down to the last level; also where
 *                    resolutions are not halved from level to level
 *   MC_SEED_HILBERT  level after level along Hilbert's curve of the whole level, so that neighbours come close together
 * Memory does not grow with the number of metatiles. False when a visit ended the walk.
 */
bool mc_seed_walk(const mc_seed_area *area, mc_seed_order order, mc_seed_visit *visit, void *baton);

/* How many metatiles a walk visits, without walking where whole blocks lie inside; INT64_MAX at most. */
int64_t mc_seed_count(const mc_seed_area *area);

/*
 * The same in bounded time. The count is exact as long as at most `looks` blocks of metatiles have to be compared with
 * the region. Beyond that the rest is an estimate by the border of the region so far. Memory grows with `looks`.
 */
int64_t mc_seed_estimate(const mc_seed_area *area, int64_t looks);

/* Whether the metatile that begins with this tile is one that a walk visits. */
bool mc_seed_wanted(const mc_seed_area *area, int z, int x, int y);

/* The tiles of each level that an extent (units of the CRS) touches, without tolerance. By level of the grid, in
 * `pool`. */
const mc_tile_range *mc_seed_limits(const mc_grid *grid, const mc_extent *extent, apr_pool_t *pool);

/* The task for each metatile. Nothing in it is copied: all of it must outlive the task. */
typedef struct mc_seed_task {
    mc_seed_mode mode;
    mc_tileset *tileset;
    const mc_grid_link *link;
    const char *const *values;       /* of the tileset's dimensions */
    mc_tileset *target;              /* of a transfer, a copy, a comparison */
    const mc_grid_link *target_link; /* of a transfer the same grid; else one without a mc_grid_difference */
    bool convert;                    /* a copy has the target's image format, whatever the tile had */
    /* Of a copy between grids of different tiles: the stored tiles that those of `tileset` and `link`, which are the
     * target's, are drawn from, with the same dimensions. NULL: tiles are copied as they are. */
    mc_tileset *drawn_from;
    const mc_grid_link *drawn_link;
    bool force;                 /* do not look whether the tile exists */
    apr_time_t older;           /* only tiles stored before then; 0: any */
    const apr_table_t *headers; /* for {Header} in origin headers, or NULL */
} mc_seed_task;

typedef enum mc_seed_outcome { MC_SEED_DONE, MC_SEED_SKIPPED, MC_SEED_FAILED } mc_seed_outcome;

/* What the time of a worker goes into. */
#define MC_SEED_PARTS(X)                                                                                               \
    X(ORIGIN, "origin", "asking the source: HTTP, or reading features, which are painted while they come")             \
    X(DECODE, "decode", "decoding what the source has sent")                                                           \
    X(DRAW, "draw", "everything else: drawing, warping, cutting into tiles")                                           \
    X(ENCODE, "encode", "encoding tiles")                                                                              \
    X(STORE, "store", "looking into the cache, writing to it, committing")                                             \
    X(WAIT, "waiting", "for orders, for locks, between attempts, and while the origin is let alone")

typedef enum mc_seed_part {
#define X(part, name, meaning) MC_SEED_##part,
    MC_SEED_PARTS(X)
#undef X
        MC_SEED_PART_COUNT
} mc_seed_part;

/* The outcome of one metatile. Stored tiles are committed before the result is reported. */
typedef struct mc_seed_result {
    int64_t number; /* of its order, from 0 */
    mc_seed_outcome outcome;
    int z, x, y;
    int tiles, kept; /* tiles that were copied (or are equal), and that were there before; tiles -1: nobody counted */
    float seconds[MC_SEED_PART_COUNT]; /* by part, of all threads that took part; the time of a commit belongs to one
                                        * of its metatiles */
    char message[480];                 /* of a failure; cut */
} mc_seed_result;

/* Acts on the metatile of result->z, x, y. COPY and COMPARE look at each of its tiles, all others decide by the first
 * one (docs/reference/services.md 9.2). The outcome is DONE or SKIPPED; an error means failed. */
mc_error *mc_seed_act(mc_seed_result *result, const mc_seed_task *task, mc_ctx *ctx) MC_CHECKED;

/*
 * The workers. process_open makes the handles and connections of a worker process, or those of the one process of all
 * threads; it is called after the fork. `report` is called in the thread that calls mc_seed_submit, mc_seed_poll and
 * mc_seed_finish.
 */
typedef struct mc_seed_worker_pool mc_seed_worker_pool;

typedef struct mc_seed_plan {
    mc_seed_task task;
    int workers;         /* 1..1000 */
    bool processes;      /* workers are processes, not threads */
    double thread_delay; /* seconds between the first orders of one thread and of the next */
    int retries;         /* how often a failed metatile is tried again, after pauses that grow to a second */
    double rate;         /* metatiles per second over all workers; 0: as fast as it goes */
    bool backoff;        /* fewer workers ask the origin when it slows down or fails */
    const mc_log *log;
    mc_error *(*process_open)(mc_process **process, void *baton, apr_pool_t *pool);
    void (*process_close)(mc_process *process, void *baton);
    void (*report)(void *baton, const mc_seed_result *result);
    void (*idle)(void *baton); /* called about twice a second while the caller waits */
    void *baton;
} mc_seed_plan;

/* MC_ERR_LIMIT where the system gives no threads, processes or pipes; *worker_pool is NULL then, and nothing is left
 * behind.
 */
mc_error *mc_seed_worker_pool_start(mc_seed_worker_pool **worker_pool, const mc_seed_plan *plan,
                                    apr_pool_t *pool) MC_CHECKED;

/*
 * Hands out one metatile. Waits for the rate, and while enough metatiles for a commit of every worker are under way.
 * `stop` (may be NULL): once *stop is not 0 the wait ends, and no metatile is handed out. MC_ERR_IO when a worker
 * process has died.
 */
mc_error *mc_seed_submit(mc_seed_worker_pool *worker_pool, int z, int x, int y, const volatile int *stop,
                         apr_pool_t *pool) MC_CHECKED;

/* Reports the results that have come. Without a result, waits at most so many milliseconds for the first one.
 * *outstanding: the metatiles that are still under way. MC_ERR_IO as above. */
mc_error *mc_seed_poll(int *outstanding, mc_seed_worker_pool *worker_pool, int milliseconds,
                       apr_pool_t *pool) MC_CHECKED;

/* How many metatiles can be handed out now without waiting for one that is under way. */
int mc_seed_room(const mc_seed_worker_pool *worker_pool);

/* The number of workers that may work now: fewer than all while the origin is slow or fails. */
int mc_seed_awake(const mc_seed_worker_pool *worker_pool);

/*
 * Cancels metatiles that no worker has begun. Metatiles that still wait for an origin or a database after a second are
 * given up. Neither have results.
 */
void mc_seed_cancel(mc_seed_worker_pool *worker_pool);

/* Waits for what is under way and ends the workers. */
mc_error *mc_seed_finish(mc_seed_worker_pool *worker_pool, apr_pool_t *pool) MC_CHECKED;

#endif
