/*
 * Counters in stripes, so that threads rarely share a cache line; histograms of span durations by name. Everything is
 * summed when it is read. All of it is one piece of shared memory without locks, so that the processes of a web server
 * count together, and one that dies leaves nothing locked.
 */
#include "base/metrics.h"

#include <apr_strings.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

enum { STRIPES = 16, SPANS_MAX = 64, NAME_SIZE = 64, KNOWN = 32, CACHE_LINE = 64 };
enum { FREE, BEING_NAMED, NAMED };

/* Upper bounds in microseconds. */
static const int64_t bounds[] = { 50,    100,    250,    500,    1000,    2500,    5000,    10000,   25000,
                                  50000, 100000, 250000, 500000, 1000000, 2500000, 5000000, 10000000 };
enum { BOUNDS = sizeof(bounds) / sizeof(bounds[0]) };

typedef struct stripe {
    _Alignas(CACHE_LINE) _Atomic uint64_t values[MC_COUNTER_COUNT];
} stripe;

typedef struct histogram {
    _Atomic int state;
    char name[NAME_SIZE]; /* once NAMED; a copy: a constant of a module lies elsewhere in each process */
    _Atomic uint64_t buckets[BOUNDS + 1];
    _Atomic uint64_t microseconds;
} histogram;

struct mc_metrics {
    stripe stripes[STRIPES];
    apr_time_t started;
    histogram spans[SPANS_MAX];
};

mc_metrics *
mc_metrics_create(void)
{
    mc_metrics *metrics =
        mmap(NULL, sizeof(*metrics), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0); /* zeroed */
    MC_ASSERT(metrics != MAP_FAILED);
    metrics->started = apr_time_now();
    return metrics;
}

void
mc_metrics_destroy(mc_metrics *metrics)
{
    if (metrics != NULL)
        munmap(metrics, sizeof(*metrics));
}

apr_time_t
mc_metrics_started(const mc_metrics *metrics)
{
    return metrics == NULL ? 0 : metrics->started;
}

static unsigned
own_stripe(void)
{
    static atomic_uint next;
    static _Thread_local unsigned stripe; /* 0: not yet chosen */
    if (stripe == 0)
        stripe = atomic_fetch_add_explicit(&next, 1, memory_order_relaxed) % STRIPES + 1;
    return stripe - 1;
}

void
mc_count(mc_metrics *metrics, mc_counter counter, uint64_t amount)
{
    MC_ASSERT(counter < MC_COUNTER_COUNT);
    if (metrics != NULL)
        atomic_fetch_add_explicit(&metrics->stripes[own_stripe()].values[counter], amount, memory_order_relaxed);
}

uint64_t
mc_counter_value(const mc_metrics *metrics, mc_counter counter)
{
    MC_ASSERT(counter < MC_COUNTER_COUNT);
    uint64_t sum = 0;
    for (int i = 0; metrics != NULL && i < STRIPES; i++)
        sum += atomic_load_explicit(&metrics->stripes[i].values[counter], memory_order_relaxed);
    return sum;
}

static bool
is_named(const histogram *h, const char *span)
{
    return atomic_load_explicit(&h->state, memory_order_acquire) == NAMED && strncmp(h->name, span, NAME_SIZE - 1) == 0;
}

/* The histogram of that name; without one, the first free one takes the name (`claim`). */
static histogram *
find_span(mc_metrics *metrics, const char *span, bool claim)
{
    for (int i = 0; i < SPANS_MAX; i++) {
        histogram *h = &metrics->spans[i];
        int state = atomic_load_explicit(&h->state, memory_order_acquire);
        if (state == FREE && !claim)
            return NULL;
        if (state == FREE && atomic_compare_exchange_strong(&h->state, &state, BEING_NAMED)) {
            apr_cpystrn(h->name, span, NAME_SIZE);
            atomic_store_explicit(&h->state, NAMED, memory_order_release);
            return h;
        }
        if (is_named(h, span))
            return h;
    }
    return NULL;
}

/* NULL when all are taken. Threads name one after the other; processes may in a rare case give two the same name, which
 * is why what is written adds up all of a name. */
static histogram *
name_span(mc_metrics *metrics, const char *span)
{
    static pthread_mutex_t naming = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&naming);
    histogram *h = find_span(metrics, span, true);
    pthread_mutex_unlock(&naming);
    return h;
}

/* The same by what this thread has found before. */
static histogram *
span_histogram(mc_metrics *metrics, const char *span)
{
    static _Thread_local struct {
        const mc_metrics *metrics;
        const char *span;
        histogram *histogram;
    } known[KNOWN];
    size_t at = ((uintptr_t)span >> 3 ^ (uintptr_t)span >> 8) % KNOWN;
    if (known[at].metrics == metrics && known[at].span == span && is_named(known[at].histogram, span))
        return known[at].histogram;
    histogram *h = find_span(metrics, span, false);
    if (h == NULL)
        h = name_span(metrics, span);
    if (h != NULL) {
        known[at].metrics = metrics;
        known[at].span = span;
        known[at].histogram = h;
    }
    return h;
}

void
mc_observe(mc_metrics *metrics, const char *span, int64_t microseconds)
{
    if (metrics == NULL)
        return;
    histogram *h = span_histogram(metrics, span);
    if (h == NULL)
        return;
    if (microseconds < 0)
        microseconds = 0; /* the clock was set back */
    int bucket = 0;
    while (bucket < BOUNDS && microseconds > bounds[bucket])
        bucket++;
    atomic_fetch_add_explicit(&h->buckets[bucket], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&h->microseconds, (uint64_t)microseconds, memory_order_relaxed);
}

static mc_error *
append_metrics_text(mc_buf *out, const char *text, apr_pool_t *pool)
{
    return mc_buf_append(out, text, strlen(text), pool);
}

