#include "unit.h"

#include <apr_strings.h>
#include <pthread.h>
#include <regex.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/metrics.h"
#include "base/workers.h"
#include "mapcache/trace.h"

typedef struct written {
    char text[1 << 20];
    size_t size;
    int writes;
    pthread_mutex_t lock;
} written;

static written out = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void
sink(void *baton, const char *lines, size_t size)
{
    written *w = baton;
    pthread_mutex_lock(&w->lock);
    if (w->size + size < sizeof(w->text)) {
        memcpy(w->text + w->size, lines, size);
        w->size += size;
        w->text[w->size] = '\0';
    }
    w->writes++;
    pthread_mutex_unlock(&w->lock);
}

static mc_error *
step(mc_ctx *step_ctx, bool fail)
{
    MC_SPAN_AS(span, step_ctx, "mapcache_image_merge");
    if (fail) {
        mc_span_note(&span, "ERROR");
        return mc_error_create(step_ctx->pool, MC_ERR_IO, "no");
    }
    return MC_OK;
}

START_TEST(lines_have_the_published_form)
{
    out.size = 0;
    ctx.trace = mc_trace_create(sink, &out, "127.0.0.1:38854", "mod_mapcache.c(346)", pool);
    ck_ok(step(&ctx, false));
    ck_fails(IO, step(&ctx, true));
    ck_assert_uint_eq(out.size, 0);
    mc_trace_flush(ctx.trace);
    regex_t form;
    const char *pattern = apr_psprintf(
        pool,
        "^\\[(Mon|Tue|Wed|Thu|Fri|Sat|Sun) (Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) [0-3][0-9] "
        "[0-2][0-9]:[0-5][0-9]:[0-5][0-9]\\.[0-9]{6} 20[0-9]{2}\\] \\[mapcache:debug\\] \\[pid %ld:tid %ld\\] "
        "mod_mapcache\\.c\\(346\\): \\[client 127\\.0\\.0\\.1:38854\\] MOCKUP (BEGIN|END) mapcache_image_merge( "
        "ERROR)?$",
        (long)getpid(), syscall(SYS_gettid));
    ck_assert_int_eq(regcomp(&form, pattern, REG_EXTENDED), 0);
    char *rest;
    int lines = 0;
    for (char *line = strtok_r(out.text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest)) {
        ck_assert_msg(regexec(&form, line, 0, NULL, 0) == 0, "bad line: %s", line);
        ck_assert(strstr(line, lines % 2 == 0 ? "BEGIN" : "END") != NULL);
        ck_assert((strstr(line, " ERROR") != NULL) == (lines == 3));
        lines++;
    }
    ck_assert_int_eq(lines, 4);
    regfree(&form);
}
END_TEST

START_TEST(the_pool_flushes_and_much_is_flushed_in_pieces)
{
    out.size = 0;
    out.writes = 0;
    apr_pool_t *request;
    apr_pool_create(&request, pool);
    ctx.trace = mc_trace_create(sink, &out, NULL, NULL, request);
    for (int i = 0; i < 2000; i++)
        ck_ok(step(&ctx, false));
    ck_assert_int_ge(out.writes, 1);
    apr_pool_destroy(request);
    ck_assert_int_le(out.writes, 5);
    int lines = 0;
    for (size_t i = 0; i < out.size; i++)
        lines += out.text[i] == '\n';
    ck_assert_int_eq(lines, 4000);
    ck_assert(strstr(out.text, " mapcache: [client -] MOCKUP BEGIN") != NULL);
}
END_TEST

