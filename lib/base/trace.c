/*
 * Writes trace lines, and tells trace_record.c of spans. One line costs a look at the clock and some copies: what it
 * begins with is formatted once for each trace, thread and second, but for the digits of the microsecond.
 */

#include <apr_strings.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/account.h"
#include "base/clock.h"
#include "base/controls.h"
#include "base/metrics.h"
#include "base/trace_private.h"

enum { NAME_SIZE_MAX = 96, FIRST_BUFFER = 32 << 10, FULL_BUFFER = 128 << 10 };
enum { LINE_SIZE = MC_TRACE_START_MAX + 2 * NAME_SIZE_MAX + 64, DETAIL_MAX = 2100 };

/* How long the time of day is told by the clock of durations, before both are compared again. */
#define COMPARED_EVERY APR_USEC_PER_SEC
#define NEVER_COMPARED (INT64_MIN / 2)

enum { DATE_SIZE = 19, FRACTION_AT = 1 + DATE_SIZE + 1, FRACTION_DIGITS = 6 };

static const char event_word[] = "MOCKUP ";

/* What one thread knows of itself and of the current second. */
static _Thread_local struct {
    long id;
    time_t second;
    char date[DATE_SIZE + 1]; /* "Wed Jan 15 12:17:50" */
    char year[8];
    size_t year_size;
} self;

static void
forget_self(void)
{
    self.id = 0;
}

static void
watch_forks(void)
{
    pthread_atfork(NULL, NULL, forget_self);
}

long
mc_trace_thread(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (__builtin_expect(self.id == 0, 0)) {
        pthread_once(&once, watch_forks);
        self.id = syscall(SYS_gettid);
    }
    return self.id;
}

static apr_status_t
end_trace(void *data)
{
    mc_trace *trace = data;
    mc_trace_flush(trace);
    free(trace->buffer);
    trace->buffer = NULL;
    if (trace->root != trace) {
        mc_trace_join(trace);
        return APR_SUCCESS;
    }
    free(trace->joined);
    free(trace->jobs);
    pthread_mutex_destroy(&trace->lock);
    return APR_SUCCESS;
}

/* A copy that cannot break a line, of bounded length. */
static const char *
trace_field_text(const char *text, size_t longest, apr_pool_t *pool)
{
    return mc_controls_blank(apr_pstrndup(pool, text == NULL ? "-" : text, longest));
}

mc_trace *
mc_trace_create(mc_trace_sink *sink, void *baton, const char *client, const char *location, apr_pool_t *pool)
{
    mc_trace *trace = apr_pcalloc(pool, sizeof(*trace));
    trace->pool = pool;
    trace->kept = MC_TRACE_SUMS;
    trace->sink = sink;
    trace->baton = baton;
    if (sink != NULL) {
        trace->client = trace_field_text(client, 64, pool);
        trace->location = trace_field_text(location == NULL ? "mapcache" : location, 64, pool);
    }
    trace->compared = NEVER_COMPARED;
    trace->root = trace;
    pthread_mutex_init(&trace->lock, NULL);
    apr_pool_cleanup_register(pool, trace, end_trace, apr_pool_cleanup_null);
    return trace;
}

mc_trace *
mc_trace_fork(const mc_trace *parent, unsigned inside, apr_pool_t *job_pool)
{
    mc_trace *trace = apr_pcalloc(job_pool, sizeof(*trace));
    trace->pool = job_pool;
    trace->kept = parent->kept;
    trace->open = inside;
    trace->account = parent->account;
    trace->sink = parent->sink;
    trace->baton = parent->baton;
    trace->client = parent->client; /* outlives the job, as the caller of a batch does */
    trace->location = parent->location;
    trace->metrics = parent->metrics;
    trace->compared = NEVER_COMPARED; /* the parent's thread may be writing its own */
    trace->root = parent->root;
    apr_pool_cleanup_register(job_pool, trace, end_trace, apr_pool_cleanup_null);
    return trace;
}

void
mc_trace_set_metrics(mc_trace *trace, struct mc_metrics *metrics)
{
    trace->metrics = metrics;
}

void
mc_trace_keep(mc_trace *trace, unsigned kept)
{
    trace->kept = kept;
}

