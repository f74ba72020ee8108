/* Durations, rates and waits: a clock that nobody sets. apr_time_now() is for dates that people or files compare. */
#ifndef MC_BASE_CLOCK_H
#define MC_BASE_CLOCK_H

#include <apr_time.h>
#include <time.h>

/* Microseconds since some moment; never falls, whatever happens to the time of day. */
static inline apr_time_t
mc_clock_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (apr_time_t)now.tv_sec * APR_USEC_PER_SEC + now.tv_nsec / 1000;
}

#endif
