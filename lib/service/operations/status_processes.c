/* Processes, and what they depend on, as the status page shows them: the reports of all processes, added up. */
#include <apr_hash.h>
#include <apr_strings.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "service/operations/status.h"
#include "telemetry/process_reports.h"

/* Things of a kind, and processes, that are shown. */
enum { BACKENDS_SHOWN = 100, PROCESSES_SHOWN = 64 };

/* One thing, as all processes have found it. */
typedef struct backend_sum {
    mc_backend_report report; /* calls and failures of all, the last failure of any */
    int processes, works, fails, leads;
} backend_sum;

typedef struct report_sums {
    apr_hash_t *by_name;           /* backend_sum * */
    apr_array_header_t *backends;  /* backend_sum * */
    apr_array_header_t *processes; /* mc_process_report, without their things */
    int process_count, reload_failed, marks;
    unsigned apart;
    apr_pool_t *pool;
} report_sums;

static backend_sum *
find_backend_sum(report_sums *sums, const mc_backend_report *report)
{
    const char *key = apr_psprintf(sums->pool, "%d %u %s", (int)report->kind, report->model, report->name);
    backend_sum *sum = apr_hash_get(sums->by_name, key, APR_HASH_KEY_STRING);
    if (sum != NULL)
        return sum;
    sum = apr_pcalloc(sums->pool, sizeof(*sum));
    sum->report = *report;
    sum->report.calls = sum->report.failures = 0;
    sum->report.failed = sum->report.read = 0;
    apr_hash_set(sums->by_name, key, APR_HASH_KEY_STRING, sum);
    APR_ARRAY_PUSH(sums->backends, backend_sum *) = sum;
    return sum;
}

static void
add_backend(report_sums *sums, const mc_backend_report *report)
{
    backend_sum *sum = find_backend_sum(sums, report);
    sum->processes++;
    sum->works += report->state == MC_BACKEND_WORKS;
    sum->fails += report->state == MC_BACKEND_FAILS;
    sum->leads += report->leads;
    sum->report.calls += report->calls;
    sum->report.failures += report->failures;
    if (report->read > sum->report.read)
        sum->report.read = report->read;
    if (report->failed > sum->report.failed) {
        sum->report.failed = report->failed;
        sum->report.error = report->error;
    }
}

static void
add_process_report(void *baton, const mc_process_report *report)
{
    report_sums *sums = baton;
    sums->process_count++;
    sums->reload_failed += report->reload_failed;
    sums->apart += report->apart;
    if (report->marks > sums->marks)
        sums->marks = report->marks;
    if (sums->processes->nelts < PROCESSES_SHOWN)
        memcpy(apr_array_push(sums->processes), report, offsetof(mc_process_report, backends));
    for (int i = 0; i < report->count; i++)
        add_backend(sums, &report->backends[i]);
}

/* What fails comes first, then by name. */
static int
compare_backend_sums(const void *a, const void *b)
{
    const backend_sum *one = *(const backend_sum *const *)a, *other = *(const backend_sum *const *)b;
    if ((one->fails > 0) != (other->fails > 0))
        return one->fails > 0 ? -1 : 1;
    return strcmp(one->report.name, other->report.name);
}

static int64_t
age_in_seconds(apr_time_t moment)
{
    const apr_time_t now = mc_clock_now();
    return now > moment ? apr_time_sec(now - moment) : 0;
}