void
mc_trace_set_account(mc_trace *trace, const struct mc_account *account)
{
    trace->account = account;
}

void
mc_trace_flush(mc_trace *trace)
{
    if (trace->size == 0)
        return;
    trace->sink(trace->baton, trace->buffer, trace->size);
    trace->size = 0;
}

/* Makes room for `size` bytes; false without memory, then the line is lost. */
static bool
reserve_trace_room(mc_trace *trace, size_t size)
{
    if (__builtin_expect(trace->capacity - trace->size >= size, 1))
        return true;
    if (trace->capacity >= FULL_BUFFER) {
        mc_trace_flush(trace);
        return true;
    }
    size_t capacity = trace->capacity == 0 ? FIRST_BUFFER : trace->capacity * 4;
    char *buffer = realloc(trace->buffer, capacity);
    if (buffer == NULL)
        return false;
    trace->buffer = buffer;
    trace->capacity = capacity;
    return true;
}

static void
format_second(time_t second)
{
    apr_time_exp_t local;
    apr_time_exp_lt(&local, apr_time_from_sec(second));
    apr_snprintf(self.date, sizeof(self.date), "%s %s %02d %02d:%02d:%02d", apr_day_snames[local.tm_wday],
                 apr_month_snames[local.tm_mon], local.tm_mday, local.tm_hour, local.tm_min, local.tm_sec);
    self.year_size = (size_t)apr_snprintf(self.year, sizeof(self.year), "%d", local.tm_year + 1900);
    self.second = second;
}

/* "[Wed Jan 15 12:17:50.000000 2020] [mapcache:debug] [pid 1:tid 2] file(line): [client address] MOCKUP " */
static void
format_start(mc_trace *trace, time_t second, long thread)
{
    if (second != self.second || self.year_size == 0)
        format_second(second);
    trace->start_size = (size_t)apr_snprintf(
        trace->start, sizeof(trace->start), "[%s.000000 %s] [mapcache:debug] [pid %ld:tid %ld] %s: [client %s] %s",
        self.date, self.year, (long)getpid(), thread, trace->location, trace->client, event_word);
    trace->thread = thread;
    trace->second = second;
}

static inline char *
put_trace_bytes(char *to, const char *text, size_t size)
{
    memcpy(to, text, size);
    return to + size;
}

/* Six digits, two at a time. */
static inline void
write_fraction(char *to, unsigned fraction)
{
    for (int i = FRACTION_DIGITS - 2; i >= 0; i -= 2, fraction /= 100) {
        to[i] = (char)('0' + fraction % 100 / 10);
        to[i + 1] = (char)('0' + fraction % 10);
    }
}

/* What a line begins with, at `now` by mc_clock_now(): up to "MOCKUP "; called with room for it. */
static char *
write_start(mc_trace *trace, apr_time_t now)
{
    if (now >= trace->compared + COMPARED_EVERY) {
        trace->compared = now;
        trace->behind = apr_time_now() - now;
    }
    apr_time_t date = now + trace->behind;
    time_t second = (time_t)apr_time_sec(date);
    long thread = mc_trace_thread();
    if (second != trace->second || thread != trace->thread)
        format_start(trace, second, thread);
    char *to = trace->buffer + trace->size;
    memcpy(to, trace->start, trace->start_size);
    write_fraction(to + FRACTION_AT, (unsigned)apr_time_usec(date));
    return to + trace->start_size;
}

/* "BEGIN name" or "END name note" at `now`. */
static void
write_line(mc_trace *trace, apr_time_t now, const char *event, size_t event_size, const char *name, const char *note)
{
    if (!reserve_trace_room(trace, LINE_SIZE))
        return;
    char *to = write_start(trace, now);
    to = put_trace_bytes(to, event, event_size);
    to = put_trace_bytes(to, name, strnlen(name, NAME_SIZE_MAX));
    if (note != NULL) {
        *to++ = ' ';
        to = put_trace_bytes(to, note, strnlen(note, NAME_SIZE_MAX));
    }
    *to++ = '\n';
    trace->size = (size_t)(to - trace->buffer);
}

