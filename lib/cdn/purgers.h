/*
 * Of a process: who tells caches in front what they have to drop. A thread for each address that purges are sent to,
 * from its first purge on, with a bounded queue (purge_queue.h): whoever adds never waits. What fails is sent again,
 * with growing pauses, for as long as the process lives.
 */
#ifndef MC_CDN_PURGERS_H
#define MC_CDN_PURGERS_H

#include "cdn/cdn.h"
#include "mapcache/ctx.h"
#include "mapcache/grid.h"

typedef struct mc_purgers mc_purgers;

/* `process` and `log` live longer. */
mc_purgers *mc_purgers_create(mc_process *process, const mc_log *log);

/* Ends all threads; what waits is given up. NULL is ignored. */
void mc_purgers_destroy(mc_purgers *purgers);

/* Tiles of a level that have changed: whole metatiles of so many columns and rows. */
typedef struct mc_purged_tiles {
    const char *tileset;
    const mc_grid_link *link;
    int z;
    mc_tile_range range;
    int columns, rows;
} mc_purged_tiles;

/* Adds tiles, to be purged everywhere: `delayed` by what the caches are configured with, or now. */
void mc_purgers_add(mc_purgers *purgers, const mc_cdns *cdns, const mc_purged_tiles *tiles, bool delayed);

/* Waits until all that was added before is purged, at most until the deadline of `ctx`. False: it is not. */
bool mc_purgers_flush(mc_purgers *purgers, const mc_cdns *cdns, mc_ctx *ctx);

/* The same for all that was added, of whatever configuration: before a process ends that serves one request alone. */
bool mc_purgers_finish(mc_purgers *purgers, mc_ctx *ctx);

/* How the purges of an address go. */
typedef struct mc_purger_state {
    const char *name;   /* of the cdn */
    int waiting;        /* keys or addresses */
    apr_time_t failing; /* mc_clock_now() since when they fail; 0: they do not */
} mc_purger_state;

/* Tells of each; `visit` must not wait. NULL: there is none. */
void mc_purgers_visit(mc_purgers *purgers, void (*visit)(void *baton, const mc_purger_state *state), void *baton);

#endif
