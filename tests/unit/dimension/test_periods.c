/* Regular times become periods, and the periods stand for the same times. */
#include "unit.h"

#include <apr_strings.h>
#include <string.h>

#include "dimension/dimension_base.h"
#include "text/time.h"

static apr_array_header_t *
list_of(const char *text)
{
    apr_array_header_t *values = apr_array_make(pool, 8, sizeof(const char *));
    char *rest = apr_pstrdup(pool, text);
    for (char *value = strsep(&rest, " "); value != NULL; value = strsep(&rest, " "))
        APR_ARRAY_PUSH(values, const char *) = value;
    return values;
}

static const char *
periods_of(const char *text)
{
    return apr_array_pstrcat(pool, mc_dimension_periods(list_of(text), pool), ' ');
}

START_TEST(test_regular_times)
{
    ck_assert_str_eq(periods_of("2024-01-01 2024-01-02 2024-01-03"), "2024-01-01/2024-01-03/P1D");
    ck_assert_str_eq(periods_of("2024-01-03 2024-01-01 2024-01-02 2024-01-01"), "2024-01-01/2024-01-03/P1D");
    ck_assert_str_eq(periods_of("2024-02-28 2024-02-29 2024-03-01"), "2024-02-28/2024-03-01/P1D");
    ck_assert_str_eq(periods_of("2024-01-01 2024-02-01 2024-03-01 2024-04-01"), "2024-01-01/2024-04-01/P1M");
    ck_assert_str_eq(periods_of("2023-11 2023-12 2024-01 2024-02"), "2023-11/2024-02/P1M");
    ck_assert_str_eq(periods_of("2020 2021 2022"), "2020/2022/P1Y");
    ck_assert_str_eq(periods_of("2000-06-15 2001-12-15 2003-06-15"), "2000-06-15/2003-06-15/P1Y6M");
    ck_assert_str_eq(periods_of("2024-01-01 2024-01-09 2024-01-17"), "2024-01-01/2024-01-17/P8D");
    ck_assert_str_eq(periods_of("2024-01-01T00:00Z 2024-01-01T06:00Z 2024-01-01T12:00Z"),
                     "2024-01-01T00:00Z/2024-01-01T12:00Z/PT6H");
    ck_assert_str_eq(periods_of("2024-01-01T00:00:00Z 2024-01-02T06:30:15Z 2024-01-03T13:00:30Z"),
                     "2024-01-01T00:00:00Z/2024-01-03T13:00:30Z/P1DT6H30M15S");
    ck_assert_str_eq(periods_of("2024-01-01T00:00:00.00Z 2024-01-01T00:00:00.25Z 2024-01-01T00:00:00.50Z"),
                     "2024-01-01T00:00:00.00Z/2024-01-01T00:00:00.50Z/PT0.25S");
    /* midnights are written as dates: two days of hours */
    ck_assert_str_eq(periods_of("2024-01-01 2024-01-01T12:00:00Z 2024-01-02 2024-01-02T12:00:00Z"),
                     "2024-01-01/2024-01-02T12:00:00Z/PT12H");
    /* what could be months or days is what lasts longer */
    ck_assert_str_eq(periods_of("2023-07-01 2023-08-01 2023-09-01 2023-10-01"), "2023-07-01/2023-10-01/P1M");
    ck_assert_str_eq(periods_of("2023-01-01 2023-02-01 2023-03-04 2023-04-04"), "2023-01-01/2023-04-04/P31D");
}
END_TEST

START_TEST(test_gaps)
{
    ck_assert_str_eq(periods_of("2024-01-01 2024-01-02 2024-01-03 2024-02-01 2024-02-02 2024-02-03"),
                     "2024-01-01/2024-01-03/P1D 2024-02-01/2024-02-03/P1D");
    ck_assert_str_eq(periods_of("2023-12-27 2024-01-01 2024-01-09 2024-01-17"),
                     "2023-12-27/2023-12-27/P1D 2024-01-01/2024-01-17/P8D");
    ck_assert_str_eq(periods_of("1999 2024-01-01 2024-01-02 2024-01-03 2024-03"),
                     "1999/1999/P1Y 2024-01-01/2024-01-03/P1D 2024-03/2024-03/P1M");
    ck_assert_str_eq(periods_of("2024-01-01T00Z 2024-01-02T00:00Z 2024-01-03T00:00Z 2024-01-04T00:00Z"),
                     "2024-01-01T00Z/2024-01-01T00Z/PT1H 2024-01-02T00:00Z/2024-01-04T00:00Z/P1D");
}
END_TEST

START_TEST(test_what_stays)
{
    const char *const same[] = {
        "2024-01-01",
        "2024-01-01 2024-01-02",
        "2024-01-01 2024-01-02 2024-01-05",
        "a b c",
        "2024-01-01 x 2024-01-03 2024-01-02",
        "current 2024-01-01 2024-01-02 2024-01-03",
        "2024-01-01/P1D 2024-01-02/P1D 2024-01-03/P1D",
        "2024-01-31 2024-03-02 2024-03-31",
        "2024-13-01 2024-13-02",
    };
    for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++)
        ck_assert_str_eq(periods_of(same[i]), same[i]);
    ck_assert_int_eq(mc_dimension_periods(apr_array_make(pool, 1, sizeof(char *)), pool)->nelts, 0);
}
END_TEST

/* A million times, shuffled, of three steps; each period is walked as a client would. */
START_TEST(test_many)
{
    enum { COUNT = 1000000 };
    apr_array_header_t *values = apr_array_make(pool, COUNT, sizeof(const char *));
    int64_t at = INT64_C(-2208988800000000);
    for (int i = 0; i < COUNT; i++) {
        APR_ARRAY_PUSH(values, const char *) = mc_time_text(at, pool);
        at += (i % 1000 == 999 ? 7 : 1) * INT64_C(1200000000);
    }
    for (int i = 0; i < COUNT; i++) {
        const char *swapped = APR_ARRAY_IDX(values, i, const char *);
        int other = (int)((unsigned)i * 2654435761u % COUNT);
        APR_ARRAY_IDX(values, i, const char *) = APR_ARRAY_IDX(values, other, const char *);
        APR_ARRAY_IDX(values, other, const char *) = swapped;
    }
    const apr_array_header_t *periods = mc_dimension_periods(values, pool);
    ck_assert_int_le(periods->nelts, COUNT / 1000);
    int found = 0;
    for (int i = 0; i < periods->nelts; i++) {
        char *rest = apr_pstrdup(pool, APR_ARRAY_IDX(periods, i, const char *));
        const char *start = strsep(&rest, "/"), *end = strsep(&rest, "/"), *step = rest;
        mc_time_span from, to;
        ck_assert_ptr_null(mc_time_parse(&from, start, strlen(start), 0));
        ck_assert_ptr_null(mc_time_parse(&to, end, strlen(end), 0));
        int64_t time = from.start_us;
        for (found++; time < to.start_us; found++)
            ck_assert_ptr_null(mc_time_step(&time, step, 1));
        ck_assert(time == to.start_us);
    }
    ck_assert_int_eq(found, COUNT);
}
END_TEST

UNIT_MAIN("periods", test_regular_times, test_gaps, test_what_stays, test_many)
