/* Times of clients: ISO 8601 as WMS 1.3.0 annex D uses it, by hand: strptime() depends on the locale and knows no
 * fractions. */
#include "text/time.h"

#include <apr_strings.h>
#include <string.h>

#include "text/calendar.h"
#include "text/text.h"

#define SECOND INT64_C(1000000)
#define DAY (INT64_C(86400) * SECOND)

enum { MOST_YEARS = 100000 };

/* What an instant was written to; its period is one of these. */
typedef enum precision { YEAR, MONTH, DATE, HOUR, MINUTE, WHOLE_SECOND, FRACTION } precision;

typedef struct instant {
    int year, month, day; /* 1..12, 1..31 */
    int64_t clock_us;     /* since midnight, UTC: an offset may make it negative or more than a day */
    precision precision;
    int64_t unit_us; /* of hours and below */
} instant;

/* Months count calendar steps; the rest is a length. */
typedef struct duration {
    int months;
    int64_t days, clock_us;
} duration;

typedef struct time_reader {
    const char *at, *end;
} time_reader;

static bool
accept_time_char(time_reader *in, char wanted)
{
    if (in->at == in->end || *in->at != wanted)
        return false;
    in->at++;
    return true;
}

static bool
at_digit(const time_reader *in)
{
    return in->at < in->end && *in->at >= '0' && *in->at <= '9';
}

/* Exactly `digits` digits, from least to most. */
static bool
parse_time_number(int *number, time_reader *in, int digits, int least, int most)
{
    int value = 0;
    for (int i = 0; i < digits; i++) {
        if (!at_digit(in))
            return false;
        value = value * 10 + (*in->at++ - '0');
    }
    *number = value;
    return value >= least && value <= most;
}

static int64_t
unix_us_at_date(int64_t year, int month, int64_t day, int64_t clock_us)
{
    return mc_calendar_days(year, month, day) * DAY + clock_us;
}

static int64_t
start_of(const instant *at)
{
    return unix_us_at_date(at->year, at->month, at->day, at->clock_us);
}

/* The end of the period that the instant stands for. */
static int64_t
end_of(const instant *at)
{
    switch (at->precision) {
    case YEAR:
        return unix_us_at_date(at->year + 1, 1, 1, 0);
    case MONTH:
        return at->month == 12 ? unix_us_at_date(at->year + 1, 1, 1, 0)
                               : unix_us_at_date(at->year, at->month + 1, 1, 0);
    case DATE:
        return unix_us_at_date(at->year, at->month, at->day + 1, 0);
    default:
        return start_of(at) + at->unit_us;
    }
}

/* Digits behind the second's point; beyond microseconds they are cut. */
static bool
parse_second_fraction(instant *at, time_reader *in)
{
    if (!at_digit(in))
        return false;
    int64_t unit = SECOND;
    for (int digits = 0; at_digit(in); in->at++) {
        if (++digits > 9)
            return false;
        if (unit > 1) {
            unit /= 10;
            at->clock_us += (*in->at - '0') * unit;
        }
    }
    at->precision = FRACTION;
    at->unit_us = unit;
    return true;
}

/* "Z", "+hh", "+hhmm", "+hh:mm"; a '+' that was decoded as one of a form is a blank. */
static bool
parse_utc_offset(instant *at, time_reader *in)
{
    if (accept_time_char(in, 'Z'))
        return true;
    bool west = accept_time_char(in, '-');
    int hours, minutes = 0;
    if ((!west && !accept_time_char(in, '+') && !accept_time_char(in, ' ')) || !parse_time_number(&hours, in, 2, 0, 23))
        return false;
    bool colon = accept_time_char(in, ':');
    if ((colon || at_digit(in)) && !parse_time_number(&minutes, in, 2, 0, 59))
        return false;
    int64_t offset = (hours * 60 + minutes) * 60 * SECOND;
    at->clock_us += west ? offset : -offset;
    return true;
}

static const char *
take_clock(instant *at, time_reader *in)
{
    int hour, minute = 0, second = 0;
    at->precision = HOUR;
    at->unit_us = 3600 * SECOND;
    if (!parse_time_number(&hour, in, 2, 0, 23))
        return "an hour is 00 to 23";
    if (accept_time_char(in, ':')) {
        at->precision = MINUTE;
        at->unit_us = 60 * SECOND;
        if (!parse_time_number(&minute, in, 2, 0, 59))
            return "a minute is 00 to 59";
        if (accept_time_char(in, ':')) {
            at->precision = WHOLE_SECOND;
            at->unit_us = SECOND;
            if (!parse_time_number(&second, in, 2, 0, 60)) /* 60: a leap second, which is the next minute's first */
                return "a second is 00 to 59";
        }
    }
    at->clock_us = ((int64_t)(hour * 60 + minute) * 60 + second) * SECOND;
    if (at->precision == WHOLE_SECOND && accept_time_char(in, '.') && !parse_second_fraction(at, in))
        return "a fraction of a second has 1 to 9 digits";
    return parse_utc_offset(at, in) ? NULL : "a time of day ends with Z or an offset such as +01:00";
}

