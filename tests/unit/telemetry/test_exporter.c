#include "origin.h"

#include <string.h>

#include "base/metrics.h"
#include "http/http_counters.h"
#include "telemetry/exporter.h"
#include "telemetry/telemetry_counters.h"

static origin receiver;
static mc_exporter *exporter;

/* The fixture of the origin has made the HTTP client. */
static void
set_up_exporter(void)
{
    unit_setup();
    receiver = origin_start();
    process.metrics = mc_metrics_create();
    exporter = mc_exporter_create(&process);
}

static void
tear_down_exporter(void)
{
    mc_exporter_destroy(exporter);
    mc_metrics_destroy(process.metrics);
    process.metrics = NULL;
    origin_stop(&receiver);
    unit_teardown();
}

static mc_otlp_bytes
some_spans(size_t size)
{
    mc_otlp_bytes spans = { .data = calloc(1, size), .size = size, .room = size };
    ck_assert_ptr_nonnull(spans.data);
    return spans;
}

static void
end_exporter(void)
{
    mc_exporter_destroy(exporter);
    exporter = NULL;
}

START_TEST(what_waits_is_sent_at_the_end)
{
    mc_export_target *target = mc_export_target_create(origin_url(&receiver, "/echo"), NULL, "maps");
    for (int i = 0; i < 10; i++)
        mc_exporter_push(exporter, target, some_spans(10));
    mc_export_target_unref(target); /* its configuration has ended */
    end_exporter();
    ck_assert_uint_eq(mc_counter_value(process.metrics, MC_COUNT_traces_exported_total), 10);
    ck_assert_uint_eq(mc_counter_value(process.metrics, MC_COUNT_traces_dropped_total), 0);
    ck_assert_int_ge(origin_count(&receiver), 1);
    ck_assert_str_eq(origin_last(&receiver, "method"), "POST");
    ck_assert_uint_eq(mc_counter_value(process.metrics, MC_COUNT_origin_requests_total), 0);
    ck_assert_uint_eq(mc_counter_value(process.metrics, MC_COUNT_store_requests_total), 0);
}
END_TEST

/* The thread hangs at a receiver that does not answer: what comes meanwhile fills the queue, and no more. */
START_TEST(the_queue_is_bounded_and_nobody_waits)
{
    const apr_time_t begin = mc_clock_now();
    mc_export_target *target = mc_export_target_create(origin_url(&receiver, "/hold/export/wms?"), NULL, "maps");
    for (int i = 0; i < 6000; i++)
        mc_exporter_push(exporter, target, some_spans(100));
    ck_assert_uint_ge(mc_counter_value(process.metrics, MC_COUNT_traces_dropped_total), 6000 - 2048 - 512 * 2);
    for (int i = 0; i < 20; i++)
        mc_exporter_push(exporter, target, some_spans(7 << 20));
    end_exporter();
    ck_assert_uint_eq(mc_counter_value(process.metrics, MC_COUNT_traces_dropped_total), 6020);
    ck_assert_uint_eq(mc_counter_value(process.metrics, MC_COUNT_traces_exported_total), 0);
    ck_assert_msg(seconds_since(begin) < 45, "%f s",
                  seconds_since(begin)); /* two, on a machine that has nothing else */
    mc_export_target_unref(target);
}
END_TEST

START_TEST(what_was_lost_before_is_counted)
{
    mc_export_target *target = mc_export_target_create("http://127.0.0.1:1/v1/traces", NULL, "maps");
    mc_exporter_push(exporter, target, (mc_otlp_bytes){ .lost = true });
    ck_assert_uint_eq(mc_counter_value(process.metrics, MC_COUNT_traces_dropped_total), 1);
    mc_exporter_push(exporter, target, some_spans(1)); /* nobody listens there */
    end_exporter();
    ck_assert_uint_eq(mc_counter_value(process.metrics, MC_COUNT_traces_dropped_total), 2);
    mc_export_target_unref(target);
}
END_TEST

/* A forked process has no such thread, and does not wait for one. */
START_TEST(a_forked_process_lets_go)
{
    mc_export_target *target = mc_export_target_create(origin_url(&receiver, "/echo"), NULL, "maps");
    mc_exporter_push(exporter, target, some_spans(10));
    pid_t child = fork();
    if (child == 0) {
        mc_exporter_destroy(exporter);
        _exit(0);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    end_exporter();
    ck_assert_uint_eq(mc_counter_value(process.metrics, MC_COUNT_traces_exported_total), 1);
    mc_export_target_unref(target);
}
END_TEST

START_TEST(a_second_has_a_limit)
{
    int let_in = 0;
    const int64_t second = apr_time_sec(mc_clock_now());
    for (int i = 0; i < 1000; i++)
        let_in += mc_exporter_lets_in(exporter, 7);
    ck_assert_int_ge(let_in, 7);
    ck_assert_int_le(let_in, 7 * (int)(apr_time_sec(mc_clock_now()) - second + 1));
    for (int i = 0; i < 1000; i++)
        ck_assert(mc_exporter_lets_in(exporter, 0));
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = { what_waits_is_sent_at_the_end, the_queue_is_bounded_and_nobody_waits,
                                   what_was_lost_before_is_counted, a_forked_process_lets_go, a_second_has_a_limit };
    return unit_run_between("exporter", tests, (int)(sizeof(tests) / sizeof(*tests)), set_up_exporter,
                            tear_down_exporter);
}
