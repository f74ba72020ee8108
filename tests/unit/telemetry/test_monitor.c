/* What processes note for the status page: incidents, slow requests, reports. */
#include "unit.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <apr_strings.h>

#include "mapcache/trace.h"
#include "telemetry/answers.h"
#include "telemetry/monitor_tables.h"

static mc_metrics *metrics;
static mc_monitor *monitor;

static void
set_up_monitor(void)
{
    unit_setup();
    metrics = mc_metrics_create_with(mc_answers_size() + mc_monitor_size());
    mc_monitor_init(metrics);
    monitor = mc_monitor_of(metrics);
    ck_assert_ptr_nonnull(monitor);
}

static void
tear_down_monitor(void)
{
    mc_metrics_destroy(metrics);
    unit_teardown();
}

/* --- incidents ---------------------------------------------------------------------------------------------------- */

static mc_incident
described(const char *message, const char *tileset, const char *query)
{
    mc_incident incident;
    const mc_account account = { .base = "http://maps.example/mc",
                                 .path = "/wmts",
                                 .query = query,
                                 .service = "wmts",
                                 .tileset = tileset,
                                 .status = 502 };
    mc_incident_describe(&incident, MC_LOG_ERROR, message, &account, "/etc/mapcache/mapcache.xml:12", pool);
    return incident;
}

static void
add_incident(const char *message, const char *tileset)
{
    const mc_incident incident = described(message, tileset, NULL);
    mc_incidents_add(monitor, &incident);
}

START_TEST(the_same_incident_is_counted)
{
    mc_incident *found = apr_palloc(pool, sizeof(*found) * MC_INCIDENTS_MAX);
    ck_assert_int_eq(mc_incidents_copy(found, monitor), 0);
    for (int i = 0; i < 5; i++)
        add_incident("the origin is away", "roads");
    add_incident("the origin is away", "rivers");
    ck_assert_int_eq(mc_incidents_copy(found, monitor), 2);
    ck_assert_str_eq(found[0].tileset, "rivers");
    ck_assert_uint_eq(found[0].count, 1);
    ck_assert_str_eq(found[1].tileset, "roads");
    ck_assert_uint_eq(found[1].count, 5);
    ck_assert_int_le(found[1].first, found[1].last);
    ck_assert_int_eq(found[1].status, 502);
    ck_assert_str_eq(found[1].position, "/etc/mapcache/mapcache.xml:12");
    ck_assert_str_eq(found[1].url, "/mc/wmts");
}
END_TEST

START_TEST(only_the_last_incidents_are_kept)
{
    mc_incident *found = apr_palloc(pool, sizeof(*found) * MC_INCIDENTS_MAX);
    for (int i = 0; i < 3 * MC_INCIDENTS_MAX; i++)
        add_incident(apr_psprintf(pool, "message %d", i), "roads");
    ck_assert_int_eq(mc_incidents_copy(found, monitor), MC_INCIDENTS_MAX);
    for (int i = 0; i < MC_INCIDENTS_MAX; i++) {
        const int number = atoi(found[i].text + strlen("message "));
        ck_assert_msg(number >= 2 * MC_INCIDENTS_MAX, "%s is older than others", found[i].text);
    }
}
END_TEST

