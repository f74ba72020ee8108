/* See cron.h. */
#include "text/cron.h"

#include <string.h>

#include "text/calendar.h"

enum { DAY_MINUTES = 24 * 60, YEARS = 9 /* the leap years before and after 2100 are eight years apart */ };

#define MINUTE_US INT64_C(60000000)

typedef struct cron_reader {
    const char *at, *end;
} cron_reader;

typedef struct cron_field {
    int least, most;
} cron_field;

static bool
accept_cron_char(cron_reader *in, char c)
{
    if (in->at == in->end || *in->at != c)
        return false;
    in->at++;
    return true;
}

static void
skip_cron_blanks(cron_reader *in)
{
    while (in->at < in->end && (*in->at == ' ' || *in->at == '\t' || *in->at == '\n' || *in->at == '\r'))
        in->at++;
}

/* At most three digits. */
static bool
read_cron_number(int *number, cron_reader *in)
{
    const char *begin = in->at;
    *number = 0;
    while (in->at < in->end && *in->at >= '0' && *in->at <= '9' && in->at - begin < 3)
        *number = *number * 10 + (*in->at++ - '0');
    return in->at > begin;
}

/* One item of a list: '*', "a", "a-b", each but "a" with "/n". */
static bool
read_cron_item(uint64_t *bits, cron_reader *in, const cron_field *field)
{
    int from = field->least, to = field->most, step = 1;
    bool single = false;
    if (!accept_cron_char(in, '*')) {
        if (!read_cron_number(&from, in))
            return false;
        single = !accept_cron_char(in, '-');
        to = from;
        if (!single && !read_cron_number(&to, in))
            return false;
    }
    if (!single && accept_cron_char(in, '/') && !read_cron_number(&step, in))
        return false;
    if (from < field->least || to > field->most || from > to || step < 1)
        return false;
    for (int i = from; i <= to; i += step)
        *bits |= UINT64_C(1) << i;
    return true;
}

/* *any: the field begins with '*'. */
static bool
read_cron_field(uint64_t *bits, bool *any, cron_reader *in, const cron_field *field)
{
    *bits = 0;
    skip_cron_blanks(in);
    *any = in->at < in->end && *in->at == '*';
    do
        if (!read_cron_item(bits, in, field))
            return false;
    while (accept_cron_char(in, ','));
    return in->at == in->end || *in->at == ' ' || *in->at == '\t' || *in->at == '\n' || *in->at == '\r';
}

const char *
mc_cron_parse(mc_cron *cron, const char *text, size_t size)
{
    static const cron_field fields[] = { { 0, 59 }, { 0, 23 }, { 1, 31 }, { 1, 12 }, { 0, 7 } };
    static const char *const wrong[] = { "the minute of a cron expression is 0 to 59, as in \"15 */6 * * *\"",
                                         "the hour of a cron expression is 0 to 23, as in \"15 */6 * * *\"",
                                         "the day of the month of a cron expression is 1 to 31, as in \"0 3 1,15 * *\"",
                                         "the month of a cron expression is 1 to 12, as in \"0 3 1 1-6 *\"",
                                         "the day of the week of a cron expression is 0 to 7, as in \"0 3 * * 1-5\"" };
    cron_reader in = { text, text + size };
    uint64_t bits[5];
    bool any[5];
    for (int i = 0; i < 5; i++)
        if (!read_cron_field(&bits[i], &any[i], &in, &fields[i]))
            return wrong[i];
    skip_cron_blanks(&in);
    if (in.at != in.end)
        return "a cron expression has five fields: minute, hour, day, month, day of the week";
    *cron = (mc_cron){ .minutes = bits[0],
                       .hours = (uint32_t)bits[1],
                       .days = (uint32_t)bits[2],
                       .months = (uint16_t)bits[3],
                       .weekdays = (uint8_t)((bits[4] | bits[4] >> 7) & 0x7f),
                       .any_day = any[2],
                       .any_weekday = any[4] };
    return mc_cron_next(cron, 0) == INT64_MAX ? "no day has this date" : NULL;
}

static bool
is_cron_day(const mc_cron *cron, int64_t day)
{
    mc_calendar_date date = mc_calendar_date_of(day);
    int weekday = (int)(((day + 4) % 7 + 7) % 7); /* 1970-01-01 was a Thursday */
    bool dated = (cron->days >> date.day & 1) != 0, named = (cron->weekdays >> weekday & 1) != 0;
    if ((cron->months >> date.month & 1) == 0)
        return false;
    return cron->any_day || cron->any_weekday ? dated && named : dated || named;
}

/* The first minute of a day from `minute` on; -1: there is none. */
static int
find_cron_minute(const mc_cron *cron, int minute)
{
    for (int hour = minute / 60; hour < 24; hour++, minute = hour * 60) {
        uint64_t rest = (cron->hours >> hour & 1) == 0 ? 0 : cron->minutes >> (minute % 60);
        if (rest != 0)
            return minute + __builtin_ctzll(rest);
    }
    return -1;
}

int64_t
mc_cron_next(const mc_cron *cron, int64_t time_us)
{
    int64_t first = time_us / MINUTE_US - (time_us % MINUTE_US < 0) + 1;
    int64_t day = first / DAY_MINUTES - (first % DAY_MINUTES < 0);
    int minute = (int)(first - day * DAY_MINUTES);
    for (int64_t last = day + YEARS * 366; day <= last; day++, minute = 0) {
        int found = is_cron_day(cron, day) ? find_cron_minute(cron, minute) : -1;
        if (found >= 0)
            return (day * DAY_MINUTES + found) * MINUTE_US;
    }
    return INT64_MAX;
}
