/*
 * Functions of dates: text in the form of ISO 8601 ("2026-11-22", "2026-11-22T08:30:00"), so that dates compare as
 * text.
 */
#include <apr_strings.h>
#include <string.h>

#include "draw/style/functions.h"
#include "text/calendar.h"

typedef struct moment {
    int year, month, day, hour, minute, second;
    bool has_time;
} moment;

static const char *const months[] = { "January", "February", "March",     "April",   "May",      "June",
                                      "July",    "August",   "September", "October", "November", "December" };

static bool
is_valid(const moment *m)
{
    return m->year >= 0 && m->year <= 9999 && m->month >= 1 && m->month <= 12 && m->day >= 1 && m->day <= 31 &&
           m->hour >= 0 && m->hour < 24 && m->minute >= 0 && m->minute < 60 && m->second >= 0 && m->second <= 60;
}

/* A number of at most `most` digits. */
static int
parse_date_number(const char **text, int most)
{
    int value = 0;
    for (int i = 0; i < most && **text >= '0' && **text <= '9'; i++)
        value = value * 10 + *(*text)++ - '0';
    return value;
}

static bool
parse_moment(moment *m, const char *text)
{
    int *const fields[] = { &m->year, &m->month, &m->day, &m->hour, &m->minute, &m->second };
    int count = 0;
    *m = (moment){ .month = 1, .day = 1 };
    while (text != NULL && count < 6 && *text >= '0' && *text <= '9') {
        *fields[count] = parse_date_number(&text, count == 0 ? 4 : 2);
        bool more = count < 2 ? *text == '-' : count == 2 ? *text == 'T' || *text == ' ' : *text == ':';
        count++;
        if (!more)
            break;
        text++;
    }
    m->has_time = count >= 5;
    return count >= 3 && is_valid(m);
}

/* Days since the first of March of the year 0 (the proleptic Gregorian calendar). */
static double
days_of(const moment *m)
{
    return (double)(mc_calendar_days(m->year, m->month, m->day) + MC_CALENDAR_EPOCH);
}

static double
seconds_of(const moment *m)
{
    return days_of(m) * 86400 + m->hour * 3600 + m->minute * 60 + m->second;
}

/* Exactly so many digits. */
static bool
take_digits(int *value, const char **text, int digits)
{
    const char *begin = *text;
    *value = parse_date_number(text, digits);
    return *text - begin == digits;
}

/* "Z", "+01", "-03:30", "+0530", or nothing, as seconds east of Greenwich. */
static bool
parse_zone_offset(double *seconds, const char **text)
{
    int hours = 0, minutes = 0, sign = **text == '-' ? -1 : 1;
    *seconds = 0;
    if (**text == 'Z')
        ++*text;
    if (**text != '+' && **text != '-')
        return true;
    ++*text;
    if (!take_digits(&hours, text, 2))
        return false;
    *text += **text == ':';
    if (**text != '\0' && !take_digits(&minutes, text, 2))
        return false;
    *seconds = sign * (hours * 3600.0 + minutes * 60);
    return true;
}

bool
mc_date_seconds(double *seconds, const char *text)
{
    moment m = { .month = 1, .day = 1 };
    double zone = 0, part = 0;
    if (!take_digits(&m.year, &text, 4) || *text++ != '-' || !take_digits(&m.month, &text, 2) || *text++ != '-' ||
        !take_digits(&m.day, &text, 2))
        return false;
    if (*text == 'T' || *text == ' ') {
        text++;
        if (!take_digits(&m.hour, &text, 2) || *text++ != ':' || !take_digits(&m.minute, &text, 2))
            return false;
        if (*text == ':' && (text++, !take_digits(&m.second, &text, 2)))
            return false;
        if (*text == '.') {
            double unit = 1;
            for (text++; *text >= '0' && *text <= '9'; text++)
                part += (*text - '0') * (unit /= 10);
        }
        if (!parse_zone_offset(&zone, &text))
            return false;
    }
    if (*text != '\0' || !is_valid(&m))
        return false;
    *seconds = seconds_of(&m) + part - zone;
    return true;
}

/* One field of a pattern: `count` times the same letter. */
static const char *
format_date_field(char letter, int count, const moment *m, apr_pool_t *pool)
{
    switch (letter) {
    case 'y':
    case 'Y':
        return count == 2 ? apr_psprintf(pool, "%02d", m->year % 100) : apr_psprintf(pool, "%04d", m->year);
    case 'M':
        if (count >= 3)
            return count == 3 ? apr_pstrndup(pool, months[m->month - 1], 3) : months[m->month - 1];
        return apr_psprintf(pool, count == 2 ? "%02d" : "%d", m->month);
    case 'd':
    case 'D':
        return apr_psprintf(pool, count == 2 ? "%02d" : "%d", m->day);
    case 'H':
    case 'h':
        return apr_psprintf(pool, count == 2 ? "%02d" : "%d", m->hour);
    case 'm':
        return apr_psprintf(pool, count == 2 ? "%02d" : "%d", m->minute);
    case 's':
    case 'S':
        return apr_psprintf(pool, count == 2 ? "%02d" : "%d", m->second);
    default:
        return NULL;
    }
}