/* "BEGIN name" and "END name" of the same moment. */
static void
write_trace_moment(mc_trace *trace, apr_time_t now, const char *name)
{
    if (!reserve_trace_room(trace, 2 * LINE_SIZE))
        return;
    size_t size = strnlen(name, NAME_SIZE_MAX);
    const char *start = trace->buffer + trace->size;
    char *to = write_start(trace, now);
    size_t start_size = (size_t)(to - start);
    to = put_trace_bytes(to, "BEGIN ", 6);
    to = put_trace_bytes(to, name, size);
    *to++ = '\n';
    to = put_trace_bytes(to, start, start_size);
    to = put_trace_bytes(to, "END ", 4);
    to = put_trace_bytes(to, name, size);
    *to++ = '\n';
    trace->size = (size_t)(to - trace->buffer);
}

void
mc_trace_say(mc_trace *trace, const char *text, const char *detail)
{
    if (trace->sink == NULL || !reserve_trace_room(trace, LINE_SIZE + DETAIL_MAX))
        return;
    char *to = write_start(trace, mc_clock_now()) - (sizeof(event_word) - 1);
    to = put_trace_bytes(to, text, strnlen(text, NAME_SIZE_MAX));
    *to++ = ' ';
    size_t size = strnlen(detail, DETAIL_MAX);
    for (size_t i = 0; i < size; i++)
        *to++ = (unsigned char)detail[i] < ' ' || detail[i] == 0x7f ? ' ' : detail[i];
    *to++ = '\n';
    trace->size = (size_t)(to - trace->buffer);
}

void
mc_trace_say_request(mc_trace *trace)
{
    trace->told = true;
    if (trace->sink != NULL && trace->account != NULL)
        mc_trace_say(trace, "REQUEST", mc_account_text(trace->account, trace->pool));
}

/* The number of a span that is recorded; 0: none is. */
static unsigned
number_span(mc_trace *trace)
{
    if ((trace->kept & MC_TRACE_SPANS) == 0)
        return 0;
    return atomic_fetch_add_explicit(&trace->root->numbers, 1, memory_order_relaxed) + 1;
}

void
mc_trace_begin(mc_span *span)
{
    mc_trace *trace = span->trace;
    span->inside = trace->inside;
    trace->inside = 0;
    span->number = number_span(trace);
    if (span->number != 0) {
        span->parent = trace->open;
        trace->open = span->number;
    }
    span->begin = mc_clock_now();
    if (trace->sink == NULL)
        return;
    write_line(trace, span->begin, "BEGIN ", 6, span->name, NULL);
    if (trace->root != trace && !trace->told)
        mc_trace_say_request(trace); /* a job's lines name the request, too */
}

void
mc_trace_end(mc_span *span)
{
    mc_trace *trace = span->trace;
    apr_time_t now = mc_clock_now();
    int64_t duration = now - span->begin;
    if ((trace->kept & MC_TRACE_SUMS) != 0)
        mc_trace_add_sum(trace, span->name, duration, duration - trace->inside);
    if (span->number != 0) {
        trace->open = span->parent;
        mc_trace_record(trace, span, duration, mc_trace_thread());
    }
    trace->inside = span->inside + duration;
    mc_observe(trace->metrics, span->name, duration);
    if (trace->sink != NULL)
        write_line(trace, now, "END ", 4, span->name, span->note);
}

void
mc_trace_moment(mc_trace *trace, const char *name)
{
    mc_span span = { .trace = trace, .name = name, .number = number_span(trace), .parent = trace->open };
    span.begin = mc_clock_now();
    if (trace->sink != NULL && (trace->root == trace || trace->told)) {
        write_trace_moment(trace, span.begin, name);
    } else if (trace->sink != NULL) {
        write_line(trace, span.begin, "BEGIN ", 6, name, NULL);
        mc_trace_say_request(trace);
        write_line(trace, span.begin, "END ", 4, name, NULL);
    }
    if ((trace->kept & MC_TRACE_SUMS) != 0)
        mc_trace_add_sum(trace, name, 0, 0);
    if (span.number != 0)
        mc_trace_record(trace, &span, 0, mc_trace_thread());
    mc_observe(trace->metrics, name, 0);
}
