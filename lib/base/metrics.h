/*
 * Counters and histograms of a process: one table that code, /metrics and docs share. Counters are C11 atomics.
 */
#ifndef MC_BASE_METRICS_H
#define MC_BASE_METRICS_H

#include <stdint.h>

#include <apr_time.h>

#include "mapcache/buf.h"

/* A counter of the process: what it is called (OpenMetrics, without the mapcache_ prefix), and what it counts. */
typedef struct mc_counter_row {
    const char *name, *help;
    int place; /* in the table of the process; the same in all that come from one parent */
} mc_counter_row;

typedef const mc_counter_row *mc_counter;

/*
 * Each room declares its own: a list of rows X(name, help) in a header of the room, of which MC_COUNTER_DECLARE makes
 * the names that mc_count takes, and MC_COUNTERS_DEFINE in one of its files the rows themselves. All of them together
 * are the one table that /metrics, /status and who else asks by mc_counter_at see.
 */
#define MC_COUNTER_DECLARE(name_, help_) extern mc_counter_row MC_COUNT_##name_[1];
#define MC_COUNTER_ROW_(name_, help_) mc_counter_row MC_COUNT_##name_[1] = { { #name_, help_, 0 } };
#define MC_COUNTER_REFERENCE_(name_, help_) MC_COUNT_##name_,
#define MC_COUNTERS_DEFINE(list)                                                                                       \
    list(MC_COUNTER_ROW_) __attribute__((constructor)) static void register_counters(void)                             \
    {                                                                                                                  \
        mc_counter_row *const rows[] = { list(MC_COUNTER_REFERENCE_) };                                                \
        mc_counters_register(rows, (int)(sizeof(rows) / sizeof(rows[0])));                                             \
    }

/* Before main: no process has counted yet. */
void mc_counters_register(mc_counter_row *const *rows, int count);

/* All counters, by name; NULL behind the last one. */
mc_counter mc_counter_at(int index);

/* name, help: of what this room counts itself */
#define MC_BASE_COUNTERS(X)                                                                                            \
    X(memory_refused_total, "Large allocations that were refused because the budget of a process was used up.")        \
    X(refused_total, "Requests that were refused because too much was under way.")

MC_BASE_COUNTERS(MC_COUNTER_DECLARE)

typedef struct mc_metrics mc_metrics;

/* Made before a fork they are those of both processes: they lie in shared memory, and nothing locks them. */
mc_metrics *mc_metrics_create(void);

/* The same with so many bytes more for what a higher room counts by itself: zeroed, and as shared as the rest. */
mc_metrics *mc_metrics_create_with(size_t bytes);
void *mc_metrics_annex(mc_metrics *metrics);             /* NULL without, and of NULL */
size_t mc_metrics_annex_size(const mc_metrics *metrics); /* at least what was asked for; 0 without, and of NULL */

void mc_metrics_destroy(mc_metrics *metrics);

/* When they were made; 0 for NULL. */
apr_time_t mc_metrics_started(const mc_metrics *metrics);

/* `metrics` may be NULL: nothing is counted. */
void mc_count(mc_metrics *metrics, mc_counter counter, uint64_t amount);
uint64_t mc_counter_value(const mc_metrics *metrics, mc_counter counter);

/* Microseconds of a span of that name (a string constant); a bounded number of names. */
void mc_observe(mc_metrics *metrics, const char *span, int64_t microseconds);

/* Upper bounds of all histograms, in microseconds; what is above the last one is in a bucket of its own. */
enum { MC_HISTOGRAM_BOUNDS = 17, MC_HISTOGRAM_BUCKETS = MC_HISTOGRAM_BOUNDS + 1 };

typedef struct mc_histogram {
    _Atomic uint64_t buckets[MC_HISTOGRAM_BUCKETS];
    _Atomic uint64_t microseconds;
} mc_histogram;

void mc_histogram_add(mc_histogram *histogram, int64_t microseconds);
void mc_histogram_add_all(mc_histogram *sum, const mc_histogram *histogram);

/* Upper bound of a bucket but the last, in microseconds. */
int64_t mc_histogram_bound(int bucket);

/* Microseconds that `share` (0 to 1) of what was added did not exceed: between the bounds of a bucket by the count, as
 * PromQL's histogram_quantile; of the last bucket its lower bound. 0: nothing was added. */
double mc_histogram_quantile(const mc_histogram *histogram, double share);

/* The samples of one histogram of the family `name` (without "mapcache_"); `labels`: "span=\"x\"". */
mc_error *mc_histogram_write(mc_buf *out, const char *name, const char *labels, const mc_histogram *histogram,
                             apr_pool_t *pool) MC_CHECKED;

/* OpenMetrics 1.0, or Prometheus' older text format 0.0.4: there a counter's family bears the name of its sample, and
 * units and the end are not said. */
typedef enum mc_metrics_format { MC_METRICS_OPEN, MC_METRICS_PLAIN } mc_metrics_format;

/* One value that goes up and down: of the process that answers. Before mc_metrics_write, in either format. */
mc_error *mc_metrics_write_gauge(mc_buf *out, const char *name, const char *help, uint64_t value,
                                 apr_pool_t *pool) MC_CHECKED;

/* The same of several things that a label names: "# TYPE" and "# HELP" first, then a line for each. */
mc_error *mc_metrics_write_family(mc_buf *out, const char *name, const char *help, apr_pool_t *pool) MC_CHECKED;
mc_error *mc_metrics_write_labelled(mc_buf *out, const char *name, const char *label, const char *thing, int64_t value,
                                    apr_pool_t *pool) MC_CHECKED;

/* What a family begins with: `type` is counter, gauge or histogram; `unit` of a histogram, or NULL. */
mc_error *mc_metrics_write_head(mc_buf *out, mc_metrics_format format, const char *name, const char *type,
                                const char *unit, const char *help, apr_pool_t *pool) MC_CHECKED;

/* A sample with labels that are written already. */
mc_error *mc_metrics_write_sample(mc_buf *out, const char *name, const char *labels, uint64_t value,
                                  apr_pool_t *pool) MC_CHECKED;

/* A value of a label, escaped (OpenMetrics 1.0, escaping). */
const char *mc_metrics_escape_label(const char *text, apr_pool_t *pool);

/* Text of everything else. */
mc_error *mc_metrics_write(const mc_metrics *metrics, mc_metrics_format format, mc_buf *out,
                           apr_pool_t *pool) MC_CHECKED;

#endif
