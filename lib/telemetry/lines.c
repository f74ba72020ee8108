/* See lines.h. */
#include "telemetry/lines.h"

#include <apr_strings.h>
#include <stdlib.h>
#include <string.h>

#include "text/json_writer.h"

enum { LINE_MAX_BYTES = 16384, TIME_SIZE = 40 };

static void
add_plan_step(void *baton, const mc_span_record *span)
{
    mc_slow_plan *plan = baton;
    mc_slow_step *step = plan->steps, *end = plan->steps + plan->count;
    while (step < end && (strcmp(step->name, span->name) != 0 || strcmp(step->subject, span->subject) != 0))
        step++;
    if (step == end) {
        if (plan->count == MC_SLOW_STEPS_MAX) {
            plan->cut = true;
            return;
        }
        plan->count++;
        *step = (mc_slow_step){ .name = span->name, .subject = span->subject, .first = span->begin };
    }
    step->count++;
    step->microseconds += span->duration;
    if (span->duration > step->longest)
        step->longest = span->duration;
    if (span->begin < step->first)
        step->first = span->begin;
    if (span->note != NULL)
        step->note = span->note;
}

/* The outer one of two that begin at the same time is the longer one. */
static int
compare_plan_steps(const void *a, const void *b)
{
    const mc_slow_step *one = a, *other = b;
    if (one->first != other->first)
        return one->first < other->first ? -1 : 1;
    return one->longest == other->longest ? 0 : one->longest > other->longest ? -1 : 1;
}

void
mc_slow_plan_make(mc_slow_plan *plan, mc_trace *trace)
{
    plan->count = 0;
    plan->cut = false;
    if (mc_trace_visit(trace, add_plan_step, plan) > 0)
        plan->cut = true;
    qsort(plan->steps, (size_t)plan->count, sizeof(plan->steps[0]), compare_plan_steps);
}

/* RFC 3339, UTC. */
static const char *
format_line_time(char text[TIME_SIZE])
{
    apr_time_exp_t now;
    apr_time_exp_gmt(&now, apr_time_now());
    apr_snprintf(text, TIME_SIZE, "%04d-%02d-%02dT%02d:%02d:%02d.%06dZ", now.tm_year + 1900, now.tm_mon + 1,
                 now.tm_mday, now.tm_hour, now.tm_min, now.tm_sec, now.tm_usec);
    return text;
}

static const char *
format_milliseconds(int64_t microseconds, apr_pool_t *pool)
{
    return apr_psprintf(pool, "%" APR_INT64_T_FMT ".%03d", microseconds / 1000, (int)(microseconds % 1000));
}

typedef struct line_text {
    char text[LINE_MAX_BYTES];
    size_t used;
} line_text;

static void
append_line_field(void *baton, const char *key, const char *value)
{
    line_text *out = baton;
    out->used = mc_logfmt_append(out->text, out->used, sizeof(out->text) - 1, key, value);
}

/* "source_render(osm) x3 12.345ms ERROR; ..." */
static const char *
format_plan_text(const mc_slow_plan *plan, apr_pool_t *pool)
{
    apr_array_header_t *parts = apr_array_make(pool, plan->count + 1, sizeof(const char *));
    for (int i = 0; i < plan->count; i++) {
        const mc_slow_step *step = &plan->steps[i];
        const char *about = *step->subject == '\0' ? "" : apr_pstrcat(pool, "(", step->subject, ")", NULL);
        APR_ARRAY_PUSH(parts, const char *) =
            apr_psprintf(pool, "%s%s%s%s %sms%s%s", i == 0 ? "" : "; ", step->name, about,
                         step->count == 1 ? "" : apr_psprintf(pool, " x%d", step->count),
                         format_milliseconds(step->microseconds, pool), step->note == NULL ? "" : " ",
                         step->note == NULL ? "" : step->note);
    }
    if (plan->cut)
        APR_ARRAY_PUSH(parts, const char *) = "; ...";
    return apr_array_pstrcat(pool, parts, '\0');
}

static const char *
format_logfmt(const char *event, const mc_account *account, const mc_telemetry_answer *answer, const mc_slow_plan *plan,
              apr_pool_t *pool)
{
    char time[TIME_SIZE];
    line_text *out = apr_palloc(pool, sizeof(*out));
    out->used = 0;
    append_line_field(out, "time", format_line_time(time));
    append_line_field(out, "event", event);
    mc_account_visit(account, append_line_field, out, pool);
    append_line_field(out, "result", answer->result);
    append_line_field(out, "ms", format_milliseconds(answer->duration, pool));
    append_line_field(out, "bytes", apr_psprintf(pool, "%" APR_UINT64_T_FMT, answer->bytes));
    if (account->client != NULL)
        append_line_field(out, "client", account->client);
    if (plan != NULL)
        append_line_field(out, "plan", format_plan_text(plan, pool));
    out->text[out->used++] = '\n';
    out->text[out->used] = '\0';
    return out->text;
}

static void
write_json_field(void *baton, const char *key, const char *value)
{
    mc_json_writer *json = baton;
    if (strcmp(key, "status") == 0)
        mc_json_raw(json, key, value);
    else
        mc_json_string(json, key, value);
}

static void
write_json_plan(mc_json_writer *json, const mc_slow_plan *plan, apr_pool_t *pool)
{
    mc_json_open_array(json, "plan");
    for (int i = 0; i < plan->count; i++) {
        const mc_slow_step *step = &plan->steps[i];
        mc_json_open_object(json, NULL);
        mc_json_string(json, "span", step->name);
        if (*step->subject != '\0')
            mc_json_string(json, "about", step->subject);
        mc_json_integer(json, "count", step->count);
        mc_json_raw(json, "ms", format_milliseconds(step->microseconds, pool));
        mc_json_raw(json, "longest_ms", format_milliseconds(step->longest, pool));
        if (step->note != NULL)
            mc_json_string(json, "note", step->note);
        mc_json_close(json);
    }
    mc_json_close(json);
    if (plan->cut)
        mc_json_boolean(json, "plan_cut", true);
}

static const char *
format_json_line(const char *event, const mc_account *account, const mc_telemetry_answer *answer,
                 const mc_slow_plan *plan, apr_pool_t *pool)
{
    char time[TIME_SIZE];
    mc_json_writer *json = mc_json_create(MC_JSON_DENSE, pool);
    mc_json_open_object(json, NULL);
    mc_json_string(json, "time", format_line_time(time));
    mc_json_string(json, "event", event);
    mc_account_visit(account, write_json_field, json, pool);
    mc_json_string(json, "result", answer->result);
    mc_json_raw(json, "ms", format_milliseconds(answer->duration, pool));
    mc_json_integer(json, "bytes", (int64_t)answer->bytes);
    if (account->client != NULL)
        mc_json_string(json, "client", account->client);
    if (plan != NULL)
        write_json_plan(json, plan, pool);
    mc_json_close(json);
    mc_json_space(json, "\n");
    return mc_json_finish_text(json);
}

const char *
mc_line_format(const char *event, bool json, const mc_account *account, const mc_telemetry_answer *answer,
               const mc_slow_plan *plan, apr_pool_t *pool)
{
    return json ? format_json_line(event, account, answer, plan, pool)
                : format_logfmt(event, account, answer, plan, pool);
}
