#include "unit.h"

#include <time.h>

#include "text/calendar.h"

START_TEST(known_days_have_their_dates)
{
    static const struct {
        int64_t days;
        int year, month, day;
    } known[] = {
        { 0, 1970, 1, 1 },         { -1, 1969, 12, 31 },        { 11016, 2000, 2, 29 }, { 47540, 2100, 2, 28 },
        { 47541, 2100, 3, 1 },     { -719468, 0, 3, 1 },        { -719469, 0, 2, 29 },  { -719529, -1, 12, 31 },
        { 2932896, 9999, 12, 31 }, { -2440588, -4713, 11, 24 },
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        mc_calendar_date at = mc_calendar_date_of(known[i].days);
        ck_assert_int_eq(at.year, known[i].year);
        ck_assert_int_eq(at.month, known[i].month);
        ck_assert_int_eq(at.day, known[i].day);
        ck_assert_int_eq(mc_calendar_days(at.year, at.month, at.day), known[i].days);
    }
}
END_TEST

START_TEST(dates_are_those_of_the_c_library)
{
    for (int64_t days = -800000; days <= 3000000; days += 7) {
        time_t seconds = (time_t)(days * 86400);
        struct tm expected;
        ck_assert_ptr_nonnull(gmtime_r(&seconds, &expected));
        mc_calendar_date at = mc_calendar_date_of(days);
        ck_assert_int_eq(at.year, expected.tm_year + 1900);
        ck_assert_int_eq(at.month, expected.tm_mon + 1);
        ck_assert_int_eq(at.day, expected.tm_mday);
        ck_assert_int_eq(mc_calendar_days(at.year, at.month, at.day), days);
    }
}
END_TEST

START_TEST(months_have_their_days)
{
    ck_assert_int_eq(mc_calendar_month_days(2000, 2), 29);
    ck_assert_int_eq(mc_calendar_month_days(1900, 2), 28);
    ck_assert_int_eq(mc_calendar_month_days(2024, 2), 29);
    for (int month = 1; month < 12; month++)
        ck_assert_int_eq(mc_calendar_month_days(2023, month),
                         mc_calendar_days(2023, month + 1, 1) - mc_calendar_days(2023, month, 1));
    ck_assert_int_eq(mc_calendar_days(2023, 1, 32), mc_calendar_days(2023, 2, 1)); /* any day */
}
END_TEST

UNIT_MAIN("calendar", known_days_have_their_dates, dates_are_those_of_the_c_library, months_have_their_days)