static const char *
parse_instant(instant *at, const char *text, const char *end)
{
    time_reader in = { text, end };
    *at = (instant){ .month = 1, .day = 1, .precision = YEAR };
    if (!parse_time_number(&at->year, &in, 4, 0, 9999))
        return "a year has four digits";
    if (accept_time_char(&in, '-')) {
        at->precision = MONTH;
        if (!parse_time_number(&at->month, &in, 2, 1, 12))
            return "a month is 01 to 12";
        if (accept_time_char(&in, '-')) {
            at->precision = DATE;
            if (!parse_time_number(&at->day, &in, 2, 1, mc_calendar_month_days(at->year, at->month)))
                return "the month has no such day";
            if (accept_time_char(&in, 'T')) {
                const char *wrong = take_clock(at, &in);
                if (wrong != NULL)
                    return wrong;
            }
        }
    }
    return in.at == end ? NULL : "something follows the time";
}

/* The letters of a duration in their order; those behind 'T' are of the clock. */
static bool
add_component(duration *length, int64_t number, char letter, bool clock)
{
    switch (letter) {
    case 'Y':
        length->months += (int)number * 12; /* six digits: no overflow */
        return !clock;
    case 'M':
        if (clock)
            length->clock_us += number * 60 * SECOND;
        else
            length->months += (int)number;
        return true;
    case 'W':
        length->days += number * 7;
        return !clock;
    case 'D':
        length->days += number;
        return !clock;
    case 'H':
        length->clock_us += number * 3600 * SECOND;
        return clock;
    case 'S':
        length->clock_us += number * SECOND;
        return clock;
    default:
        return false;
    }
}

/* "P1Y2M10DT2H30M5.5S": components in this order, each at most once, six digits at most. */
static bool
parse_duration(duration *length, const char *text, const char *end)
{
    time_reader in = { text, end };
    const char *order = "YMWDTHMS";
    bool clock = false, some = false;
    *length = (duration){ 0 };
    if (!accept_time_char(&in, 'P'))
        return false;
    while (in.at < end) {
        if (*in.at == 'T') {
            if (clock || ++in.at == end)
                return false;
            clock = true;
            order = "HMS";
        }
        int64_t number = 0, fraction = 0, unit = SECOND;
        int digits = 0;
        for (; at_digit(&in) && digits <= 6; digits++)
            number = number * 10 + (*in.at++ - '0');
        if (digits == 0 || digits > 6)
            return false;
        if (accept_time_char(&in, '.'))
            for (; at_digit(&in) && unit > 1; fraction += (*in.at++ - '0') * unit)
                unit /= 10;
        const char *found = in.at < end ? strchr(order, *in.at) : NULL;
        if (found == NULL || *found == '\0' || (unit != SECOND && *found != 'S') ||
            !add_component(length, number, *found, clock))
            return false;
        length->clock_us += fraction;
        order = found + 1;
        in.at++;
        some = true;
    }
    return some;
}

/* A time moved by a duration: months by the calendar (the 31st becomes the last of a shorter month), the rest by
 * length. False where that leaves the years that can be counted. */
static bool
add_duration(int64_t *time_us, const duration *by, int sign)
{
    if (by->months != 0) {
        int64_t midnight = *time_us - (*time_us % DAY + DAY) % DAY;
        mc_calendar_date date = mc_calendar_date_of(midnight / DAY);
        int64_t month = (int64_t)date.year * 12 + date.month - 1 + (int64_t)sign * by->months;
        if (month < 0 || month > MOST_YEARS * 12)
            return false;
        int year = (int)(month / 12), of_year = (int)(month % 12) + 1;
        int last = mc_calendar_month_days(year, of_year);
        *time_us += unix_us_at_date(year, of_year, date.day < last ? date.day : last, 0) - midnight;
    }
    *time_us += sign * (by->days * DAY + by->clock_us);
    return true;
}

/* An end of a range: an instant or "current", which is this second. */
static const char *
parse_end(mc_time_span *span, const char *text, const char *end, apr_time_t now)
{
    if (end - text == 7 && memcmp(text, "current", 7) == 0) {
        int64_t second = now - now % SECOND;
        *span = (mc_time_span){ second, second + SECOND };
        return NULL;
    }
    instant at;
    const char *wrong = parse_instant(&at, text, end);
    if (wrong == NULL)
        *span = (mc_time_span){ start_of(&at), end_of(&at) };
    return wrong;
}

typedef struct part {
    const char *text, *end;
} part;

static const char *
parse_range(mc_time_span *span, part first, part second, apr_time_t now)
{
    mc_time_span from = { 0, 0 }, to = { 0, 0 };
    duration length;
    const char *wrong = NULL;
    bool by_end = first.text < first.end && *first.text == 'P';
    bool by_start = second.text < second.end && *second.text == 'P';
    if (by_end || by_start) {
        part part = by_end ? first : second;
        if (by_end && by_start)
            return "a range has a start or an end beside its duration";
        if (!parse_duration(&length, part.text, part.end))
            return "a duration is written as P1Y2M3DT4H5M6S";
    }
    if (!by_end)
        wrong = parse_end(&from, first.text, first.end, now);
    if (!by_start && wrong == NULL)
        wrong = parse_end(&to, second.text, second.end, now);
    if (wrong != NULL)
        return wrong;
    *span = (mc_time_span){ by_end ? to.end_us : from.start_us, by_start ? from.start_us : to.end_us };
    if (by_end || by_start)
        if (!add_duration(by_end ? &span->start_us : &span->end_us, &length, by_end ? -1 : 1))
            return "a duration is too long";
    return NULL;
}

