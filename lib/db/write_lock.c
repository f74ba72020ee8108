/* The queue of those who write to a file. A mutex alone cannot be waited for by a clock that nobody sets in a way that
 * ThreadSanitizer follows (pthread_mutex_clocklock), a condition can. */
#include "db/write_lock.h"

#include "base/clock.h"

void
mc_write_lock_init(mc_write_lock *lock)
{
    pthread_condattr_t attributes;
    pthread_mutex_init(&lock->mutex, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&lock->given, &attributes);
    pthread_condattr_destroy(&attributes);
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
    struct timespec until = { (time_t)apr_time_sec(end), (long)apr_time_usec(end) * 1000 };
    int status = 0;
    pthread_mutex_lock(&lock->mutex);
    while (lock->taken && status == 0)
        status = pthread_cond_timedwait(&lock->given, &lock->mutex, &until);
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
