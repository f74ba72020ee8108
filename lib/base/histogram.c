/* Histograms of durations: see metrics.h. */
#include <apr_strings.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>

#include "base/metrics.h"

static const int64_t bounds[MC_HISTOGRAM_BOUNDS] = { 50,     100,     250,     500,     1000,    2500,
                                                     5000,   10000,   25000,   50000,   100000,  250000,
                                                     500000, 1000000, 2500000, 5000000, 10000000 };

void
mc_histogram_add(mc_histogram *histogram, int64_t microseconds)
{
    int bucket = 0;
    if (microseconds < 0)
        microseconds = 0; /* the clock was set back */
    while (bucket < MC_HISTOGRAM_BOUNDS && microseconds > bounds[bucket])
        bucket++;
    atomic_fetch_add_explicit(&histogram->buckets[bucket], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&histogram->microseconds, (uint64_t)microseconds, memory_order_relaxed);
}

void
mc_histogram_add_all(mc_histogram *sum, const mc_histogram *histogram)
{
    for (int i = 0; i < MC_HISTOGRAM_BUCKETS; i++)
        sum->buckets[i] += atomic_load_explicit(&histogram->buckets[i], memory_order_relaxed);
    sum->microseconds += atomic_load_explicit(&histogram->microseconds, memory_order_relaxed);
}

int64_t
mc_histogram_bound(int bucket)
{
    return bounds[bucket];
}

double
mc_histogram_quantile(const mc_histogram *histogram, double share)
{
    uint64_t count = 0, below = 0;
    for (int i = 0; i < MC_HISTOGRAM_BUCKETS; i++)
        count += histogram->buckets[i];
    const double rank = share * (double)count;
    for (int i = 0; count > 0 && i < MC_HISTOGRAM_BOUNDS; i++) {
        const uint64_t here = histogram->buckets[i];
        const double lower = i == 0 ? 0 : (double)bounds[i - 1];
        if (here > 0 && (double)(below + here) >= rank)
            return lower + ((double)bounds[i] - lower) * (rank - (double)below) / (double)here;
        below += here;
    }
    return count == 0 ? 0 : (double)bounds[MC_HISTOGRAM_BOUNDS - 1];
}

/* Microseconds as decimal seconds, exactly. */
static const char *
format_metric_seconds(uint64_t microseconds, apr_pool_t *pool)
{
    return apr_psprintf(pool, "%" PRIu64 ".%06u", microseconds / 1000000, (unsigned)(microseconds % 1000000));
}

mc_error *
mc_histogram_write(mc_buf *out, const char *name, const char *labels, const mc_histogram *histogram, apr_pool_t *pool)
{
    uint64_t count = 0;
    const char *text;
    for (int i = 0; i < MC_HISTOGRAM_BUCKETS; i++) {
        count += histogram->buckets[i];
        const char *bound = i < MC_HISTOGRAM_BOUNDS ? format_metric_seconds((uint64_t)bounds[i], pool) : "+Inf";
        text = apr_psprintf(pool, "mapcache_%s_bucket{%s,le=\"%s\"} %" PRIu64 "\n", name, labels, bound, count);
        MC_TRY(mc_buf_append(out, text, strlen(text), pool));
    }
    text = apr_psprintf(pool, "mapcache_%s_sum{%s} %s\nmapcache_%s_count{%s} %" PRIu64 "\n", name, labels,
                        format_metric_seconds(histogram->microseconds, pool), name, labels, count);
    return mc_buf_append(out, text, strlen(text), pool);
}