/* False beyond the years that can be counted. */
static bool
multiply_duration(duration *length, int times)
{
    const int64_t most_days = (int64_t)MOST_YEARS * 366;
    int64_t months = (int64_t)length->months * times, clock_us;
    length->days *= times; /* seven digits times ten: no overflow */
    if (months > MOST_YEARS * 12 || length->days > most_days ||
        __builtin_mul_overflow(length->clock_us, (int64_t)times, &clock_us) || clock_us > most_days * DAY)
        return false;
    length->months = (int)months;
    length->clock_us = clock_us;
    return true;
}

const char *
mc_time_step(int64_t *time_us, const char *text, int times)
{
    duration length;
    if (!parse_duration(&length, text, text + strlen(text)) ||
        (length.months == 0 && length.days == 0 && length.clock_us == 0))
        return "a step is written as P1D or PT1H";
    bool moved = multiply_duration(&length, times) && add_duration(time_us, &length, 1);
    return moved && *time_us < unix_us_at_date(10000, 1, 1, 0) ? NULL : "that is beyond the year 9999";
}

/* The part that ends with "/" or "--" or the text; *next: behind it, NULL where there is no more. */
static part
split_interval_part(const char **next, const char *text, const char *end)
{
    for (const char *at = text; at < end; at++)
        if (*at == '/' || (*at == '-' && at + 1 < end && at[1] == '-')) {
            *next = at + (*at == '/' ? 1 : 2);
            return (part){ text, at };
        }
    *next = NULL;
    return (part){ text, end };
}

const char *
mc_time_parse(mc_time_span *span, const char *text, size_t size, apr_time_t now)
{
    const char *end = text + size, *next;
    duration resolution;
    part first = split_interval_part(&next, text, end);
    if (next == NULL)
        return parse_end(span, first.text, first.end, now);
    part second = split_interval_part(&next, next, end);
    const char *wrong = parse_range(span, first, second, now);
    if (wrong != NULL || next == NULL)
        return wrong;
    part third = split_interval_part(&next, next, end);
    return next == NULL && parse_duration(&resolution, third.text, third.end)
               ? NULL
               : "a resolution is written as P1D or PT1H";
}

mc_error *
mc_time_parse_list(apr_array_header_t **spans, const char *dimension, const char *text, apr_time_t now,
                   apr_pool_t *pool)
{
    *spans = apr_array_make(pool, 4, sizeof(mc_time_span));
    while (*text != '\0') {
        size_t size = strcspn(text, ",");
        const char *item = text, *end = text + size;
        text += size + (text[size] == ',');
        while (item < end && *item == ' ')
            item++;
        while (end > item && end[-1] == ' ')
            end--;
        if (item == end)
            continue;
        if ((*spans)->nelts == MC_TIME_ITEMS_MAX)
            return mc_error_located(pool, MC_ERR_INVALID_DIMENSION, dimension, "dimension %s: more than %d times",
                                    dimension, MC_TIME_ITEMS_MAX);
        mc_time_span span;
        const char *wrong = mc_time_parse(&span, item, (size_t)(end - item), now);
        if (wrong != NULL)
            return mc_error_located(
                pool, MC_ERR_INVALID_DIMENSION, dimension, "dimension %s: \"%s\" is not a time: %s", dimension,
                mc_message_text(apr_pstrmemdup(pool, item, (apr_size_t)(end - item)), 60, pool), wrong);
        APR_ARRAY_PUSH(*spans, mc_time_span) = span;
    }
    if ((*spans)->nelts == 0)
        return mc_error_located(pool, MC_ERR_INVALID_DIMENSION, dimension, "dimension %s: a time is missing",
                                dimension);
    return MC_OK;
}

const char *
mc_time_text(int64_t time_us, apr_pool_t *pool)
{
    int64_t days = time_us / DAY - (time_us % DAY < 0), clock_us = time_us - days * DAY;
    mc_calendar_date at = mc_calendar_date_of(days);
    if (clock_us == 0)
        return apr_psprintf(pool, "%04d-%02d-%02d", at.year, at.month, at.day);
    int seconds = (int)(clock_us / SECOND), rest = (int)(clock_us % SECOND);
    char fraction[8] = "";
    if (rest != 0) {
        apr_snprintf(fraction, sizeof(fraction), ".%06d", rest);
        for (size_t end = strlen(fraction); fraction[end - 1] == '0';)
            fraction[--end] = '\0';
    }
    return apr_psprintf(pool, "%04d-%02d-%02dT%02d:%02d:%02d%sZ", at.year, at.month, at.day, seconds / 3600,
                        seconds / 60 % 60, seconds % 60, fraction);
}
