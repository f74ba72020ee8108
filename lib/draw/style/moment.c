/* See moment.h. */
#include "draw/style/moment.h"

#include <stddef.h>

#include "text/calendar.h"

bool
mc_moment_is_valid(const mc_moment *m)
{
    return m->year >= 0 && m->year <= 9999 && m->month >= 1 && m->month <= 12 && m->day >= 1 && m->day <= 31 &&
           m->hour >= 0 && m->hour < 24 && m->minute >= 0 && m->minute < 60 && m->second >= 0 && m->second <= 60;
}

int
mc_moment_number(const char **text, int most)
{
    int value = 0;
    for (int i = 0; i < most && **text >= '0' && **text <= '9'; i++)
        value = value * 10 + *(*text)++ - '0';
    return value;
}

bool
mc_moment_parse(mc_moment *m, const char *text)
{
    int *const fields[] = { &m->year, &m->month, &m->day, &m->hour, &m->minute, &m->second };
    int count = 0;
    *m = (mc_moment){ .month = 1, .day = 1 };
    while (text != NULL && count < 6 && *text >= '0' && *text <= '9') {
        *fields[count] = mc_moment_number(&text, count == 0 ? 4 : 2);
        bool more = count < 2 ? *text == '-' : count == 2 ? *text == 'T' || *text == ' ' : *text == ':';
        count++;
        if (!more)
            break;
        text++;
    }
    m->has_time = count >= 5;
    return count >= 3 && mc_moment_is_valid(m);
}

/* Days since the first of March of the year 0 (the proleptic Gregorian calendar). */
static double
days_of_moment(const mc_moment *m)
{
    return (double)(mc_calendar_days(m->year, m->month, m->day) + MC_CALENDAR_EPOCH);
}

double
mc_moment_seconds(const mc_moment *m)
{
    return days_of_moment(m) * 86400 + m->hour * 3600 + m->minute * 60 + m->second;
}

/* Exactly so many digits. */
static bool
take_digits(int *value, const char **text, int digits)
{
    const char *begin = *text;
    *value = mc_moment_number(text, digits);
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
    mc_moment m = { .month = 1, .day = 1 };
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
    if (*text != '\0' || !mc_moment_is_valid(&m))
        return false;
    *seconds = mc_moment_seconds(&m) + part - zone;
    return true;
}
