/* What would fill the log is said once a minute. */
#ifndef MC_BASE_SELDOM_H
#define MC_BASE_SELDOM_H

#include <apr_time.h>
#include <stdatomic.h>
#include <stdbool.h>

/* Of one subject; zeroed at first. Used by any thread. */
typedef struct mc_seldom {
    _Atomic apr_time_t next; /* mc_clock_now() from which it may be said again */
    atomic_uint unsaid;      /* times since it was said last */
} mc_seldom;

/* Whether it is to be said now; *unsaid: how often it was not since the last time. Else it is counted. */
bool mc_seldom_due(mc_seldom *subject, unsigned *unsaid);

#endif
