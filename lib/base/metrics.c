/*
 * Counters in stripes, so that threads rarely share a cache line; histograms of span durations by name. Everything is
 * summed when it is read.
 */
#include "base/metrics.h"

#include <apr_strings.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { STRIPES = 16, SPANS_MAX = 64, CACHE_LINE = 64 };

/* Upper bounds in microseconds. */
static const int64_t bounds[] = { 50,    100,    250,    500,    1000,    2500,    5000,    10000,   25000,
                                  50000, 100000, 250000, 500000, 1000000, 2500000, 5000000, 10000000 };
enum { BOUNDS = sizeof(bounds) / sizeof(bounds[0]) };

typedef struct stripe {
    _Alignas(CACHE_LINE) _Atomic uint64_t values[MC_COUNTER_COUNT];
} stripe;

typedef struct histogram {
    _Atomic(const char *) name; /* set once, under the lock */
    _Atomic uint64_t buckets[BOUNDS + 1];
    _Atomic uint64_t microseconds;
} histogram;

struct mc_metrics {
    stripe stripes[STRIPES];
    pthread_mutex_t lock; /* for adding a name */
    histogram spans[SPANS_MAX];
};

mc_metrics *
mc_metrics_create(void)
{
    mc_metrics *metrics = aligned_alloc(CACHE_LINE, (sizeof(*metrics) + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE);
    MC_ASSERT(metrics != NULL);
    memset(metrics, 0, sizeof(*metrics));
    pthread_mutex_init(&metrics->lock, NULL);
    return metrics;
}

void
mc_metrics_destroy(mc_metrics *metrics)
{
    if (metrics == NULL)
        return;
    pthread_mutex_destroy(&metrics->lock);
    free(metrics);
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

/* The histogram of that name; the first free one if there is none yet; NULL when all are taken. */
static histogram *
find_span(mc_metrics *metrics, const char *span)
{
    for (int i = 0; i < SPANS_MAX; i++) {
        const char *name = atomic_load_explicit(&metrics->spans[i].name, memory_order_acquire);
        if (name == NULL || name == span || strcmp(name, span) == 0)
            return &metrics->spans[i];
    }
    return NULL;
}

void
mc_observe(mc_metrics *metrics, const char *span, int64_t microseconds)
{
    if (metrics == NULL)
        return;
    histogram *h = find_span(metrics, span);
    if (h != NULL && atomic_load_explicit(&h->name, memory_order_relaxed) == NULL) {
        pthread_mutex_lock(&metrics->lock);
        h = find_span(metrics, span);
        if (h != NULL)
            atomic_store_explicit(&h->name, span, memory_order_release);
        pthread_mutex_unlock(&metrics->lock);
    }
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
append(mc_buf *out, const char *text, apr_pool_t *pool)
{
    return mc_buf_append(out, text, strlen(text), pool);
}

static mc_error *
write_counters(const mc_metrics *metrics, mc_buf *out, apr_pool_t *pool)
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
        /* The family's name is the sample's without "_total". */
        const char *family = apr_pstrndup(pool, rows[i].name, strlen(rows[i].name) - strlen("_total"));
        MC_TRY(append(out,
                      apr_psprintf(pool,
                                   "# TYPE mapcache_%s counter\n# HELP mapcache_%s %s\nmapcache_%s_total %" PRIu64 "\n",
                                   family, family, rows[i].help, family, mc_counter_value(metrics, (mc_counter)i)),
                      pool));
    }
    return MC_OK;
}

/* Microseconds as decimal seconds, exactly. */
static const char *
seconds(uint64_t microseconds, apr_pool_t *pool)
{
    return apr_psprintf(pool, "%" PRIu64 ".%06u", microseconds / 1000000, (unsigned)(microseconds % 1000000));
}

static mc_error *
write_span(const histogram *h, const char *name, mc_buf *out, apr_pool_t *pool)
{
    uint64_t count = 0;
    for (int i = 0; i <= BOUNDS; i++) {
        count += atomic_load_explicit(&h->buckets[i], memory_order_relaxed);
        const char *bound = i < BOUNDS ? seconds((uint64_t)bounds[i], pool) : "+Inf";
        MC_TRY(append(
            out,
            apr_psprintf(pool, "mapcache_span_seconds_bucket{span=\"%s\",le=\"%s\"} %" PRIu64 "\n", name, bound, count),
            pool));
    }
    uint64_t sum = atomic_load_explicit(&h->microseconds, memory_order_relaxed);
    return append(out,
                  apr_psprintf(pool,
                               "mapcache_span_seconds_sum{span=\"%s\"} %s\n"
                               "mapcache_span_seconds_count{span=\"%s\"} %" PRIu64 "\n",
                               name, seconds(sum, pool), name, count),
                  pool);
}

mc_error *
mc_metrics_write(const mc_metrics *metrics, mc_buf *out, apr_pool_t *pool)
{
    MC_TRY(write_counters(metrics, out, pool));
    MC_TRY(append(out,
                  "# TYPE mapcache_span_seconds histogram\n# UNIT mapcache_span_seconds seconds\n"
                  "# HELP mapcache_span_seconds Durations of the steps of traced requests.\n",
                  pool));
    for (int i = 0; metrics != NULL && i < SPANS_MAX; i++) {
        const char *name = atomic_load_explicit(&metrics->spans[i].name, memory_order_acquire);
        if (name != NULL)
            MC_TRY(write_span(&metrics->spans[i], name, out, pool));
    }
    return append(out, "# EOF\n", pool);
}
