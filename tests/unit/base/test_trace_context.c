#include "unit.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <apr_strings.h>

#include "base/account.h"

static const char example[] = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

START_TEST(the_example_of_the_standard_is_read)
{
    mc_trace_context context = { .root = 7 };
    bool sampled = false;
    ck_assert(mc_traceparent_parse(&context, &sampled, example));
    ck_assert(sampled);
    ck_assert_uint_eq(context.trace[0], UINT64_C(0x4bf92f3577b34da6));
    ck_assert_uint_eq(context.trace[1], UINT64_C(0xa3ce929d0e0e4736));
    ck_assert_uint_eq(context.parent, UINT64_C(0x00f067aa0ba902b7));
    char text[MC_TRACEPARENT_SIZE], id[MC_TRACE_ID_SIZE];
    context.root = context.parent;
    context.sampled = true;
    mc_traceparent_format(text, &context, 1);
    ck_assert_str_eq(text, example);
    mc_trace_id_format(id, &context);
    ck_assert_str_eq(id, "4bf92f3577b34da6a3ce929d0e0e4736");
    context.sampled = false;
    mc_traceparent_format(text, &context, 0);
    ck_assert_str_eq(text + strlen(text) - 2, "00");
}
END_TEST

/* Later versions may have more fields, this one has not. */
START_TEST(versions)
{
    mc_trace_context context = { 0 };
    bool sampled;
    ck_assert(mc_traceparent_parse(&context, &sampled, apr_psprintf(pool, "cc%s-what-comes", example + 2)));
    ck_assert(mc_traceparent_parse(&context, &sampled, apr_psprintf(pool, "01%s", example + 2)));
    ck_assert(!mc_traceparent_parse(&context, &sampled, apr_psprintf(pool, "cc%s.", example + 2)));
    ck_assert(!mc_traceparent_parse(&context, &sampled, apr_psprintf(pool, "%s-", example)));
    ck_assert(!mc_traceparent_parse(&context, &sampled, apr_psprintf(pool, "ff%s", example + 2)));
}
END_TEST

/* Each byte of the example replaced by every other byte: what is read is written again as it was. */
START_TEST(every_change_is_read_right_or_refused)
{
    int taken = 0;
    for (size_t at = 0; at < sizeof(example) - 1; at++)
        for (int byte = 0; byte < 256; byte++) {
            char text[sizeof(example)], again[MC_TRACEPARENT_SIZE];
            memcpy(text, example, sizeof(example));
            text[at] = (char)byte;
            mc_trace_context context = { .trace = { 1, 2 }, .parent = 3 };
            bool sampled;
            if (!mc_traceparent_parse(&context, &sampled, text)) {
                ck_assert(context.trace[0] == 1 && context.trace[1] == 2 && context.parent == 3);
                continue;
            }
            taken++;
            context.root = context.parent;
            context.sampled = sampled;
            mc_traceparent_format(again, &context, 1);
            ck_assert_int_eq(memcmp(again + 2, text + 2, 51), 0);
        }
    /* 16 digits at each of the 54 places of digits, all but "f" in both places of the version; zeroes stay allowed. */
    ck_assert_int_eq(taken, 16 * (2 + 32 + 16 + 2) + 3 /* the dashes as they are */);
}
END_TEST

START_TEST(what_cannot_be_handed_on)
{
    char longest[600];
    memset(longest, 'a', sizeof(longest));
    longest[1] = '=';
    longest[512] = '\0';
    ck_assert(mc_tracestate_is_valid(longest));
    longest[512] = 'a';
    longest[599] = '\0';
    ck_assert(!mc_tracestate_is_valid(longest));
    ck_assert(!mc_tracestate_is_valid(""));
    ck_assert(!mc_tracestate_is_valid("a=b\r\nX: y"));
    ck_assert(!mc_tracestate_is_valid("\xff=b"));
    ck_assert(mc_tracestate_is_valid("vendor=value,other@system=1"));
}
END_TEST

static mc_trace_context
fresh_context(void)
{
    mc_trace_context context = { 0 };
    mc_trace_context_begin(&context, mc_trace_random());
    return context;
}

