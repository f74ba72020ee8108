/* The front of all lockers: a lock is taken within the deadline, with a span, and given back once. */
#include "lock/locker.h"

#include <apr_strings.h>
#include <string.h>

#include "base/clock.h"
#include "mapcache/trace.h"

struct mc_lock {
    mc_locker *locker;
    void *held;
    mc_ctx *ctx; /* of whoever took the lock: whoever gives the lock back is the same one */
};

static mc_error *
acquire_lock(mc_lock **lock, bool *waited, mc_locker *locker, const char *name, apr_time_t until, mc_ctx *ctx,
             apr_pool_t *pool)
{
    MC_SPAN_AS(span, ctx, "mapcache_locker_acquire");
    *waited = false;
    mc_lock *taken = apr_pcalloc(pool, sizeof(*taken));
    taken->locker = locker;
    taken->ctx = ctx;
    mc_error *error = locker->ops->acquire(&taken->held, waited, locker, name, until, ctx, pool);
    if (error != MC_OK) {
        mc_span_note(&span, "ERROR");
        return error;
    }
    *lock = taken;
    return MC_OK;
}

mc_error *
mc_locker_acquire(mc_lock **lock, bool *waited, mc_locker *locker, const char *name, mc_ctx *ctx, apr_pool_t *pool)
{
    apr_interval_time_t most = (apr_interval_time_t)(locker->timeout * APR_USEC_PER_SEC);
    return acquire_lock(lock, waited, locker, name, mc_clock_now() + mc_ctx_remaining(ctx, most), ctx, pool);
}

mc_error *
mc_locker_try(mc_lock **lock, mc_locker *locker, const char *name, mc_ctx *ctx, apr_pool_t *pool)
{
    bool busy;
    *lock = NULL;
    mc_error *error = acquire_lock(lock, &busy, locker, name, 0, ctx, pool);
    return error != MC_OK && error->kind == MC_ERR_UNAVAILABLE ? MC_OK : error;
}

void
mc_lock_release(mc_lock *lock)
{
    if (lock == NULL || lock->locker == NULL)
        return;
    lock->locker->ops->release(lock->locker, lock->held, lock->ctx);
    lock->locker = NULL;
}

void
mc_locker_inspect(const mc_locker *locker, const mc_node *at, mc_diagnostics *diagnostics, apr_pool_t *pool)
{
    if (locker->ops->inspect != NULL)
        locker->ops->inspect(locker, at, diagnostics, pool);
}

mc_error *
mc_locker_try_any(mc_locker *locker, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_lock *lock;
    MC_TRY(mc_locker_try(&lock, locker, "mapcache check", ctx, pool));
    mc_lock_release(lock);
    return MC_OK;
}

mc_error *
mc_locker_reach(mc_locker *locker, mc_ctx *ctx, apr_pool_t *pool)
{
    return locker->ops->reach == NULL ? MC_OK : locker->ops->reach(locker, ctx, pool);
}

double
mc_locker_timeout(const mc_locker *locker)
{
    return locker->timeout;
}

mc_error *
mc_locker_busy(apr_pool_t *pool)
{
    return mc_error_create(pool, MC_ERR_UNAVAILABLE, "another process has been holding the lock for too long");
}
