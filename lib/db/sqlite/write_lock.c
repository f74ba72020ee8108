/* The queue of those who write to a file. A mutex alone cannot be waited for by a clock that nobody sets in a way that
 * ThreadSanitizer follows (pthread_mutex_clocklock), a condition can. */
#include "db/sqlite/write_lock.h"

#include "base/clock.h"

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
mc_write_lock_take(mc_write_lock *lock, apr_interval_time_t patience)
{
    apr_time_t end = mc_clock_now() + patience;
    bool early = true;
    pthread_mutex_lock(&lock->mutex);
    while (lock->taken && early)
        early = mc_clock_wait(&lock->given, &lock->mutex, end);
    bool free = !lock->taken;
    lock->taken = true; /* by whomever */
    pthread_mutex_unlock(&lock->mutex);
    return free;
}

void
mc_write_lock_give(mc_write_lock *lock)
{
    pthread_mutex_lock(&lock->mutex);
    lock->taken = false;
    pthread_cond_signal(&lock->given);
    pthread_mutex_unlock(&lock->mutex);
}
