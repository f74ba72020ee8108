#include "unit.h"

#include <apr_strings.h>
#include <pthread.h>
#include <string.h>

#include "base/metrics.h"
#include "cache/cache_counters.h"
#include "server/server_counters.h"

static const char *
written(const mc_metrics *metrics)
{
    mc_buf *buf = mc_buf_attach(mc_buf_create(1000, 1 << 20), pool);
    ck_ok(mc_metrics_write(metrics, MC_METRICS_OPEN, buf, pool));
    return apr_pstrmemdup(pool, (char *)buf->data, buf->size);
}

static void *
count_much(void *baton)
{
    for (int i = 0; i < 10000; i++) {
        mc_count(baton, MC_COUNT_cache_hits_total, 2);
        mc_observe(baton, i % 2 == 0 ? "even" : "odd", i);
    }
    return NULL;
}

START_TEST(nothing_is_lost_between_threads)
{
    mc_metrics *metrics = mc_metrics_create();
    pthread_t threads[8];
    for (int i = 0; i < 8; i++)
        pthread_create(&threads[i], NULL, count_much, metrics);
    for (int i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
    ck_assert_uint_eq(mc_counter_value(metrics, MC_COUNT_cache_hits_total), 160000);
    const char *text = written(metrics);
    ck_assert_ptr_nonnull(strstr(text, "mapcache_cache_hits_total 160000\n"));
    ck_assert_ptr_nonnull(strstr(text, "mapcache_span_seconds_count{span=\"even\"} 40000\n"));
    ck_assert_ptr_nonnull(strstr(text, "mapcache_span_seconds_count{span=\"odd\"} 40000\n"));
    mc_metrics_destroy(metrics);
}
END_TEST

START_TEST(the_text_is_openmetrics)
{
    mc_metrics *metrics = mc_metrics_create();
    mc_observe(metrics, "a", 50);
    mc_observe(metrics, "a", 51);
    mc_observe(metrics, "a", 99000000);
    mc_observe(metrics, "a", -5);
    const char *text = written(metrics);
    ck_assert_ptr_nonnull(strstr(text, "# TYPE mapcache_requests counter\n# HELP mapcache_requests Requests handled.\n"
                                       "mapcache_requests_total 0\n"));
    ck_assert_ptr_nonnull(strstr(text, "_bucket{span=\"a\",le=\"0.000050\"} 2\n"));
    ck_assert_ptr_nonnull(strstr(text, "_bucket{span=\"a\",le=\"0.000100\"} 3\n"));
    ck_assert_ptr_nonnull(strstr(text, "_bucket{span=\"a\",le=\"10.000000\"} 3\n"));
    ck_assert_ptr_nonnull(strstr(text, "_bucket{span=\"a\",le=\"+Inf\"} 4\n"));
    ck_assert_ptr_nonnull(strstr(text, "_sum{span=\"a\"} 99.000101\n"));
    ck_assert_str_eq(text + strlen(text) - 6, "# EOF\n");
    mc_metrics_destroy(metrics);
}
END_TEST

START_TEST(names_are_bounded_and_off_is_off)
{
    mc_metrics *metrics = mc_metrics_create();
    for (int i = 0; i < 1000; i++)
        mc_observe(metrics, apr_psprintf(pool, "name%d", i), 1);
    const char *text = written(metrics);
    ck_assert_ptr_nonnull(strstr(text, "name63\""));
    ck_assert_ptr_null(strstr(text, "name64\""));
    mc_metrics_destroy(metrics);
    mc_count(NULL, MC_COUNT_requests_total, 1);
    mc_observe(NULL, "x", 1);
    ck_assert_uint_eq(mc_counter_value(NULL, MC_COUNT_requests_total), 0);
    mc_metrics_destroy(NULL);
}
END_TEST

START_TEST(quantiles_lie_between_the_bounds_of_their_bucket)
{
    mc_histogram histogram = { 0 };
    ck_assert_double_eq(mc_histogram_quantile(&histogram, 0.5), 0);
    for (int i = 0; i < 10; i++)
        mc_histogram_add(&histogram, 200); /* of the bucket from 100 to 250 */
    ck_assert_double_eq_tol(mc_histogram_quantile(&histogram, 0.5), 175, 1e-9);
    ck_assert_double_eq_tol(mc_histogram_quantile(&histogram, 1), 250, 1e-9);
    for (int i = 0; i < 90; i++)
        mc_histogram_add(&histogram, 40);
    ck_assert_double_eq_tol(mc_histogram_quantile(&histogram, 0.45), 25, 1e-9);
    ck_assert_double_eq_tol(mc_histogram_quantile(&histogram, 0.95), 175, 1e-9);
    mc_histogram_add(&histogram, INT64_C(60000000));
    ck_assert_double_eq(mc_histogram_quantile(&histogram, 1), 10000000); /* there is no upper bound */
    ck_assert_int_eq(mc_histogram_bound(0), 50);
}
END_TEST

UNIT_MAIN("metrics", nothing_is_lost_between_threads, the_text_is_openmetrics, names_are_bounded_and_off_is_off,
          quantiles_lie_between_the_bounds_of_their_bucket)
