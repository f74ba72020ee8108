/* What the files of traces share. */
#ifndef MC_BASE_TRACE_PRIVATE_H
#define MC_BASE_TRACE_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "mapcache/trace.h"

enum { MC_TRACE_NAMES_MAX = 48, MC_TRACE_START_MAX = 288, MC_TRACE_CHUNK = 16 };

typedef struct mc_span_sum {
    const char *name;
    int64_t microseconds;
    int64_t own; /* not in spans inside it; since it was last taken */
} mc_span_sum;

typedef struct mc_span_sums {
    mc_span_sum spans[MC_TRACE_NAMES_MAX];
    int count;
} mc_span_sums;

typedef struct mc_span_chunk {
    struct mc_span_chunk *next;
    int count;
    mc_span_record records[MC_TRACE_CHUNK];
} mc_span_chunk;

struct mc_trace {
    apr_pool_t *pool;
    mc_trace_sink *sink; /* NULL: no lines */
    void *baton;
    const char *client;
    const char *location;
    const struct mc_account *account; /* of the request, for its lines; NULL: none */
    struct mc_metrics *metrics;
    unsigned kept; /* mc_trace_kept */
    bool told;     /* of a fork: the line that names the request has been written */
    char *buffer;  /* malloc'ed: it grows, and it must not stay in the pool */
    size_t size;
    size_t capacity;
    apr_time_t compared; /* by mc_clock_now(): when `behind` was measured */
    apr_time_t behind;   /* the time of day less mc_clock_now() */
    long thread;         /* that `start` was formatted for, and its second */
    time_t second;
    char start[MC_TRACE_START_MAX]; /* of a line, up to "MOCKUP " */
    size_t start_size;
    mc_span_sums *sums;          /* of this trace alone; NULL: nothing yet */
    int64_t inside;              /* spent in the spans that have ended inside the innermost open one */
    unsigned open;               /* number of the innermost open span that is recorded; 0: none */
    mc_span_chunk *first, *last; /* recorded spans of this trace alone */
    mc_trace *root;              /* of the request; itself for the first one */
    atomic_uint numbers;         /* root only: of recorded spans that have begun */
    atomic_uint lost;            /* root only: spans beyond MC_TRACE_SPANS_MAX */
    pthread_mutex_t lock;        /* root only: of the rest */
    mc_span_sums *joined;        /* what ended forks have added; malloc'ed, NULL: nothing */
    mc_span_record *jobs;        /* recorded spans of ended forks; malloc'ed */
    int job_count, job_room;
};

/* The system's number of the calling thread, asked once. */
long mc_trace_thread(void);

/* At the end of a span: adds to the sums by name, and to the recorded spans. */
void mc_trace_add_sum(mc_trace *trace, const char *name, int64_t microseconds, int64_t own);
void mc_trace_record(mc_trace *trace, const mc_span *span, int64_t duration, long thread);

/* At the end of a fork: hands both to its root. */
void mc_trace_join(mc_trace *fork);

#endif