static const char *
format_moment(const moment *m, const char *pattern, apr_pool_t *pool)
{
    apr_array_header_t *parts = apr_array_make(pool, 16, sizeof(const char *));
    while (*pattern != '\0' && parts->nelts < 64) {
        int count = 1;
        while (pattern[count] == *pattern)
            count++;
        if (*pattern == '\'') { /* text between quotes is as it stands */
            size_t size = strcspn(pattern + 1, "'");
            APR_ARRAY_PUSH(parts, const char *) = apr_pstrmemdup(pool, pattern + 1, size);
            pattern += 1 + size + (pattern[1 + size] == '\'');
            continue;
        }
        const char *part = format_date_field(*pattern, count, m, pool);
        APR_ARRAY_PUSH(parts, const char *) = part != NULL ? part : apr_pstrmemdup(pool, pattern, (size_t)count);
        pattern += count;
    }
    return apr_array_pstrcat(pool, parts, '\0');
}

/* date, pattern (<FormatDate>). */
static const char *
eval_format_date(mc_arguments args, int count, const mc_feature *feature, apr_pool_t *pool)
{
    (void)count;
    moment m;
    const char *pattern = mc_argument_text(args, 1, feature, pool);
    return pattern != NULL && parse_moment(&m, mc_argument_text(args, 0, feature, pool))
               ? format_moment(&m, pattern, pool)
               : NULL;
}

/* GeoServer's: pattern first. */
static const char *
date_format(mc_arguments args, int count, const mc_feature *feature, apr_pool_t *pool)
{
    const mc_expression *const turned[2] = { args[1], args[0] };
    return eval_format_date(turned, count, feature, pool);
}

/* Pattern, text: to ISO 8601. */
static const char *
parse_date(mc_arguments args, int count, const mc_feature *feature, apr_pool_t *pool)
{
    moment m = { .month = 1, .day = 1 };
    (void)count;
    const char *pattern = mc_argument_text(args, 0, feature, pool), *text = mc_argument_text(args, 1, feature, pool);
    if (pattern == NULL || text == NULL)
        return NULL;
    while (*pattern != '\0') {
        int length = 1;
        while (pattern[length] == *pattern)
            length++;
        int *const fields[] = { &m.year, &m.month, &m.day, &m.hour, &m.minute, &m.second };
        const char *known = strchr("yMdHms", *pattern);
        if (known != NULL) {
            *fields[known - "yMdHms"] = parse_date_number(&text, *pattern == 'y' ? 4 : 2);
            m.has_time |= strchr("Hms", *pattern) != NULL;
        } else if (*pattern != '\'' && *text != '\0') {
            text += strlen(text) < (size_t)length ? (size_t)strlen(text) : (size_t)length;
        }
        pattern += length;
    }
    if (!is_valid(&m))
        return NULL;
    return format_moment(&m, m.has_time ? "yyyy-MM-dd'T'HH:mm:ss" : "yyyy-MM-dd", pool);
}

/* Two dates, and the unit: s, m, h or d. */
static const char *
date_difference(mc_arguments args, int count, const mc_feature *feature, apr_pool_t *pool)
{
    moment a, b;
    const char *unit = count > 2 ? mc_argument_text(args, 2, feature, pool) : "s";
    if (!parse_moment(&a, mc_argument_text(args, 0, feature, pool)) ||
        !parse_moment(&b, mc_argument_text(args, 1, feature, pool)) || unit == NULL)
        return NULL;
    double size = *unit == 'd' ? 86400 : *unit == 'h' ? 3600 : *unit == 'm' ? 60 : 1;
    return mc_expression_format((seconds_of(&a) - seconds_of(&b)) / size, pool);
}

/* QGIS': a field of a date. */
#define PART(name, member)                                                                                             \
    static const char *name(mc_arguments args, int count, const mc_feature *feature, apr_pool_t *pool)                 \
    {                                                                                                                  \
        moment m;                                                                                                      \
        (void)count;                                                                                                   \
        bool read = parse_moment(&m, mc_argument_text(args, 0, feature, pool));                                        \
        return read ? mc_expression_format(m.member, pool) : NULL;                                                     \
    }

PART(year_of, year)
PART(month_of, month)
PART(day_of, day)
PART(hour_of, hour)

const mc_function mc_functions_of_dates[] = {
    { "FormatDate", 2, 2, eval_format_date, false },
    { "dateFormat", 2, 2, date_format, false },
    { "dateParse", 2, 2, parse_date, false },
    { "dateDifference", 2, 3, date_difference, false },
    { "year", 1, 1, year_of, false },
    { "month", 1, 1, month_of, false },
    { "day", 1, 1, day_of, false },
    { "hour", 1, 1, hour_of, false },
    { NULL, 0, 0, NULL, false },
};
