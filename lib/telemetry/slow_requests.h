/* The slowest requests of the last quarter of an hour with their spans, of all processes of a server. */
#ifndef MC_TELEMETRY_SLOW_REQUESTS_H
#define MC_TELEMETRY_SLOW_REQUESTS_H

#include "telemetry/incidents.h"
#include "telemetry/telemetry.h"

/* Requests that are kept, and spans of each: the longest. */
enum { MC_SLOW_REQUESTS_MAX = 12, MC_SLOW_SPANS_MAX = 128 };

typedef struct mc_slow_span {
    char name[40], about[32], note[12]; /* cut; note and about may be "" */
    int64_t begin, duration;            /* microseconds, since the begin of the request */
    unsigned number, parent;            /* as in mc_span_record */
} mc_slow_span;

typedef struct mc_slow_request {
    uint64_t number;       /* from 1 on; 0: nothing is here */
    apr_time_t time;       /* microseconds since 1970: the request's end */
    apr_time_t expires;    /* mc_clock_now() from which it is of no interest */
    int64_t duration;      /* microseconds */
    unsigned spans_beyond; /* spans that there was no room for */
    int span_count;
    mc_incident request; /* what was asked for: text, first, last and count are empty; without secrets */
    char result[16], trace[40];
    mc_slow_span spans[MC_SLOW_SPANS_MAX]; /* in the order of their begins */
} mc_slow_request;

/* Whether a request of that duration (microseconds) that has ended `now` (mc_clock_now()) is slow enough: cheap. */
bool mc_slow_requests_want(mc_monitor *monitor, int64_t duration, apr_time_t now);

/* Adds a request that has ended: the account, the answer, and the spans that its trace (or NULL) has kept. */
void mc_slow_requests_add(mc_monitor *monitor, const mc_account *account, const mc_telemetry_answer *answer,
                          struct mc_trace *trace, const char *position, apr_pool_t *pool);

/* Copies all of the last quarter of an hour to `to`, which has room for MC_SLOW_REQUESTS_MAX: the slowest first.
 * Returns how many there are. */
int mc_slow_requests_copy(mc_slow_request *to, mc_monitor *monitor);

#endif
