/* The Gregorian calendar, also for the years before it was introduced. */
#ifndef MC_TEXT_CALENDAR_H
#define MC_TEXT_CALENDAR_H

#include <stdint.h>

/* Days from 0000-03-01 to 1970-01-01. */
enum { MC_CALENDAR_EPOCH = 719468 };

/* Days since 1970-01-01. The year may be negative, the month is 1..12, the day any. A year is taken to begin in March,
 * so that a leap day is its last day; 146097 days are 400 years. */
static inline int64_t
mc_calendar_days(int64_t year, int month, int64_t day)
{
    static const int before[] = { 306, 337, 0, 31, 61, 92, 122, 153, 184, 214, 245, 275 }; /* days since March */
    if (month < 3)
        year--;
    int64_t era = year / 400 - (year % 400 < 0);
    int64_t in_era = year - era * 400;
    return era * 146097 + in_era * 365 + in_era / 4 - in_era / 100 + before[month - 1] + day - 1 - MC_CALENDAR_EPOCH;
}

typedef struct mc_calendar_date {
    int year, month, day; /* months and days from 1 */
} mc_calendar_date;

/* The date of a day since 1970-01-01. */
static inline mc_calendar_date
mc_calendar_date_of(int64_t days)
{
    days += MC_CALENDAR_EPOCH;
    int64_t era = days / 146097 - (days % 146097 < 0);
    int in_era = (int)(days - era * 146097);
    int year_of_era = (in_era - in_era / 1460 + in_era / 36524 - in_era / 146096) / 365;
    int in_year = in_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int since_march = (5 * in_year + 2) / 153;
    int month = since_march < 10 ? since_march + 3 : since_march - 9;
    return (mc_calendar_date){ (int)(year_of_era + era * 400) + (month < 3), month,
                               in_year - (153 * since_march + 2) / 5 + 1 };
}

/* The number of days of a month, 1..12. */
static inline int
mc_calendar_month_days(int year, int month)
{
    static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    return days[month - 1] + (month == 2 && year % 4 == 0 && (year % 100 != 0 || year % 400 == 0));
}

#endif
