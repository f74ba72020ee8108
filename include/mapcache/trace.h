/*
 * Execution traces: BEGIN/END lines in the format of the published performance study.
 * Off (ctx->trace == NULL), a span costs one predicted branch. On, lines gather in a buffer that is written in one go.
 * The form of the lines is docs/reference/tracing.md 1.1.
 *
 * Example: a span that ends with its scope, also where the function returns early.
 *
 *     mc_error *
 *     count_rows(int *rows, mc_ctx *ctx, apr_pool_t *pool)
 *     {
 *         MC_SPAN(ctx, "mapcache_example_count");
 *         MC_TRY(mc_ctx_check(ctx, pool));
 *         *rows = 1;
 *         return MC_OK;
 *     }
 */
#ifndef MAPCACHE_TRACE_H
#define MAPCACHE_TRACE_H

#include "mapcache/ctx.h"

typedef struct mc_trace mc_trace;

/* Takes whole lines, each ended by a newline, of one request or job. Called by the thread that owns the trace. */
typedef void mc_trace_sink(void *baton, const char *lines, size_t size);

/*
 * A trace for one request or job in `pool`; ended and flushed by mc_trace_flush or with the pool.
 * client: "ip:port" or NULL for "-". location: "mod_mapcache.c(346)" as the line's file(line) field.
 * sink NULL: no lines, only the sums for Server-Timing and the metrics.
 */
mc_trace *mc_trace_create(mc_trace_sink *sink, void *baton, const char *client, const char *location, apr_pool_t *pool);

/*
 * A trace of the same request for a job on another thread: own buffer, own thread id, same sink and client. `inside`:
 * mc_trace_innermost(parent) as the parent's thread has seen it when it gave out the job.
 */
mc_trace *mc_trace_fork(const mc_trace *parent, unsigned inside, apr_pool_t *job_pool);

/* The number of the innermost open span that is recorded; 0: none. On the trace's own thread; NULL: 0. */
unsigned mc_trace_innermost(const mc_trace *trace);

/* What is kept of spans besides their lines: sums by name (Server-Timing, mc_trace_take_own), or each by itself
 * (mc_trace_visit). */
typedef enum mc_trace_kept { MC_TRACE_SUMS = 1, MC_TRACE_SPANS = 2 } mc_trace_kept;

/* `kept`: of mc_trace_kept. A new trace keeps sums. Before its first span. */
void mc_trace_keep(mc_trace *trace, unsigned kept);

/* Lines of jobs on other threads name the request, which lives as long as the trace (lib/base/account.h). */
void mc_trace_set_account(mc_trace *trace, const struct mc_account *account);

/* Spans of one request that are recorded at most, with those of its jobs. */
enum { MC_TRACE_SPANS_MAX = 512, MC_SPAN_SUBJECT_SIZE = 56 };

/* A span that has ended. */
typedef struct mc_span_record {
    const char *name, *note; /* constants; note may be NULL */
    apr_time_t begin;        /* by mc_clock_now() */
    int64_t duration;        /* microseconds */
    unsigned number;         /* from 1, in the order of begins; 1 is the request's own */
    unsigned parent;         /* number of the span around it; 0: none */
    long thread;
    char subject[MC_SPAN_SUBJECT_SIZE]; /* what it was about: a cache, a host; cut, "" without one */
} mc_span_record;

/*
 * Hands over the recorded spans that have ended, in no order. At the end of the request, on the request's own thread.
 * Returns how many spans were not recorded because there were too many.
 */
unsigned mc_trace_visit(mc_trace *trace, void (*take)(void *baton, const mc_span_record *span), void *baton);

/* Spans of this trace and of what is forked from it later also feed the histograms of `metrics` (mc_observe). */
void mc_trace_set_metrics(mc_trace *trace, struct mc_metrics *metrics);

/* A line that is no event, written together with those of the request: "text of" and up to 2000 bytes of `detail`, made
 * one line. Nothing without a sink. */
void mc_trace_say(mc_trace *trace, const char *text, const char *detail);

/* The line that names the request, before the end of its outermost span. Nothing without a sink or an account. */
void mc_trace_say_request(mc_trace *trace);

void mc_trace_flush(mc_trace *trace);

/*
 * Hands over the microseconds that were spent in spans of each name but not in spans inside them, by this trace and by
 * what is forked from it (jobs on other threads: once they have ended), and forgets them.
 */
void mc_trace_take_own(mc_trace *trace, void (*take)(void *baton, const char *name, int64_t microseconds), void *baton);

/* "name;dur=milliseconds, ..." of what has been measured so far (jobs on other threads: once they have ended), by span
 * name without its "mapcache_" prefix; for the Server-Timing header. */
const char *mc_trace_server_timing(const mc_trace *trace, apr_pool_t *pool);

typedef struct mc_span {
    mc_trace *trace;
    const char *name;
    const char *note;
    apr_time_t begin; /* on a clock that nobody sets */
    int64_t inside;   /* what the span around it had spent in others when this one began */
    unsigned number;  /* of a recorded span; 0: it is not recorded */
    unsigned parent;
    const char *subject;
} mc_span;

void mc_trace_begin(mc_span *span);
void mc_trace_end(mc_span *span);

/* A span that takes no time: BEGIN and END of one look at the clock. */
void mc_trace_moment(mc_trace *trace, const char *name);

static inline mc_span
mc_span_open(mc_trace *trace, const char *name)
{
    mc_span span = { trace, name, 0, 0, 0, 0, 0, 0 };
    if (__builtin_expect(trace != 0, 0))
        mc_trace_begin(&span);
    return span;
}

static inline void
mc_span_close(mc_span *span)
{
    if (__builtin_expect(span->trace != 0, 0))
        mc_trace_end(span);
}

#define MC_SPAN_JOIN_(a, b) a##b
#define MC_SPAN_NAME_(line) MC_SPAN_JOIN_(mc_span_at_, line)

/* Opens a span that ends when the enclosing scope does, on every path. */
#define MC_SPAN(ctx, name)                                                                                             \
    __attribute__((cleanup(mc_span_close), unused)) mc_span MC_SPAN_NAME_(__LINE__) = mc_span_open((ctx)->trace, name)

/* A span for something that has just happened, and took no time worth a second look at the clock. */
#define MC_SPAN_MOMENT(ctx, name)                                                                                      \
    do {                                                                                                               \
        if (__builtin_expect((ctx)->trace != 0, 0))                                                                    \
            mc_trace_moment((ctx)->trace, name);                                                                       \
    } while (0)

/* MC_SPAN as a named variable, for mc_span_note. */
#define MC_SPAN_AS(variable, ctx, name)                                                                                \
    __attribute__((cleanup(mc_span_close), unused)) mc_span variable = mc_span_open((ctx)->trace, name)

/* Sets the note of the END line: "ERROR", "CACHE_MISS", "CLEANUP" or "EMPTY". A string constant. */
static inline void
mc_span_note(mc_span *span, const char *note)
{
    span->note = note;
}

/* Says what the span is about: the name of a cache or of a source, a host. The text lives until the span ends. */
static inline void
mc_span_about(mc_span *span, const char *subject)
{
    span->subject = subject;
}

/* MC_SPAN about a thing with a name. */
#define MC_SPAN_ABOUT(ctx, name, subject)                                                                              \
    MC_SPAN(ctx, name);                                                                                                \
    mc_span_about(&MC_SPAN_NAME_(__LINE__), subject)

#endif
