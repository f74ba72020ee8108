/* What programs share that time the steps of something: milliseconds of processor time, the best of several rounds. */
#ifndef MC_MICRO_STEPS_H
#define MC_MICRO_STEPS_H

#include <apr_general.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "mapcache/error.h"

enum { STEPS_MAX = 16 };

static apr_pool_t *pool;
static double best[STEPS_MAX];

static void
must(mc_error *error)
{
    if (error == MC_OK)
        return;
    fprintf(stderr, "%s\n", mc_error_chain(error, pool));
    exit(1);
}

static double
now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

/* A step has been done since `begin`. */
static void
spent(int step, double begin)
{
    double time = now() - begin;
    if (best[step] == 0 || time < best[step])
        best[step] = time;
}

static void
tell(const char *const *names, int count)
{
    for (int i = 0; i < count; i++)
        printf("%-28s %9.3f ms\n", names[i], best[i]);
}

#endif