START_TEST(secrets_are_hidden)
{
    static const struct {
        const char *message, *query, *secret;
    } rows[] = {
        { "away", "key=swordfish&layer=x", "swordfish" },
        { "away", "layer=x&Access_Token=swordfish", "swordfish" },
        { "away", "%6bey=swordfish", "swordfish" },
        { "http://joe:swordfish@origin/wms?x=1 is away", NULL, "swordfish" },
        { "GET http://origin/wms?a=b&apikey=swordfish failed: status 500", NULL, "swordfish" },
        { "first http://o/?token=swordfish then http://o/?signature=swordfish end", NULL, "swordfish" },
        { "connection host=db password='sword fish' user=a is away", NULL, "sword fish" },
        { "postgresql://joe:swordfish@db/maps is away", NULL, "swordfish" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const mc_incident incident = described(rows[i].message, "roads", rows[i].query);
        ck_assert_msg(strstr(incident.text, rows[i].secret) == NULL, "%s", incident.text);
        ck_assert_msg(strstr(incident.url, rows[i].secret) == NULL, "%s", incident.url);
        ck_assert_msg(strstr(incident.text, "***") != NULL || strstr(incident.url, "***") != NULL, "%s %s",
                      incident.text, incident.url);
    }
    const mc_incident incident = described("GET http://o/?apikey=x failed: status 500", "roads", "key=x&layer=roads");
    ck_assert_str_eq(incident.text, "GET http://o/?apikey=*** failed: status 500");
    ck_assert_str_eq(incident.url, "/mc/wmts?key=***&layer=roads");
}
END_TEST

START_TEST(texts_are_cut)
{
    char *longest = apr_palloc(pool, 100001), small[8];
    memset(longest, 'x', 100000);
    longest[100000] = '\0';
    const mc_incident incident = described(longest, longest, longest);
    ck_assert_uint_eq(strlen(incident.text), sizeof(incident.text) - 1);
    ck_assert_uint_eq(strlen(incident.tileset), sizeof(incident.tileset) - 1);
    ck_assert_uint_eq(strlen(incident.url), sizeof(incident.url) - 1);
    mc_monitor_copy_text(small, sizeof(small), "Stra\xc3\x9f\xc3\x9f"); /* the last one has no room */
    ck_assert_str_eq(small, "Stra\xc3\x9f");
    mc_monitor_copy_text(small, sizeof(small), "seven x");
    ck_assert_str_eq(small, "seven x");
    mc_monitor_copy_text(small, sizeof(small), NULL);
    ck_assert_str_eq(small, "");
    mc_monitor_copy_text(small, sizeof(small), "\x80\x80\x80\x80\x80\x80\x80\x80\x80");
    ck_assert_str_eq(small, "");
    mc_monitor_copy_path(small, sizeof(small), "/etc/mapcache.xml");
    ck_assert_str_eq(small, "....xml");
}
END_TEST

/* --- slow requests ------------------------------------------------------------------------------------------------ */

static void
add_slow_request(int64_t duration, mc_trace *trace, apr_time_t begin)
{
    const mc_account account = { .path = "/tms/1.0.0/roads/0/0/0.png",
                                 .query = "token=swordfish",
                                 .service = "tms",
                                 .tileset = "roads",
                                 .status = 200 };
    const mc_telemetry_answer answer = { .begin = begin, .duration = duration, .result = "rendered" };
    if (mc_slow_requests_want(monitor, duration, mc_clock_now()))
        mc_slow_requests_add(monitor, &account, &answer, trace, "x.xml:1", pool);
}

START_TEST(the_slowest_requests_are_kept)
{
    mc_slow_request *found = apr_palloc(pool, sizeof(*found) * MC_SLOW_REQUESTS_MAX);
    for (int i = 0; i < 1000; i++)
        add_slow_request(i * 7919 % 1000, NULL, 0); /* each of 0 to 999 once */
    ck_assert_int_eq(mc_slow_requests_copy(found, monitor), MC_SLOW_REQUESTS_MAX);
    for (int i = 0; i < MC_SLOW_REQUESTS_MAX; i++)
        ck_assert_int_eq(found[i].duration, 999 - i);
    ck_assert(!mc_slow_requests_want(monitor, 500, mc_clock_now()));
    ck_assert(mc_slow_requests_want(monitor, 1000, mc_clock_now()));
    ck_assert(mc_slow_requests_want(monitor, 1, mc_clock_now() + 901 * APR_USEC_PER_SEC)); /* those are old then */
    ck_assert_str_eq(found[0].request.url, "/tms/1.0.0/roads/0/0/0.png?token=***");
    ck_assert_str_eq(found[0].result, "rendered");
}
END_TEST

START_TEST(the_longest_spans_of_a_request_are_kept)
{
    mc_slow_request *found = apr_palloc(pool, sizeof(*found) * MC_SLOW_REQUESTS_MAX);
    const apr_time_t begin = mc_clock_now();
    ctx.trace = mc_trace_create(NULL, NULL, NULL, NULL, pool);
    mc_trace_keep(ctx.trace, MC_TRACE_SPANS);
    {
        MC_SPAN(&ctx, "mapcache_handler");
        for (int i = 0; i < 3 * MC_SLOW_SPANS_MAX; i++) {
            MC_SPAN_ABOUT(&ctx, "mapcache_step", "a subject that is longer than there is room for it");
        }
    }
    add_slow_request(mc_clock_now() - begin, ctx.trace, begin);
    ctx.trace = NULL;
    ck_assert_int_eq(mc_slow_requests_copy(found, monitor), 1);
    ck_assert_int_eq(found->span_count, MC_SLOW_SPANS_MAX);
    ck_assert_uint_eq(found->spans_beyond, 2 * MC_SLOW_SPANS_MAX + 1);
    ck_assert_str_eq(found->spans[0].name, "mapcache_handler");
    ck_assert_uint_eq(found->spans[0].parent, 0);
    for (int i = 1; i < MC_SLOW_SPANS_MAX; i++) {
        ck_assert_uint_eq(found->spans[i].parent, found->spans[0].number);
        ck_assert_uint_gt(found->spans[i].number, found->spans[i - 1].number);
        ck_assert_int_ge(found->spans[i].begin, 0);
        ck_assert_int_le(found->spans[i].begin + found->spans[i].duration, found->duration);
        ck_assert_uint_eq(strlen(found->spans[i].about), sizeof(found->spans[i].about) - 1);
    }
}
END_TEST

/* --- processes ---------------------------------------------------------------------------------------------------- */

static mc_process_report *
report_of_store(uint32_t model, mc_backend_state state)
{
    mc_process_report *report = apr_pcalloc(pool, sizeof(*report));
    report->count = 1;
    report->backends[0] =
        (mc_backend_report){ .kind = MC_BACKEND_STORE, .state = state, .model = model, .failures = model };
    strcpy(report->backends[0].name, "store");
    return report;
}

typedef struct seen_reports {
    int processes[8], count, backends, failing;
} seen_reports;

static void
see_report(void *baton, const mc_process_report *report)
{
    seen_reports *seen = baton;
    seen->processes[seen->count++] = report->process;
    for (int i = 0; i < report->count; i++) {
        seen->backends++;
        seen->failing += report->backends[i].state == MC_BACKEND_FAILS;
    }
}

START_TEST(each_process_has_one_report)
{
    int pipes[2];
    char byte;
    seen_reports seen = { .count = 0 };
    ck_assert_int_eq(pipe(pipes), 0);
    const pid_t child = fork();
    if (child == 0) {
        mc_process_reports_put(monitor, report_of_store(1, MC_BACKEND_FAILS), 1);
        _exit(write(pipes[1], "x", 1) == 1 ? pause() : 1);
    }
    ck_assert_int_eq(read(pipes[0], &byte, 1), 1);
    for (int i = 0; i < 3; i++)
        mc_process_reports_put(monitor, report_of_store(1, MC_BACKEND_WORKS), 1);
    mc_process_reports_put(monitor, report_of_store(2, MC_BACKEND_WORKS), 2); /* of another configuration */
    ck_assert_int_eq(mc_process_reports_visit(monitor, see_report, &seen, pool), 2);
    ck_assert_int_eq(seen.backends, 3);
    ck_assert_int_eq(seen.failing, 1);
    ck_assert_int_eq(kill(child, SIGKILL), 0);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    seen = (seen_reports){ .count = 0 };
    ck_assert_int_eq(mc_process_reports_visit(monitor, see_report, &seen, pool), 1);
    ck_assert_int_eq(seen.processes[0], getpid());
    mc_process_reports_leave(monitor);
    ck_assert_int_eq(mc_process_reports_visit(monitor, see_report, &seen, pool), 0);
    close(pipes[0]);
    close(pipes[1]);
}
END_TEST

START_TEST(what_has_no_room_is_counted)
{
    mc_process_report *full = report_of_store(1, MC_BACKEND_WORKS);
    for (int i = 1; i < MC_BACKEND_REPORTS_MAX; i++)
        full->backends[full->count++] = full->backends[0];
    mc_process_reports_put(monitor, full, 1);
    mc_process_report *other = report_of_store(2, MC_BACKEND_FAILS);
    mc_process_reports_put(monitor, other, 2);
    ck_assert_int_eq(other->count, MC_BACKEND_REPORTS_MAX);
    ck_assert_uint_eq(other->apart, 1);
    ck_assert_int_eq(other->backends[0].state, MC_BACKEND_FAILS);
}
END_TEST

/* Two processes add while others are killed at it, again and again. */
START_TEST(a_killed_process_leaves_no_lock)
{
    mc_incident *found = apr_palloc(pool, sizeof(*found) * MC_INCIDENTS_MAX);
    for (int i = 0; i < 30; i++) {
        const pid_t child = fork();
        if (child == 0)
            for (int j = 0;; j++)
                add_incident(j % 2 == 0 ? "of a child" : "of the same child", "roads");
        for (int j = 0; j < 50; j++)
            add_incident("of the parent", "roads");
        ck_assert_int_eq(kill(child, SIGKILL), 0);
        ck_assert_int_eq(waitpid(child, NULL, 0), child);
        add_incident("afterwards", "roads");
    }
    const int count = mc_incidents_copy(found, monitor);
    uint64_t afterwards = 0;
    for (int i = 0; i < count; i++)
        if (strcmp(found[i].text, "afterwards") == 0)
            afterwards = found[i].count;
    ck_assert_uint_eq(afterwards, 30);
}
END_TEST

START_TEST(without_room_nothing_is_noted)
{
    mc_metrics *plain = mc_metrics_create_with(mc_answers_size());
    const mc_incident incident = described("away", "roads", NULL);
    mc_incident *found = apr_palloc(pool, sizeof(*found) * MC_INCIDENTS_MAX);
    ck_assert_ptr_null(mc_monitor_of(NULL));
    ck_assert_ptr_null(mc_monitor_of(plain));
    mc_monitor_init(plain);
    mc_incidents_add(NULL, &incident);
    ck_assert_int_eq(mc_incidents_copy(found, NULL), 0);
    ck_assert(!mc_slow_requests_want(NULL, 1 << 30, mc_clock_now()));
    ck_assert_int_eq(mc_process_reports_visit(NULL, see_report, NULL, pool), 0);
    mc_metrics_destroy(plain);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = { the_same_incident_is_counted,
                                   only_the_last_incidents_are_kept,
                                   secrets_are_hidden,
                                   texts_are_cut,
                                   the_slowest_requests_are_kept,
                                   the_longest_spans_of_a_request_are_kept,
                                   each_process_has_one_report,
                                   what_has_no_room_is_counted,
                                   a_killed_process_leaves_no_lock,
                                   without_room_nothing_is_noted };
    return unit_run_between("monitor", tests, (int)(sizeof(tests) / sizeof(*tests)), set_up_monitor, tear_down_monitor);
}
