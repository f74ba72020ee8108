/* What the micro-benchmarks share: clocks, and the end of a program at the first error. */
#ifndef MC_MICRO_MEASURE_H
#define MC_MICRO_MEASURE_H

#include <apr_pools.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "mapcache/error.h"

static inline double
read_clock_seconds(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static inline double
read_clock_ms(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

static inline double
read_clock_us(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

/* For qsort. */
static inline int
compare_doubles(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

static inline void
exit_on_error(mc_error *error)
{
    apr_pool_t *pool;
    if (error == MC_OK)
        return;
    apr_pool_create(&pool, NULL);
    fprintf(stderr, "%s\n", mc_error_chain(error, pool));
    exit(1);
}

#endif