START_TEST(traces_and_spans_differ)
{
    mc_trace_context one = fresh_context(), other = fresh_context();
    ck_assert(one.trace[0] != other.trace[0] && one.trace[1] != other.trace[1] && one.root != other.root);
    ck_assert_uint_eq(mc_trace_context_span(&one, 1), one.root);
    for (unsigned i = 1; i < 300; i++)
        for (unsigned j = i + 1; j < 300; j++)
            ck_assert(mc_trace_context_span(&one, i) != mc_trace_context_span(&one, j));
    mc_trace_context joined = { .trace = { 1, 2 }, .parent = 3 };
    mc_trace_context_begin(&joined, 4);
    ck_assert(joined.trace[0] == 1 && joined.trace[1] == 2 && joined.root != 0);
}
END_TEST

/* Processes that come from one begin different traces. */
START_TEST(a_forked_process_has_numbers_of_its_own)
{
    uint64_t numbers[3];
    int ends[2];
    mc_trace_random();
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(pipe(ends), 0);
        pid_t child = fork();
        if (child == 0) {
            const uint64_t number = mc_trace_random();
            _exit(write(ends[1], &number, sizeof(number)) == (ssize_t)sizeof(number) ? 0 : 1);
        }
        ck_assert_int_eq(read(ends[0], &numbers[i], sizeof(numbers[i])), (ssize_t)sizeof(numbers[i]));
        close(ends[0]);
        close(ends[1]);
        waitpid(child, NULL, 0);
    }
    numbers[2] = mc_trace_random();
    ck_assert(numbers[0] != numbers[1] && numbers[0] != numbers[2] && numbers[1] != numbers[2]);
}
END_TEST

START_TEST(an_account_as_text)
{
    mc_account account = {
        .method = "GET", .base = "http://host:80/maps", .path = "/wmts/a b", .query = "x=\"1\"&y=\\\n"
    };
    ck_assert_str_eq(mc_account_text(&account, pool), "method=GET url=\"/maps/wmts/a b?x=\\\"1\\\"&y=\\\\\\x0a\"");
    account = (mc_account){
        .path = "/t", .service = "tms", .tileset = "base", .grid = "g", .z = 3, .x = 1, .y = 2, .status = 200
    };
    ck_assert_str_eq(mc_account_text(&account, pool), "url=/t service=tms tileset=base tile=g/3/1/2 status=200");
    account = (mc_account){ .path = "", .width = 256, .height = 128, .context = { .trace = { 1, 2 } } };
    ck_assert_str_eq(mc_account_text(&account, pool), "url=\"\" size=256x128 trace=00000000000000010000000000000002");
}
END_TEST

/* However long what a client has sent is. */
START_TEST(the_text_has_a_bound)
{
    char *path = apr_palloc(pool, 100001);
    memset(path, '\n', 100000);
    path[100000] = '\0';
    mc_account account = {
        .method = "GET", .path = path, .query = path, .tileset = path, .grid = path, .service = path
    };
    const char *text = mc_account_text(&account, pool);
    ck_assert_uint_lt(strlen(text), 2100);
    ck_assert_ptr_null(strchr(text, '\n'));
}
END_TEST

typedef struct logged {
    char text[4096];
} logged;

static void
keep_message(void *baton, mc_log_level level, const char *message)
{
    (void)level;
    apr_cpystrn(((logged *)baton)->text, message, sizeof(((logged *)baton)->text));
}

START_TEST(messages_name_the_request)
{
    logged kept = { "" };
    const mc_log log = { MC_LOG_INFO, keep_message, &kept };
    mc_account account = { .method = "GET", .path = "/tms/x", .status = 404 };
    mc_ctx with = { .pool = pool, .log = &log, .account = &account };
    mc_log_write(&with, MC_LOG_ERROR, "no %s", "tile");
    ck_assert_str_eq(kept.text, "no tile [method=GET url=/tms/x status=404]");
    with.account = NULL;
    mc_log_write(&with, MC_LOG_ERROR, "no %s", "tile");
    ck_assert_str_eq(kept.text, "no tile");
    mc_account_mark(&with, MC_EVENT_RENDERED); /* nobody to tell */
}
END_TEST

UNIT_MAIN("trace_context", the_example_of_the_standard_is_read, versions, every_change_is_read_right_or_refused,
          what_cannot_be_handed_on, traces_and_spans_differ, a_forked_process_has_numbers_of_its_own,
          an_account_as_text, the_text_has_a_bound, messages_name_the_request)
