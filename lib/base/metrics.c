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

enum { STRIPES = 16, SPANS_MAX = 64, NAME_SIZE = 64, KNOWN = 32, CACHE_LINE = 64, PAGE = 4096, COUNTERS_MAX = 128 };
enum { FREE, BEING_NAMED, NAMED };

typedef struct stripe {
    _Alignas(CACHE_LINE) _Atomic uint64_t values[COUNTERS_MAX];
} stripe;

typedef struct span_histogram {
    _Atomic int state;
    char name[NAME_SIZE]; /* once NAMED; a copy: a constant of a module lies elsewhere in each process */
    mc_histogram times;
} span_histogram;

struct mc_metrics {
    stripe stripes[STRIPES];
    apr_time_t started;
    size_t size, annex; /* of the whole piece, and where the annex begins; 0: there is none */
    span_histogram spans[SPANS_MAX];
};

MC_COUNTERS_DEFINE(MC_BASE_COUNTERS)

/* Filled before main, by one thread. */
static struct {
    mc_counter_row *by_name[COUNTERS_MAX];
    int count;
} counters;

void
mc_counters_register(mc_counter_row *const *rows, int count)
{
    MC_ASSERT(counters.count + count <= COUNTERS_MAX);
    for (int i = 0; i < count; i++) {
        int at = counters.count;
        for (; at > 0 && strcmp(counters.by_name[at - 1]->name, rows[i]->name) > 0; at--)
            counters.by_name[at] = counters.by_name[at - 1];
        counters.by_name[at] = rows[i];
        rows[i]->place = counters.count++;
    }
}

mc_counter
mc_counter_at(int index)
{
    return index < counters.count ? counters.by_name[index] : NULL;
}

mc_metrics *
mc_metrics_create_with(size_t bytes)
{
    const size_t own = (sizeof(mc_metrics) + PAGE - 1) / PAGE * PAGE;
    mc_metrics *metrics =
        mmap(NULL, own + bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0); /* zeroed */
    MC_ASSERT(metrics != MAP_FAILED);
    metrics->started = apr_time_now();
    metrics->size = own + bytes;
    metrics->annex = bytes == 0 ? 0 : own;
    return metrics;
}

mc_metrics *
mc_metrics_create(void)
{
    return mc_metrics_create_with(0);
}

void *
mc_metrics_annex(mc_metrics *metrics)
{
    return metrics == NULL || metrics->annex == 0 ? NULL : (char *)metrics + metrics->annex;
}

size_t
mc_metrics_annex_size(const mc_metrics *metrics)
{
    return metrics == NULL || metrics->annex == 0 ? 0 : metrics->size - metrics->annex;
}

void
mc_metrics_destroy(mc_metrics *metrics)
{
    if (metrics != NULL)
        munmap(metrics, metrics->size);
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
    if (metrics != NULL)
        atomic_fetch_add_explicit(&metrics->stripes[own_stripe()].values[counter->place], amount, memory_order_relaxed);
}

uint64_t
mc_counter_value(const mc_metrics *metrics, mc_counter counter)
{
    uint64_t sum = 0;
    for (int i = 0; metrics != NULL && i < STRIPES; i++)
        sum += atomic_load_explicit(&metrics->stripes[i].values[counter->place], memory_order_relaxed);
    return sum;
}

static bool
is_named(const span_histogram *h, const char *span)
{
    return atomic_load_explicit(&h->state, memory_order_acquire) == NAMED && strncmp(h->name, span, NAME_SIZE - 1) == 0;
}

