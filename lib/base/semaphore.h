/*
 * Lets a bounded number of threads through at a time; the others wait, without polling, in the order in which they
 * came.
 */
#ifndef MC_BASE_SEMAPHORE_H
#define MC_BASE_SEMAPHORE_H

#include "mapcache/ctx.h"

typedef struct mc_semaphore mc_semaphore;

/* `places`: how many may be inside, at least 1. */
mc_semaphore *mc_semaphore_create(int places);
void mc_semaphore_destroy(mc_semaphore *semaphore); /* nobody may be inside or wait */

/*
 * MC_ERR_UNAVAILABLE where the context's deadline passes first or its client goes; it is not inside then. MC_ERR_BUSY,
 * at once: by the pace of the line the turn would come after half of the time that is left. NULL has a place for
 * everybody. A context is inside of one semaphore at most.
 */
mc_error *mc_semaphore_acquire(mc_semaphore *semaphore, mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

/* MC_ERR_BUSY where mc_semaphore_acquire would say so now: before anything is prepared for the wait. */
mc_error *mc_semaphore_expect(mc_semaphore *semaphore, mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;
void mc_semaphore_release(mc_ctx *ctx);

/*
 * Around a wait for somebody else (a database) that may happen inside: the place is another one's meanwhile. Stepping
 * back in goes before all who have not begun, and waits for one of those inside to leave or to step out, however long.
 * Both do nothing where the context is not inside.
 */
mc_semaphore *mc_semaphore_yield(mc_ctx *ctx);
void mc_semaphore_resume(mc_semaphore *semaphore, mc_ctx *ctx);

#endif
