#include "unit.h"

#include <fcntl.h>
#include <regex.h>
#include <string.h>
#include <unistd.h>

#include <apr_strings.h>

#include "base/account.h"
#include "config_text.h"
#include "telemetry/line_file.h"
#include "telemetry/lines.h"
#include "telemetry/otlp.h"

static const mc_telemetry_answer answer = { .duration = 1234567, .bytes = 89, .result = "rendered" };

static mc_account
some_account(void)
{
    return (mc_account){ .method = "GET",
                         .base = "http://h/mc",
                         .path = "/tms/x",
                         .query = "a=\"b\"\n",
                         .client = "10.0.0.1",
                         .service = "tms",
                         .tileset = "base",
                         .grid = "g",
                         .z = 1,
                         .x = 2,
                         .y = 3,
                         .status = 200 };
}

/* Two spans of one name and thing, one of a job, one with a note. */
static mc_trace *
some_trace(void)
{
    mc_trace *trace = mc_trace_create(NULL, NULL, NULL, NULL, pool);
    mc_trace_keep(trace, MC_TRACE_SPANS);
    mc_ctx own = { .pool = pool, .trace = trace };
    MC_SPAN(&own, "mapcache_handler");
    const apr_time_t begun = mc_clock_now();
    while (mc_clock_now() < begun + 10) /* what lies inside begins later, in microseconds, too */
        ;
    for (int i = 0; i < 2; i++) {
        MC_SPAN_AS(span, &own, "mapcache_source_render");
        mc_span_about(&span, "o \"s\" m");
        mc_span_note(&span, "ERROR");
        apr_pool_t *job_pool;
        apr_pool_create(&job_pool, NULL);
        mc_ctx job = { .pool = job_pool, .trace = mc_trace_fork(trace, mc_trace_innermost(trace), job_pool) };
        {
            MC_SPAN_ABOUT(&job, "mapcache_http_request", "host:80");
        }
        apr_pool_destroy(job_pool);
    }
    return trace;
}

static void
check_form(const char *text, const char *pattern)
{
    regex_t form;
    ck_assert_int_eq(regcomp(&form, pattern, REG_EXTENDED), 0);
    ck_assert_msg(regexec(&form, text, 0, NULL, 0) == 0, "%s", text);
    regfree(&form);
}

START_TEST(a_slow_request_in_both_forms)
{
    mc_slow_plan plan;
    mc_account account = some_account();
    mc_slow_plan_make(&plan, some_trace());
    ck_assert_int_eq(plan.count, 3);
    ck_assert(!plan.cut);
    check_form(
        mc_line_format("slow", false, &account, &answer, &plan, pool),
        "^time=20[0-9T:.-]+Z event=slow method=GET url=\"/mc/tms/x\\?a=\\\\\"b\\\\\"\\\\x0a\" service=tms tileset=base "
        "tile=g/1/2/3 status=200 result=rendered ms=1234.567 bytes=89 client=10.0.0.1 plan=\"mapcache_handler "
        "[0-9.]+ms; mapcache_source_render\\(o \\\\\"s\\\\\" m\\) x2 [0-9.]+ms ERROR; "
        "mapcache_http_request\\(host:80\\) x2 [0-9.]+ms\"\n$");
    check_form(
        mc_line_format("slow", true, &account, &answer, &plan, pool),
        "^\\{\"time\":\"20[0-9T:.-]+Z\",\"event\":\"slow\",\"method\":\"GET\",\"url\":\"/mc/tms/"
        "x\\?a=\\\\\"b\\\\\"\\\\(n|u000a)\",.*"
        "\"status\":200,\"result\":\"rendered\",\"ms\":1234.567,\"bytes\":89,\"client\":\"10.0.0.1\",\"plan\":\\["
        "\\{\"span\":\"mapcache_handler\",\"count\":1,.*\\{\"span\":\"mapcache_source_render\",\"about\":\"o "
        "\\\\\"s\\\\\" m\","
        "\"count\":2,.*\"note\":\"ERROR\"\\}.*\\]\\}\n$");
}
END_TEST

typedef struct seen_spans {
    mc_span_record records[MC_TRACE_SPANS_MAX + 100];
    int count;
} seen_spans;

static void
see_span(void *baton, const mc_span_record *span)
{
    seen_spans *seen = baton;
    seen->records[seen->count++] = *span;
}

START_TEST(recorded_spans_are_a_tree_and_bounded)
{
    static seen_spans seen;
    seen.count = 0;
    ck_assert_uint_eq(mc_trace_visit(some_trace(), see_span, &seen), 0);
    ck_assert_int_eq(seen.count, 5);
    for (int i = 0; i < seen.count; i++) {
        const mc_span_record *span = &seen.records[i];
        const bool first = strcmp(span->name, "mapcache_handler") == 0;
        ck_assert_uint_eq(span->number == 1, first);
        ck_assert_uint_eq(span->parent, first                                              ? 0
                                        : strcmp(span->name, "mapcache_http_request") == 0 ? span->number - 1
                                                                                           : 1);
    }
    mc_trace *trace = mc_trace_create(NULL, NULL, NULL, NULL, pool);
    mc_trace_keep(trace, MC_TRACE_SPANS);
    mc_ctx own = { .pool = pool, .trace = trace };
    for (int i = 0; i < MC_TRACE_SPANS_MAX + 88; i++) {
        MC_SPAN(&own, "one");
    }
    seen.count = 0;
    ck_assert_uint_eq(mc_trace_visit(trace, see_span, &seen), 88);
    ck_assert_int_eq(seen.count, MC_TRACE_SPANS_MAX);
}
END_TEST

