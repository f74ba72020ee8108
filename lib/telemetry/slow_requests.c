/* See slow_requests.h. */
#include "telemetry/slow_requests.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "telemetry/monitor_tables.h"

/* How long a request is of interest: microseconds. */
#define SLOW_WINDOW (900 * APR_USEC_PER_SEC)

bool
mc_slow_requests_want(mc_monitor *monitor, int64_t duration, apr_time_t now)
{
    if (monitor == NULL)
        return false;
    return duration > atomic_load_explicit(&monitor->slow.threshold, memory_order_relaxed) ||
           now >= atomic_load_explicit(&monitor->slow.expires, memory_order_relaxed);
}

/* --- the spans of a request --------------------------------------------------------------------------------------- */

typedef struct span_selection {
    const mc_span_record *spans[MC_TRACE_SPANS_MAX];
    int count;
} span_selection;

static void
select_span(void *baton, const mc_span_record *span)
{
    span_selection *selection = baton;
    if (selection->count < MC_TRACE_SPANS_MAX)
        selection->spans[selection->count++] = span;
}

static int
compare_span_durations(const void *a, const void *b)
{
    const mc_span_record *one = *(const mc_span_record *const *)a, *other = *(const mc_span_record *const *)b;
    if (one->duration != other->duration)
        return one->duration > other->duration ? -1 : 1;
    return one->number < other->number ? -1 : one->number > other->number;
}

static int
compare_span_numbers(const void *a, const void *b)
{
    const mc_span_record *one = *(const mc_span_record *const *)a, *other = *(const mc_span_record *const *)b;
    return one->number < other->number ? -1 : one->number > other->number;
}

static void
copy_slow_span(mc_slow_span *to, const mc_span_record *span, apr_time_t begin)
{
    mc_monitor_copy_text(to->name, sizeof(to->name), span->name);
    mc_monitor_copy_text(to->about, sizeof(to->about), span->subject);
    mc_monitor_copy_text(to->note, sizeof(to->note), span->note);
    to->begin = span->begin - begin;
    to->duration = span->duration;
    to->number = span->number;
    to->parent = span->parent;
}

/* The longest ones: what is inside of a span is not longer, so that few lose the span around them. */
static void
fill_slow_spans(mc_slow_request *slow, mc_trace *trace, apr_time_t begin)
{
    span_selection selection = { .count = 0 };
    slow->spans_beyond = mc_trace_visit(trace, select_span, &selection);
    qsort(selection.spans, (size_t)selection.count, sizeof(selection.spans[0]), compare_span_durations);
    if (selection.count > MC_SLOW_SPANS_MAX) {
        slow->spans_beyond += (unsigned)(selection.count - MC_SLOW_SPANS_MAX);
        selection.count = MC_SLOW_SPANS_MAX;
    }
    qsort(selection.spans, (size_t)selection.count, sizeof(selection.spans[0]), compare_span_numbers);
    slow->span_count = selection.count;
    for (int i = 0; i < selection.count; i++)
        copy_slow_span(&slow->spans[i], selection.spans[i], begin);
}

/* --- the table ---------------------------------------------------------------------------------------------------- */

/* A place that is free or whose request has expired, or that of the fastest request. */
static mc_slow_request *
find_slow_place(mc_slow_table *table, apr_time_t now)
{
    mc_slow_request *fastest = &table->requests[0];
    for (int i = 0; i < MC_SLOW_REQUESTS_MAX; i++) {
        mc_slow_request *request = &table->requests[i];
        if (request->number == 0 || request->expires <= now)
            return request;
        if (request->duration < fastest->duration)
            fastest = request;
    }
    return fastest;
}

/* What has to be faster or earlier to be of no interest. */
static void
set_slow_threshold(mc_slow_table *table)
{
    int64_t threshold = INT64_MAX;
    apr_time_t expires = INT64_MAX;
    for (int i = 0; i < MC_SLOW_REQUESTS_MAX; i++) {
        const mc_slow_request *request = &table->requests[i];
        if (request->number == 0 || request->duration < threshold)
            threshold = request->number == 0 ? -1 : request->duration;
        if (request->number != 0 && request->expires < expires)
            expires = request->expires;
    }
    atomic_store(&table->threshold, threshold);
    atomic_store(&table->expires, expires);
}

void
mc_slow_requests_add(mc_monitor *monitor, const mc_account *account, const mc_telemetry_answer *answer,
                     struct mc_trace *trace, const char *position, apr_pool_t *pool)
{
    char trace_id[MC_TRACE_ID_SIZE];
    if (monitor == NULL)
        return;
    mc_slow_request *slow = apr_pcalloc(pool, sizeof(*slow));
    mc_incident_describe(&slow->request, MC_LOG_INFO, "", account, position, pool);
    slow->time = apr_time_now();
    slow->expires = mc_clock_now() + SLOW_WINDOW;
    slow->duration = answer->duration;
    mc_monitor_copy_text(slow->result, sizeof(slow->result), answer->result);
    mc_trace_id_format(trace_id, &account->context);
    mc_monitor_copy_text(slow->trace, sizeof(slow->trace), trace_id);
    if (trace != NULL)
        fill_slow_spans(slow, trace, answer->begin);
    mc_slow_table *table = &monitor->slow;
    if (!mc_monitor_turn_take(&table->turn, MC_MONITOR_WRITER_PATIENCE))
        return;
    mc_slow_request *place = find_slow_place(table, mc_clock_now());
    if (place->number == 0 || place->expires <= mc_clock_now() || place->duration < slow->duration) {
        slow->number = ++table->last;
        *place = *slow;
    }
    set_slow_threshold(table);
    mc_monitor_turn_give(&table->turn);
}

static int
compare_slow_requests(const void *a, const void *b)
{
    const mc_slow_request *one = a, *other = b;
    return one->duration == other->duration ? 0 : one->duration > other->duration ? -1 : 1;
}

/* Whoever wrote them may have died at it. */
static void
end_slow_texts(mc_slow_request *slow)
{
    mc_incident_end_texts(&slow->request);
    slow->result[sizeof(slow->result) - 1] = slow->trace[sizeof(slow->trace) - 1] = '\0';
    if (slow->span_count < 0 || slow->span_count > MC_SLOW_SPANS_MAX)
        slow->span_count = 0;
    for (int i = 0; i < slow->span_count; i++) {
        mc_slow_span *span = &slow->spans[i];
        span->name[sizeof(span->name) - 1] = span->about[sizeof(span->about) - 1] = '\0';
        span->note[sizeof(span->note) - 1] = '\0';
    }
}

int
mc_slow_requests_copy(mc_slow_request *to, mc_monitor *monitor)
{
    int count = 0;
    if (monitor == NULL || !mc_monitor_turn_take(&monitor->slow.turn, MC_MONITOR_READER_PATIENCE))
        return 0;
    const apr_time_t now = mc_clock_now();
    for (int i = 0; i < MC_SLOW_REQUESTS_MAX; i++)
        if (monitor->slow.requests[i].number != 0 && monitor->slow.requests[i].expires > now)
            to[count++] = monitor->slow.requests[i];
    mc_monitor_turn_give(&monitor->slow.turn);
    for (int i = 0; i < count; i++)
        end_slow_texts(&to[i]);
    qsort(to, (size_t)count, sizeof(*to), compare_slow_requests);
    return count;
}
