/*
 * Counters and histograms of a process: one table that code, /metrics and docs share. Counters are C11 atomics.
 */
#ifndef MC_BASE_METRICS_H
#define MC_BASE_METRICS_H

#include <stdint.h>

#include <apr_time.h>

#include "mapcache/buf.h"

/* name (OpenMetrics, without the mapcache_ prefix), help */
#define MC_COUNTERS(X)                                                                                                 \
    X(requests_total, "Requests handled.")                                                                             \
    X(client_errors_total, "Responses with a 4xx status.")                                                             \
    X(server_errors_total, "Responses with a 5xx status.")                                                             \
    X(not_modified_total, "Responses with status 304.")                                                                \
    X(cache_hits_total, "Tiles found in their cache.")                                                                 \
    X(cache_misses_total, "Tiles not found in their cache.")                                                           \
    X(cache_errors_total, "Cache operations that failed.")                                                             \
    X(memory_hits_total, "Tiles answered from memory.")                                                                \
    X(footprint_hits_total, "Tiles of maps whose footprint was in the memory of the process.")                         \
    X(footprint_misses_total, "Tiles of maps that were read and decoded for their footprint.")                         \
    X(footprint_absences_total, "Tiles of maps that were known to be absent one by one.")                              \
    X(coverage_skips_total, "Tiles of maps that lay outside of what their file is known to have.")                     \
    X(memory_evictions_total, "Entries dropped from memory to stay inside its bound.")                                 \
    X(memory_emptied_total, "Parts of the shared memory emptied because a process was killed while it wrote.")         \
    X(memory_refused_total, "Large allocations that were refused because the budget of a process was used up.")        \
    X(renders_total, "Metatiles rendered.")                                                                            \
    X(vector_tiles_total, "Vector tiles made.")                                                                        \
    X(vector_features_total, "Features in the vector tiles that were made.")                                           \
    X(vector_dropped_total, "Features left out of vector tiles that were over their budget.")                          \
    X(vector_bytes_total, "Bytes of the vector tiles that were made, before compression.")                             \
    X(vector_late_total, "Vector tiles that were given up because they took longer than their budget.")                \
    X(render_waits_total, "Requests that waited for another one's render.")                                            \
    X(remembered_failures_total, "Requests answered with the error of a render that failed a moment before.")          \
    X(stale_tiles_total, "Expired tiles that were served because rendering them again failed.")                        \
    X(vector_maps_total, "Maps and metatiles drawn from vector data.")                                                 \
    X(refused_total, "Requests that were refused because too much was under way.")                                     \
    X(origin_requests_total, "Requests sent to origins.")                                                              \
    X(origin_errors_total, "Requests to origins that failed.")                                                         \
    X(origin_rests_total, "Requests not sent because their origin had failed several times in a row.")                 \
    X(origin_bytes_total, "Bytes received from origins.")                                                              \
    X(mapserver_maps_total, "Maps drawn by processes of MapServer.")                                                   \
    X(mapserver_started_total, "Processes of MapServer that were started.")                                            \
    X(mapserver_lost_total, "Processes of MapServer that ended in the middle of a map, or were killed for it.")        \
    X(store_requests_total, "Requests sent to stores of tiles over HTTP.")                                             \
    X(store_errors_total, "Requests to stores of tiles over HTTP that failed.")                                        \
    X(store_bytes_total, "Bytes received from stores of tiles over HTTP.")                                             \
    X(handles_opened_total, "SQLite files opened.")                                                                    \
    X(handles_evicted_total, "SQLite handles closed to stay inside the bound.")                                        \
    X(postgres_queries_total, "Queries sent to PostgreSQL.")                                                           \
    X(postgres_errors_total, "Queries to PostgreSQL that failed.")                                                     \
    X(postgres_bytes_total, "Bytes of rows received from PostgreSQL.")                                                 \
    X(postgres_connections_total, "Connections to PostgreSQL that were opened.")                                       \
    X(postgres_cancels_total, "Queries that were cancelled at PostgreSQL.")                                            \
    X(remote_requests_total, "Requests sent to memcached and redis servers.")                                          \
    X(remote_errors_total, "Requests to memcached and redis servers that failed.")                                     \
    X(remote_rests_total, "Requests not sent because their memcached or redis server had failed a moment before.")     \
    X(behind_stored_total, "Tiles stored behind the answer (<write>behind</write> of a multitier cache).")             \
    X(behind_lost_total, "Tiles that waited to be stored behind the answer and were lost.")                            \
    X(quota_tiles_total, "Tiles removed to keep caches to their max_size.")                                            \
    X(quota_bytes_total, "Bytes of the tiles removed to keep caches to their max_size.")                               \
    X(dimension_queries_total, "Questions that databases of dimensions were asked.")                                   \
    X(dimension_remembered_total, "Questions of dimensions that the memory of the process answered.")                  \
    X(traces_sampled_total, "Requests whose spans were kept for a receiver of traces.")                                \
    X(traces_exported_total, "Traces that a receiver took.")                                                           \
    X(traces_dropped_total, "Traces that could not be sent, or that the queue had no room for.")                       \
    X(response_bytes_total, "Bytes of response bodies.")

typedef enum mc_counter {
#define X(name, help) MC_COUNT_##name,
    MC_COUNTERS(X)
#undef X
        MC_COUNTER_COUNT
} mc_counter;

typedef struct mc_metrics mc_metrics;

/* Made before a fork they are those of both processes: they lie in shared memory, and nothing locks them. */
mc_metrics *mc_metrics_create(void);

/* The same with so many bytes more for what a higher room counts by itself: zeroed, and as shared as the rest. */
mc_metrics *mc_metrics_create_with(size_t bytes);
void *mc_metrics_annex(mc_metrics *metrics); /* NULL without, and of NULL */

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
