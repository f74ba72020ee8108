/*
 * Times as periods: "start/end/resolution" (WMS 1.3.0, annex C.3 and D.4) instead of thousands of values, where the
 * times are regular. A gap ends a period, and the next one begins behind the gap.
 */
#include <apr_strings.h>
#include <stdlib.h>
#include <string.h>

#include "dimension/dimension_base.h"
#include "text/calendar.h"
#include "text/time.h"

#define SECOND INT64_C(1000000)
#define DAY (INT64_C(86400) * SECOND)

enum {
    LEAST_IN_PERIOD = 3,
    DATE_BYTES = 10,    /* of "2024-01-01" */
    LAST_SURE_DAY = 28, /* of a month: clients do not agree on what a month after the 31st is */
};

/* A listed time. */
typedef struct listed_time {
    int64_t start_us, end_us;
    const char *text;
    size_t size;
} listed_time;

/* The distance from one time to the next: so many months, or so many microseconds. */
typedef struct time_step {
    int months;
    int64_t us;
} time_step;

static int
compare_listed_times(const void *a, const void *b)
{
    const listed_time *left = a, *right = b;
    if (left->start_us != right->start_us)
        return left->start_us < right->start_us ? -1 : 1;
    return strcmp(left->text, right->text);
}

/* An instant: no range, and no word whose meaning moves. */
static bool
read_listed_time(listed_time *time, const char *text)
{
    mc_time_span span;
    time->size = strlen(text);
    time->text = text;
    if (text[0] < '0' || text[0] > '9' || strchr(text, '/') != NULL || strstr(text, "--") != NULL ||
        mc_time_parse(&span, text, time->size, 0) != NULL)
        return false;
    time->start_us = span.start_us;
    time->end_us = span.end_us;
    return true;
}

/* The times of a list in their order, each once; NULL where one of the values is no instant. */
static apr_array_header_t *
sort_listed_times(const apr_array_header_t *values, apr_pool_t *pool)
{
    apr_array_header_t *times = apr_array_make(pool, values->nelts + 1, sizeof(listed_time));
    bool sorted = true;
    for (int i = 0; i < values->nelts; i++) {
        listed_time *time = apr_array_push(times);
        if (!read_listed_time(time, APR_ARRAY_IDX(values, i, const char *)))
            return NULL;
        sorted = sorted && (i == 0 || compare_listed_times(time - 1, time) < 0);
    }
    if (sorted)
        return times;
    qsort(times->elts, (size_t)times->nelts, sizeof(listed_time), compare_listed_times);
    int kept = 0;
    for (int i = 0; i < times->nelts; i++) {
        const listed_time time = APR_ARRAY_IDX(times, i, listed_time);
        if (kept == 0 || compare_listed_times(&APR_ARRAY_IDX(times, kept - 1, listed_time), &time) != 0)
            APR_ARRAY_IDX(times, kept++, listed_time) = time;
    }
    times->nelts = kept;
    return times;
}

static mc_calendar_date
split_time(int64_t *clock_us, int64_t time_us)
{
    *clock_us = (time_us % DAY + DAY) % DAY;
    return mc_calendar_date_of((time_us - *clock_us) / DAY);
}

/* The whole months from one time to the next; 0 where these are no whole months, or not by every calendar. */
static int
count_whole_months(const listed_time *from, const listed_time *to)
{
    int64_t from_clock, to_clock;
    mc_calendar_date a = split_time(&from_clock, from->start_us), b = split_time(&to_clock, to->start_us);
    if (a.day != b.day || from_clock != to_clock || a.day > LAST_SURE_DAY)
        return 0;
    return (b.year - a.year) * 12 + b.month - a.month;
}

/* Whether a time is written as those before it in its period, whose texts have `*size` bytes. Between times of day a
 * date is its midnight. */
static bool
is_written_alike(size_t *size, const listed_time *time, time_step step)
{
    bool alike = time->size == *size;
    if (alike || step.us % DAY == 0)
        return alike;
    if (*size == DATE_BYTES)
        *size = time->size;
    return time->size == *size || time->size == DATE_BYTES;
}

