/* What programs share that time the steps of something: milliseconds of processor time, the best of several rounds. */
#ifndef MC_MICRO_STEPS_H
#define MC_MICRO_STEPS_H

#include <apr_general.h>
#include <stdio.h>

#include "measure.h"

enum { STEPS_MAX = 16 };

static apr_pool_t *pool;
static double best[STEPS_MAX];

/* A step has been done since `begin`. */
static void
note_step(int step, double begin)
{
    double time = read_clock_ms(CLOCK_PROCESS_CPUTIME_ID) - begin;
    if (best[step] == 0 || time < best[step])
        best[step] = time;
}

static void
print_steps(const char *const *names, int count)
{
    for (int i = 0; i < count; i++)
        printf("%-28s %9.3f ms\n", names[i], best[i]);
}

#endif
