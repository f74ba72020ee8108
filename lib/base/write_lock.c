/* The queue of those who write to a file. A mutex alone cannot be waited for by a clock that nobody sets in a way that
 * ThreadSanitizer follows (pthread_mutex_clocklock), a condition can. */
#include "base/write_lock.h"

#include "base/clock.h"
#include "base/semaphore.h"
#include "base/wait.h"

/* Of a request without a deadline. */
#define WAIT_MOST apr_time_from_sec(600)

void
mc_write_lock_init(mc_write_lock *lock)
{
    pthread_mutex_init(&lock->mutex, NULL);
    mc_clock_condition(&lock->given);
    lock->taken = false;
}

void
mc_write_lock_destroy(mc_write_lock *lock)
{
    pthread_cond_destroy(&lock->given);
    pthread_mutex_destroy(&lock->mutex);
}

bool
mc_write_lock_take(mc_write_lock *lock, apr_time_t until, mc_ctx *ctx)
{
    mc_wait_end end = MC_WAIT_READY;
    pthread_mutex_lock(&lock->mutex);
    while (lock->taken && end == MC_WAIT_READY)
        end = mc_wait_condition(&lock->given, &lock->mutex, until, ctx);
    bool free = !lock->taken;
    lock->taken = true; /* by whomever */
    pthread_mutex_unlock(&lock->mutex);
    return free;
}

bool
mc_write_lock_await(mc_write_lock *lock, mc_ctx *ctx)
{
    mc_semaphore *semaphore = mc_semaphore_yield(ctx);
    bool taken = mc_write_lock_take(lock, mc_clock_now() + mc_ctx_remaining(ctx, WAIT_MOST), ctx);
    mc_semaphore_resume(semaphore, ctx);
    return taken;
}

void
mc_write_lock_give(mc_write_lock *lock)
{
    pthread_mutex_lock(&lock->mutex);
    lock->taken = false;
    pthread_cond_signal(&lock->given);
    pthread_mutex_unlock(&lock->mutex);
}