/* The histogram of that name; without one, the first free one takes the name (`claim`). */
static span_histogram *
find_span(mc_metrics *metrics, const char *span, bool claim)
{
    for (int i = 0; i < SPANS_MAX; i++) {
        span_histogram *h = &metrics->spans[i];
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
static span_histogram *
name_span(mc_metrics *metrics, const char *span)
{
    static pthread_mutex_t naming = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&naming);
    span_histogram *h = find_span(metrics, span, true);
    pthread_mutex_unlock(&naming);
    return h;
}

/* The same by what this thread has found before. */
static span_histogram *
known_histogram(mc_metrics *metrics, const char *span)
{
    static _Thread_local struct {
        const mc_metrics *metrics;
        const char *span;
        span_histogram *histogram;
    } known[KNOWN];
    size_t at = ((uintptr_t)span >> 3 ^ (uintptr_t)span >> 8) % KNOWN;
    if (known[at].metrics == metrics && known[at].span == span && is_named(known[at].histogram, span))
        return known[at].histogram;
    span_histogram *h = find_span(metrics, span, false);
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
    span_histogram *h = known_histogram(metrics, span);
    if (h == NULL)
        return;
    mc_histogram_add(&h->times, microseconds);
}

static mc_error *
append_metrics_text(mc_buf *out, const char *text, apr_pool_t *pool)
{
    return mc_buf_append(out, text, strlen(text), pool);
}

static mc_error *
write_counters(const mc_metrics *metrics, mc_metrics_format format, mc_buf *out, apr_pool_t *pool)
{
    for (int i = 0; mc_counter_at(i) != NULL; i++) {
        const mc_counter row = mc_counter_at(i);
        MC_TRY(mc_metrics_write_head(out, format, row->name, "counter", NULL, row->help, pool));
        MC_TRY(append_metrics_text(
            out, apr_psprintf(pool, "mapcache_%s %" PRIu64 "\n", row->name, mc_counter_value(metrics, row)), pool));
    }
    return MC_OK;
}

/* What all histograms of the name of the first one have counted. */
static mc_error *
write_span(const mc_metrics *metrics, int first, mc_buf *out, apr_pool_t *pool)
{
    const char *name = metrics->spans[first].name;
    mc_histogram sum = { 0 };
    for (int i = first; i < SPANS_MAX; i++)
        if (is_named(&metrics->spans[i], name))
            mc_histogram_add_all(&sum, &metrics->spans[i].times);
    return mc_histogram_write(out, "span_seconds", apr_psprintf(pool, "span=\"%s\"", name), &sum, pool);
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

const char *
mc_metrics_escape_label(const char *text, apr_pool_t *pool)
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
    return append_metrics_text(out,
                               apr_psprintf(pool, "mapcache_%s{%s=\"%s\"} %" PRId64 "\n", name, label,
                                            mc_metrics_escape_label(thing, pool), value),
                               pool);
}

mc_error *
mc_metrics_write_head(mc_buf *out, mc_metrics_format format, const char *name, const char *type, const char *unit,
                      const char *help, apr_pool_t *pool)
{
    const char *family = name;
    if (format == MC_METRICS_OPEN && strcmp(type, "counter") == 0) /* the sample's name without "_total" */
        family = apr_pstrndup(pool, name, strlen(name) - strlen("_total"));
    MC_TRY(append_metrics_text(out, apr_psprintf(pool, "# TYPE mapcache_%s %s\n", family, type), pool));
    if (format == MC_METRICS_OPEN && unit != NULL)
        MC_TRY(append_metrics_text(out, apr_psprintf(pool, "# UNIT mapcache_%s %s\n", family, unit), pool));
    return append_metrics_text(out, apr_psprintf(pool, "# HELP mapcache_%s %s\n", family, help), pool);
}

mc_error *
mc_metrics_write_sample(mc_buf *out, const char *name, const char *labels, uint64_t value, apr_pool_t *pool)
{
    return append_metrics_text(out, apr_psprintf(pool, "mapcache_%s{%s} %" PRIu64 "\n", name, labels, value), pool);
}

mc_error *
mc_metrics_write(const mc_metrics *metrics, mc_metrics_format format, mc_buf *out, apr_pool_t *pool)
{
    bool open = format == MC_METRICS_OPEN;
    MC_TRY(write_counters(metrics, format, out, pool));
    MC_TRY(mc_metrics_write_head(out, format, "span_seconds", "histogram", "seconds",
                                 "Durations of the steps of traced requests.", pool));
    for (int i = 0; metrics != NULL && i < SPANS_MAX; i++)
        if (atomic_load_explicit(&metrics->spans[i].state, memory_order_acquire) == NAMED && is_first(metrics, i))
            MC_TRY(write_span(metrics, i, out, pool));
    return open ? append_metrics_text(out, "# EOF\n", pool) : MC_OK;
}