static mc_error *
write_counters(const mc_metrics *metrics, mc_metrics_format format, mc_buf *out, apr_pool_t *pool)
{
    static const struct {
        const char *name;
        const char *help;
    } rows[] = {
#define X(name, help) { #name, help },
        MC_COUNTERS(X)
#undef X
    };
    for (int i = 0; i < MC_COUNTER_COUNT; i++) {
        const char *name = rows[i].name, *family = name;
        if (format == MC_METRICS_OPEN) /* the family's name is the sample's without "_total" */
            family = apr_pstrndup(pool, name, strlen(name) - strlen("_total"));
        MC_TRY(append_metrics_text(
            out,
            apr_psprintf(pool, "# TYPE mapcache_%s counter\n# HELP mapcache_%s %s\nmapcache_%s %" PRIu64 "\n", family,
                         family, rows[i].help, name, mc_counter_value(metrics, (mc_counter)i)),
            pool));
    }
    return MC_OK;
}

/* Microseconds as decimal seconds, exactly. */
static const char *
format_metric_seconds(uint64_t microseconds, apr_pool_t *pool)
{
    return apr_psprintf(pool, "%" PRIu64 ".%06u", microseconds / 1000000, (unsigned)(microseconds % 1000000));
}

/* What all histograms of the name of the first one have counted. */
static void
add_up(histogram *sum, const mc_metrics *metrics, int first)
{
    for (int i = first; i < SPANS_MAX; i++) {
        const histogram *h = &metrics->spans[i];
        if (!is_named(h, metrics->spans[first].name))
            continue;
        for (int bucket = 0; bucket <= BOUNDS; bucket++)
            sum->buckets[bucket] += atomic_load_explicit(&h->buckets[bucket], memory_order_relaxed);
        sum->microseconds += atomic_load_explicit(&h->microseconds, memory_order_relaxed);
    }
}

static mc_error *
write_span(const mc_metrics *metrics, int index, mc_buf *out, apr_pool_t *pool)
{
    const char *name = metrics->spans[index].name;
    histogram sum = { 0 };
    uint64_t count = 0;
    add_up(&sum, metrics, index);
    for (int i = 0; i <= BOUNDS; i++) {
        count += sum.buckets[i];
        const char *bound = i < BOUNDS ? format_metric_seconds((uint64_t)bounds[i], pool) : "+Inf";
        MC_TRY(append_metrics_text(
            out,
            apr_psprintf(pool, "mapcache_span_seconds_bucket{span=\"%s\",le=\"%s\"} %" PRIu64 "\n", name, bound, count),
            pool));
    }
    return append_metrics_text(out,
                               apr_psprintf(pool,
                                            "mapcache_span_seconds_sum{span=\"%s\"} %s\n"
                                            "mapcache_span_seconds_count{span=\"%s\"} %" PRIu64 "\n",
                                            name, format_metric_seconds(sum.microseconds, pool), name, count),
                               pool);
}

/* Whether no earlier histogram has the same name. */
static bool
is_first(const mc_metrics *metrics, int index)
{
    for (int i = 0; i < index; i++)
        if (is_named(&metrics->spans[i], metrics->spans[index].name))
            return false;
    return true;
}

mc_error *
mc_metrics_write_gauge(mc_buf *out, const char *name, const char *help, uint64_t value, apr_pool_t *pool)
{
    return append_metrics_text(
        out,
        apr_psprintf(pool, "# TYPE mapcache_%s gauge\n# HELP mapcache_%s %s\nmapcache_%s %" PRIu64 "\n", name, name,
                     help, name, value),
        pool);
}

mc_error *
mc_metrics_write_family(mc_buf *out, const char *name, const char *help, apr_pool_t *pool)
{
    return append_metrics_text(
        out, apr_psprintf(pool, "# TYPE mapcache_%s gauge\n# HELP mapcache_%s %s\n", name, name, help), pool);
}

/* A value of a label: backslash, quote and line feed are escaped (OpenMetrics 1.0, escaping). */
static const char *
escape_label(const char *text, apr_pool_t *pool)
{
    char *escaped = apr_palloc(pool, 2 * strlen(text) + 1), *at = escaped;
    for (; *text != '\0'; text++) {
        if (*text == '\\' || *text == '"' || *text == '\n')
            *at++ = '\\';
        *at++ = *text == '\n' ? 'n' : *text;
    }
    *at = '\0';
    return escaped;
}

mc_error *
mc_metrics_write_labelled(mc_buf *out, const char *name, const char *label, const char *thing, int64_t value,
                          apr_pool_t *pool)
{
    return append_metrics_text(
        out, apr_psprintf(pool, "mapcache_%s{%s=\"%s\"} %" PRId64 "\n", name, label, escape_label(thing, pool), value),
        pool);
}

mc_error *
mc_metrics_write(const mc_metrics *metrics, mc_metrics_format format, mc_buf *out, apr_pool_t *pool)
{
    bool open = format == MC_METRICS_OPEN;
    MC_TRY(write_counters(metrics, format, out, pool));
    MC_TRY(append_metrics_text(out, "# TYPE mapcache_span_seconds histogram\n", pool));
    if (open)
        MC_TRY(append_metrics_text(out, "# UNIT mapcache_span_seconds seconds\n", pool));
    MC_TRY(append_metrics_text(out, "# HELP mapcache_span_seconds Durations of the steps of traced requests.\n", pool));
    for (int i = 0; metrics != NULL && i < SPANS_MAX; i++)
        if (atomic_load_explicit(&metrics->spans[i].state, memory_order_acquire) == NAMED && is_first(metrics, i))
            MC_TRY(write_span(metrics, i, out, pool));
    return open ? append_metrics_text(out, "# EOF\n", pool) : MC_OK;
}
