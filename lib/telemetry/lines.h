/* Lines about requests, as logfmt or as JSON: one for each request that was no hit, and with a plan for a slow one. */
#ifndef MC_TELEMETRY_LINES_H
#define MC_TELEMETRY_LINES_H

#include "telemetry/telemetry.h"

/* Spans of one name about one thing. */
typedef struct mc_slow_step {
    const char *name;
    const char *subject; /* "" without one */
    const char *note;    /* of the last one that had a note; NULL: none had */
    int count;
    int64_t microseconds; /* of all of them */
    int64_t longest;
    apr_time_t first; /* begin of the first one */
} mc_slow_step;

/* What took how long, in the order of first begins. Steps beyond the limit are left out. */
enum { MC_SLOW_STEPS_MAX = 40 };
typedef struct mc_slow_plan {
    mc_slow_step steps[MC_SLOW_STEPS_MAX];
    int count;
    bool cut; /* there were more steps, or more spans than are recorded */
} mc_slow_plan;

/* Of the recorded spans of a request; the texts live as long as its trace. */
void mc_slow_plan_make(mc_slow_plan *plan, mc_trace *trace);

/* One line with its line break, in `pool`. `event`: "access" or "slow"; `plan` NULL: without one. */
const char *mc_line_format(const char *event, bool json, const mc_account *account, const mc_telemetry_answer *answer,
                           const mc_slow_plan *plan, apr_pool_t *pool);

#endif