/* How many times from `first` on follow each other by a step, all written alike. */
static int
measure_period(const listed_time *first, const listed_time *end, time_step step)
{
    const listed_time *at = first;
    size_t size = first->size;
    if (step.months <= 0 && step.us <= 0)
        return 1;
    while (
        at + 1 < end &&
        (step.months > 0 ? count_whole_months(at, at + 1) == step.months : at[1].start_us - at->start_us == step.us) &&
        is_written_alike(&size, at + 1, step))
        at++;
    return (int)(at - first) + 1;
}

/* The longest period that begins with `first`; months where both are as long. */
static int
find_period(time_step *step, const listed_time *first, const listed_time *end)
{
    if (first + 1 >= end)
        return 1;
    const time_step by_months = { .months = count_whole_months(first, first + 1) },
                    by_length = { .us = first[1].start_us - first->start_us };
    int months = measure_period(first, end, by_months), lengths = measure_period(first, end, by_length);
    *step = months >= lengths ? by_months : by_length;
    return months >= lengths ? months : lengths;
}

static const char *
format_seconds(int64_t us, apr_pool_t *pool)
{
    if (us % SECOND == 0)
        return apr_psprintf(pool, "%dS", (int)(us / SECOND));
    char *text = apr_psprintf(pool, "%d.%06d", (int)(us / SECOND), (int)(us % SECOND));
    size_t size = strlen(text);
    while (text[size - 1] == '0')
        text[--size] = '\0';
    return apr_pstrcat(pool, text, "S", NULL);
}

/* As ISO 8601 writes a duration: "P1Y6M", "P8D", "P1DT6H", "PT0.25S". */
static const char *
format_step(time_step step, apr_pool_t *pool)
{
    const char *text = "P";
    if (step.months >= 12)
        text = apr_psprintf(pool, "P%dY", step.months / 12);
    if (step.months % 12 != 0)
        text = apr_psprintf(pool, "%s%dM", text, step.months % 12);
    if (step.months > 0)
        return text;
    int64_t clock = step.us % DAY;
    if (step.us >= DAY)
        text = apr_psprintf(pool, "P%" APR_INT64_T_FMT "D", step.us / DAY);
    if (clock == 0)
        return text;
    text = apr_pstrcat(pool, text, "T", NULL);
    if (clock >= 3600 * SECOND)
        text = apr_psprintf(pool, "%s%dH", text, (int)(clock / (3600 * SECOND)));
    if (clock / (60 * SECOND) % 60 != 0)
        text = apr_psprintf(pool, "%s%dM", text, (int)(clock / (60 * SECOND) % 60));
    return clock % (60 * SECOND) == 0 ? text
                                      : apr_pstrcat(pool, text, format_seconds(clock % (60 * SECOND), pool), NULL);
}

/* What one instant stands for by how it is written: a year, a month, a day, an hour and so on. */
static const char *
format_precision(const listed_time *time, apr_pool_t *pool)
{
    if (time->size == 4)
        return "P1Y";
    if (time->size == 7)
        return "P1M";
    return format_step((time_step){ .us = time->end_us - time->start_us }, pool);
}

/* A list of intervals has intervals only: a time that stands alone is one from itself to itself. */
static const char *
format_period(const listed_time *first, int count, time_step step, apr_pool_t *pool)
{
    return apr_pstrcat(pool, first->text, "/", first[count - 1].text, "/",
                       count > 1 ? format_step(step, pool) : format_precision(first, pool), NULL);
}

const apr_array_header_t *
mc_dimension_periods(const apr_array_header_t *values, apr_pool_t *pool)
{
    const apr_array_header_t *times = sort_listed_times(values, pool);
    apr_array_header_t *periods = apr_array_make(pool, 16, sizeof(const char *));
    bool shorter = false;
    if (times == NULL)
        return values;
    const listed_time *at = (const listed_time *)(const void *)times->elts, *end = at + times->nelts;
    while (at < end) {
        time_step step = { 0, 0 };
        int count = find_period(&step, at, end);
        count = count < LEAST_IN_PERIOD ? 1 : count;
        shorter |= count > 1;
        APR_ARRAY_PUSH(periods, const char *) = format_period(at, count, step, pool);
        at += count;
    }
    return shorter ? periods : values;
}
