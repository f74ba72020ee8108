/*
 * The CPU workers of a process: a persistent set, an atomic index per batch, the caller takes part
 * (docs/reference/design.md 3.6).
 */
#ifndef MC_BASE_WORKERS_H
#define MC_BASE_WORKERS_H

#include "mapcache/ctx.h"

typedef struct mc_workers mc_workers;

/* How many processors this process may use (its affinity, not what the machine has): 1 to 256. */
int mc_processors(void);

/* One job of a batch. Runs on any thread with a context and root pool of its own; results that leave it are
 * reference-counted. */
typedef mc_error *mc_task(void *baton, int index, mc_ctx *task_ctx);

/* `count` threads (0..256; 0: every batch runs on its caller). */
mc_error *mc_workers_create(mc_workers **workers, int count, apr_pool_t *pool) MC_CHECKED;
void mc_workers_destroy(mc_workers *workers); /* lets running batches finish, joins the threads */
int mc_workers_count(const mc_workers *workers);
int mc_workers_idle(const mc_workers *workers); /* a hint: threads that wait for work now */

/*
 * How many of them would find a processor free: idle ones, as long as there are more processors than threads that
 * compute. A request's thread tells that it does so by enter and leave (in pairs, on every path; not while it waits for
 * somebody). With every processor busy, a woken worker only takes time from another request.
 */
int mc_workers_spare(const mc_workers *workers);
void mc_workers_enter(mc_workers *workers); /* NULL is ignored, here and below */
void mc_workers_leave(mc_workers *workers);

/*
 * Runs job(baton, 0) ... job(baton, count - 1) and returns when all have ended; the caller runs jobs of its own batch
 * only. `helpers`: at most so many workers are woken (0: none; the caller does it all in order). After the first error
 * no further job starts; that error, copied into `pool`, is returned.
 */
mc_error *mc_workers_run(mc_workers *workers, mc_task *task, void *baton, int count, int helpers, mc_ctx *ctx,
                         apr_pool_t *pool) MC_CHECKED;

/* Whether more threads compute than there are processors: a helper that may end its work early does so. */
bool mc_workers_crowded(const mc_workers *workers);

/*
 * One job that a worker does while its owner goes on with something else. The job and `baton` live until it is joined.
 * An errand is of one thread, and may be sent again once it has been joined; `pool` outlives it.
 */
typedef struct mc_errand mc_errand;

mc_errand *mc_errand_create(mc_workers *workers, mc_task *task, void *baton, apr_pool_t *pool);
void mc_errand_send(mc_errand *errand, const mc_ctx *ctx);

/* Takes the errand back if no worker has begun it, else waits until it has ended; its error, copied into `pool`. */
mc_error *mc_errand_join(mc_errand *errand, apr_pool_t *pool) MC_CHECKED;

/* A root pool with its own allocator, for jobs, from a free list; give it back with mc_task_pool_release. */
apr_pool_t *mc_task_pool_acquire(void);
void mc_task_pool_release(apr_pool_t *pool);

#endif