/* A plan with more steps than it has room for says so; so does a line that would be too long. */
START_TEST(a_plan_has_a_bound)
{
    mc_slow_plan plan;
    mc_account account = some_account();
    mc_trace *trace = mc_trace_create(NULL, NULL, NULL, NULL, pool);
    mc_trace_keep(trace, MC_TRACE_SPANS);
    mc_ctx own = { .pool = pool, .trace = trace };
    for (int i = 0; i < 200; i++) {
        MC_SPAN_ABOUT(&own, "step",
                      apr_psprintf(pool, "%d %s", i, "what is very long and is cut, because nobody needs all of it"));
    }
    mc_slow_plan_make(&plan, trace);
    ck_assert_int_eq(plan.count, MC_SLOW_STEPS_MAX);
    ck_assert(plan.cut);
    const char *line = mc_line_format("slow", false, &account, &answer, &plan, pool);
    check_form(line, "; \\.\\.\\.\"\n$");
    ck_assert_uint_lt(strlen(line), 16384);
    ck_assert_ptr_nonnull(strstr(mc_line_format("slow", true, &account, &answer, &plan, pool), "\"plan_cut\":true"));
}
END_TEST

/* The bytes themselves are read by OTLP's own messages in tests/integration/test_telemetry.py. */
START_TEST(messages_are_bounded)
{
    mc_otlp_bytes spans = { 0 };
    mc_account account = some_account();
    char *path = apr_palloc(pool, 100001);
    memset(path, '\xff', 100000);
    path[100000] = '\0';
    account.path = path;
    mc_otlp_append_spans(&spans, &account, &answer, some_trace(), pool);
    ck_assert(!spans.lost);
    ck_assert_uint_gt(spans.size, 500);
    ck_assert_uint_lt(spans.size, 8000);
    mc_otlp_request request;
    mc_otlp_request_begin(&request, "maps");
    for (int i = 0; i < 20000 && !request.bytes.lost; i++)
        mc_otlp_request_append(&request, spans.data, spans.size);
    ck_assert(request.bytes.lost);
    mc_otlp_request_end(&request);
    free(request.bytes.data);
    free(spans.data);
}
END_TEST

START_TEST(lines_stay_whole_and_files_come_back)
{
    char path[] = "/tmp/mapcache-lines-XXXXXX", text[64] = "";
    int descriptor = mkstemp(path);
    ck_assert_int_ge(descriptor, 0);
    mc_line_file *file = mc_line_file_create(path, pool);
    mc_line_file_write(file, "one\n", 4, &ctx);
    mc_line_file_write(file, "two\n", 4, &ctx);
    ck_assert_int_eq(read(descriptor, text, sizeof(text)), 8);
    ck_assert_str_eq(text, "one\ntwo\n");
    close(descriptor);
    unlink(path);
    mc_line_file_write(mc_line_file_create("/nowhere/at/all", pool), "x\n", 2, &ctx);
}
END_TEST

static bool
is_refused(const char *elements)
{
    mc_build build = config_build();
    (void)mc_telemetry_from_config(config_elements(apr_psprintf(pool, "<telemetry>%s</telemetry>", elements)), &build);
    return build.diagnostics->refused > 0;
}

START_TEST(the_element_is_checked)
{
    mc_build build = config_build();
    mc_telemetry *telemetry = mc_telemetry_from_config(config_elements("<telemetry/>"), &build);
    ck_assert_ptr_nonnull(telemetry);
    ck_assert(telemetry->target == NULL && telemetry->access == NULL && telemetry->slow == NULL && telemetry->trusts);
    ck_assert_ptr_null(mc_telemetry_from_config(NULL, &build));
    ck_assert(!is_refused(
        "<traces>https://h/v1/traces</traces><sampling>0.01</sampling><headers><X-Key>a</X-Key></headers>"));
    ck_assert(is_refused("<traces>file:///etc/passwd</traces>"));
    ck_assert(is_refused("<traces>h:4318</traces>"));
    ck_assert(is_refused("<sampling>nan</sampling>"));
    ck_assert(is_refused("<sampling>-1</sampling>"));
    ck_assert(is_refused("<max_traces_per_second>-1</max_traces_per_second>"));
    ck_assert(is_refused("<slow_seconds>0</slow_seconds>"));
    ck_assert(is_refused("<log_format>xml</log_format>"));
}
END_TEST

UNIT_MAIN("lines", a_slow_request_in_both_forms, recorded_spans_are_a_tree_and_bounded, a_plan_has_a_bound,
          messages_are_bounded, lines_stay_whole_and_files_come_back, the_element_is_checked)