static void
write_backend(mc_json_writer *json, const backend_sum *sum)
{
    const mc_backend_report *report = &sum->report;
    mc_json_open_object(json, NULL);
    mc_json_string(json, "name", report->name);
    if (*report->type != '\0')
        mc_json_string(json, "type", report->type);
    if (*report->position != '\0')
        mc_json_string(json, "position", report->position);
    mc_json_string(json, "state", sum->fails > 0 ? "fails" : sum->works > 0 ? "works" : "unasked");
    mc_json_integer(json, "processes", sum->processes);
    mc_json_integer(json, "failing_processes", sum->fails);
    if (report->kind == MC_BACKEND_SOURCE)
        mc_json_integer(json, "calls", (int64_t)report->calls);
    if (report->kind == MC_BACKEND_SOURCE || report->kind == MC_BACKEND_STORE)
        mc_json_integer(json, "failures", (int64_t)report->failures);
    if (report->failed != 0) {
        mc_json_integer(json, "failed_seconds_ago", age_in_seconds(report->failed));
        mc_json_string(json, "failure", mc_error_name((mc_error_kind)report->error));
    }
    if (report->kind == MC_BACKEND_LOG) {
        mc_json_boolean(json, "led", sum->leads > 0);
        if (report->read != 0)
            mc_json_integer(json, "read_seconds_ago", age_in_seconds(report->read));
    }
    mc_json_close(json);
}

static void
write_backends(mc_json_writer *json, const char *key, mc_backend_kind kind, const report_sums *sums)
{
    int count = 0;
    mc_json_open_array(json, key);
    for (int i = 0; i < sums->backends->nelts && count < BACKENDS_SHOWN; i++) {
        const backend_sum *sum = APR_ARRAY_IDX(sums->backends, i, const backend_sum *);
        if (sum->report.kind != kind)
            continue;
        write_backend(json, sum);
        count++;
    }
    mc_json_close(json);
}

static void
write_process(mc_json_writer *json, const mc_process_report *report)
{
    mc_json_open_object(json, NULL);
    mc_json_integer(json, "id", report->process);
    mc_json_integer(json, "started_seconds_ago", age_in_seconds(report->started));
    mc_json_integer(json, "seen_seconds_ago", age_in_seconds(report->seen));
    mc_json_boolean(json, "draining", report->draining);
    mc_json_boolean(json, "reload_failed", report->reload_failed);
    mc_json_integer(json, "resident_bytes", report->resident);
    mc_json_integer(json, "budget_used_bytes", report->budget_used);
    mc_json_integer(json, "budget_bytes", report->budget);
    mc_json_integer(json, "memory_cache_bytes", report->memory_used);
    mc_json_integer(json, "memory_cache_limit_bytes", report->memory);
    mc_json_integer(json, "behind_waiting_bytes", report->behind);
    mc_json_integer(json, "workers", report->workers);
    mc_json_integer(json, "workers_idle", report->workers_idle);
    mc_json_integer(json, "io_workers", report->io_workers);
    mc_json_integer(json, "io_workers_idle", report->io_workers_idle);
    mc_json_integer(json, "open_files", report->open_files);
    mc_json_close(json);
}

void
mc_status_write_processes(mc_json_writer *json, mc_metrics *metrics, apr_pool_t *pool)
{
    report_sums sums = { .by_name = apr_hash_make(pool),
                         .backends = apr_array_make(pool, 64, sizeof(backend_sum *)),
                         .processes = apr_array_make(pool, 8, sizeof(mc_process_report)),
                         .pool = pool };
    mc_process_reports_visit(mc_monitor_of(metrics), add_process_report, &sums, pool);
    qsort(sums.backends->elts, (size_t)sums.backends->nelts, sizeof(backend_sum *), compare_backend_sums);
    write_backends(json, "stores", MC_BACKEND_STORE, &sums);
    write_backends(json, "sources", MC_BACKEND_SOURCE, &sums);
    write_backends(json, "servers", MC_BACKEND_SERVER, &sums);
    write_backends(json, "change_logs", MC_BACKEND_LOG, &sums);
    mc_json_integer(json, "change_marks", sums.marks);
    mc_json_integer(json, "not_reported", (int64_t)sums.apart);
    mc_json_open_object(json, "processes");
    mc_json_integer(json, "total", sums.process_count);
    mc_json_integer(json, "reload_failed", sums.reload_failed);
    mc_json_open_array(json, "items");
    for (int i = 0; i < sums.processes->nelts; i++)
        write_process(json, &APR_ARRAY_IDX(sums.processes, i, const mc_process_report));
    mc_json_close(json);
    mc_json_close(json);
}
