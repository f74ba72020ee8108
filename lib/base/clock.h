/* Durations, rates, deadlines and waits: a clock that nobody sets. apr_time_now() is for dates that people or files
 * compare. */
#ifndef MC_BASE_CLOCK_H
#define MC_BASE_CLOCK_H

#include <apr_time.h>
#include <pthread.h>
#include <stdbool.h>
#include <time.h>

/* Microseconds since some moment; never falls, whatever happens to the time of day. */
static inline apr_time_t
mc_clock_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (apr_time_t)now.tv_sec * APR_USEC_PER_SEC + now.tv_nsec / 1000;
}

/* Makes a condition that can be waited for by this clock. */
static inline void
mc_clock_condition(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
}

/* Waits for such a condition, its mutex held. False once the moment `until` has passed. */
static inline bool
mc_clock_wait(pthread_cond_t *condition, pthread_mutex_t *mutex, apr_time_t until)
{
    const struct timespec limit = { (time_t)apr_time_sec(until), (long)apr_time_usec(until) * 1000 };
    return pthread_cond_timedwait(condition, mutex, &limit) == 0;
}

#endif