START_TEST(a_client_cannot_break_lines)
{
    out.size = 0;
    char longest[2000];
    memset(longest, 'n', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    ctx.trace = mc_trace_create(sink, &out, "1.2.3.4\n[x", longest, pool);
    for (int i = 0; i < 3; i++) {
        mc_span span = mc_span_open(ctx.trace, longest);
        mc_span_note(&span, longest);
        mc_span_close(&span);
    }
    mc_trace_flush(ctx.trace);
    int lines = 0;
    for (size_t i = 0; i < out.size; i++)
        lines += out.text[i] == '\n';
    ck_assert_int_eq(lines, 6);
}
END_TEST

START_TEST(a_child_process_has_its_own_number)
{
    ctx.trace = mc_trace_create(sink, &out, NULL, NULL, pool);
    ck_ok(step(&ctx, false));
    mc_trace_flush(ctx.trace);
    pid_t child = fork();
    if (child == 0) {
        out.size = 0;
        mc_error_ignore(step(&ctx, false));
        mc_trace_flush(ctx.trace);
        char expected[64];
        snprintf(expected, sizeof(expected), "[pid %d:tid %d]", (int)getpid(), (int)getpid());
        _exit(strstr(out.text, expected) != NULL ? 0 : 1);
    }
    int status;
    waitpid(child, &status, 0);
    ck_assert_int_eq(status, 0);
}
END_TEST

static mc_error *
sleepy(void *baton, int index, mc_ctx *job_ctx)
{
    (void)baton;
    (void)index;
    MC_SPAN(job_ctx, "sleepy_job");
    usleep(20000);
    return MC_OK;
}

START_TEST(jobs_add_to_the_sums_of_their_request)
{
    mc_workers *workers;
    mc_metrics *metrics = mc_metrics_create();
    out.size = 0;
    ck_ok(mc_workers_create(&workers, 2, pool));
    ctx.trace = mc_trace_create(sink, &out, NULL, NULL, pool);
    mc_trace_set_metrics(ctx.trace, metrics);
    ck_ok(mc_workers_run(workers, sleepy, NULL, 4, 2, &ctx, pool));
    ck_ok(step(&ctx, false));
    mc_workers_destroy(workers);
    double milliseconds = -1;
    const char *timing = mc_trace_server_timing(ctx.trace, pool);
    const char *found = strstr(timing, "sleepy_job;dur=");
    ck_assert_ptr_nonnull(found);
    ck_assert_int_eq(sscanf(found, "sleepy_job;dur=%lf", &milliseconds), 1);
    ck_assert_msg(milliseconds >= 80 && milliseconds < 2000, "%s", timing);
    ck_assert_ptr_nonnull(strstr(timing, "image_merge;dur="));
    ck_assert_ptr_null(strstr(timing, "mapcache_"));
    mc_buf *text = mc_buf_attach(mc_buf_create(1000, 1 << 20), pool);
    ck_ok(mc_metrics_write(metrics, MC_METRICS_OPEN, text, pool));
    ck_assert_ptr_nonnull(strstr(apr_pstrmemdup(pool, (char *)text->data, text->size),
                                 "mapcache_span_seconds_count{span=\"sleepy_job\"} 4\n"));
    mc_trace_flush(ctx.trace);
    int lines = 0;
    for (size_t i = 0; i < out.size; i++)
        lines += out.text[i] == '\n';
    /* a pair for each job, one for the step, and one as the root of each worker that took part */
    ck_assert_msg(lines >= 10 && lines <= 14 && lines % 2 == 0, "%d lines", lines);
    ctx.trace = NULL;
    mc_metrics_destroy(metrics);
}
END_TEST

START_TEST(without_a_sink_there_are_only_sums)
{
    ctx.trace = mc_trace_create(NULL, NULL, NULL, NULL, pool);
    ck_assert_str_eq(mc_trace_server_timing(ctx.trace, pool), "");
    ck_ok(step(&ctx, false));
    ck_assert(strncmp(mc_trace_server_timing(ctx.trace, pool), "image_merge;dur=0.", 18) == 0);
    mc_trace_flush(ctx.trace);
}
END_TEST

typedef struct own_sums {
    int64_t outer, inner, all;
} own_sums;

static void
take_sum(void *baton, const char *name, int64_t microseconds)
{
    own_sums *sums = baton;
    *(strcmp(name, "outer") == 0 ? &sums->outer : &sums->inner) += microseconds;
    sums->all += microseconds;
}

/* Time inside a span counts for it alone, also that of jobs; what was taken is not told again. */
START_TEST(own_time_is_told_once)
{
    own_sums sums = { 0 };
    apr_pool_t *job_pool;
    ctx.trace = mc_trace_create(NULL, NULL, NULL, NULL, pool);
    apr_pool_create(&job_pool, NULL);
    apr_time_t began = apr_time_now();
    {
        MC_SPAN(&ctx, "outer");
        for (int i = 0; i < 2; i++) {
            MC_SPAN(&ctx, "inner");
            apr_sleep(20000);
        }
        mc_ctx job = { .pool = job_pool, .trace = mc_trace_fork(ctx.trace, mc_trace_innermost(ctx.trace), job_pool) };
        {
            MC_SPAN(&job, "inner");
            apr_sleep(10000);
        }
        apr_pool_destroy(job_pool);
    }
    apr_time_t took = apr_time_now() - began;
    mc_trace_take_own(ctx.trace, take_sum, &sums);
    ck_assert_int_ge(sums.inner, 50000);
    ck_assert_int_ge(sums.outer, 10000); /* it waited for the job */
    ck_assert_int_le(sums.all, took + 10000000);
    ck_assert_int_le(sums.outer, took - 40000 + 1000);
    mc_trace_take_own(ctx.trace, take_sum, &(own_sums){ 0 });
    int64_t before = sums.all;
    mc_trace_take_own(ctx.trace, take_sum, &sums);
    ck_assert_int_eq(sums.all, before);
}
END_TEST

/* The number of a line's second and microsecond in its text: "[Wed Jan 15 12:17:50.503563 2020] ...". */
static apr_time_t
time_of_line(const char *line)
{
    struct tm parts = { .tm_isdst = -1 };
    char *rest = strptime(line, "[%a %b %d %H:%M:%S.", &parts);
    ck_assert_ptr_nonnull(rest);
    parts.tm_year = atoi(rest + 7) - 1900;
    return apr_time_from_sec(mktime(&parts)) + atoi(rest);
}

/* BEGIN and END of the same time, also where they are the first lines of a job; counted as a span without a length. */
START_TEST(a_moment_is_a_span_without_length)
{
    apr_pool_t *job_pool;
    out.size = 0;
    setenv("TZ", "UTC", 1); /* no hour comes twice */
    tzset();
    ctx.trace = mc_trace_create(sink, &out, NULL, NULL, pool);
    apr_time_t before = apr_time_now();
    MC_SPAN_MOMENT(&ctx, "mc_example_found");
    mc_trace_flush(ctx.trace);
    apr_pool_create(&job_pool, NULL);
    mc_ctx job = { .pool = job_pool, .trace = mc_trace_fork(ctx.trace, 0, job_pool) };
    MC_SPAN_MOMENT(&job, "mc_example_found");
    apr_pool_destroy(job_pool);
    apr_time_t after = apr_time_now();
    char *rest, *begin = NULL;
    int lines = 0;
    for (char *line = strtok_r(out.text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest), lines++) {
        ck_assert_ptr_nonnull(
            strstr(line, lines % 2 == 0 ? "MOCKUP BEGIN mc_example_found" : "MOCKUP END mc_example_found"));
        ck_assert_int_ge(time_of_line(line), before - 1000000); /* somebody may set the clock, a little */
        ck_assert_int_le(time_of_line(line), after + 1000000);
        ck_assert(lines % 2 == 0 || time_of_line(line) == time_of_line(begin));
        begin = line;
    }
    ck_assert_int_eq(lines, 4);
    ck_assert_str_eq(mc_trace_server_timing(ctx.trace, pool), "mc_example_found;dur=0.000");
}
END_TEST

UNIT_MAIN("trace", lines_have_the_published_form, the_pool_flushes_and_much_is_flushed_in_pieces,
          a_client_cannot_break_lines, a_child_process_has_its_own_number, jobs_add_to_the_sums_of_their_request,
          without_a_sink_there_are_only_sums, own_time_is_told_once, a_moment_is_a_span_without_length)
