/*
 * Of a process: tiles that have gone out although they are old are drawn anew by threads behind the answers. What is
 * asked for most comes first. A metatile is drawn once, by one of all processes and hosts that have a locker in common.
 */
#ifndef MC_TILESET_REFRESH_H
#define MC_TILESET_REFRESH_H

#include "mapcache/tileset.h"

typedef struct mc_refreshes mc_refreshes;

/* At most `threads`, started when there is something to do. `process` and `log` live longer. */
mc_refreshes *mc_refreshes_create(int threads, mc_process *process, const mc_log *log);

/* Ends the threads; what is being drawn is finished, what waits is dropped. NULL is ignored. */
void mc_refreshes_destroy(mc_refreshes *refreshes);

/* How many metatiles wait to be drawn, or are being drawn. */
int mc_refreshes_waiting(mc_refreshes *refreshes);

/* Does the work for one tile, on a thread of its own. *busy: somebody else does it, so that it is to be looked at again
 * after a while. Errors are known to those who ask for the tile. */
typedef mc_error *mc_refresh_work(bool *busy, const mc_tile_request *wanted, const mc_tile_key *key, mc_ctx *ctx,
                                  apr_pool_t *pool);

/*
 * Has the work done later, unless it waits already under that name; then it counts one more. All but the tileset, its
 * link and its grid is copied. `key` or `wanted` may be NULL, and `work` gets what is given. False: the request has no
 * owner that keeps its tileset (ctx->owner), or the process has no threads for it.
 */
bool mc_refresh_later(const char *name, mc_refresh_work *work, const mc_tile_request *wanted, const mc_tile_key *key,
                      mc_ctx *ctx);

#endif
