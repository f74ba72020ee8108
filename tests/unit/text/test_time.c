#include "unit.h"

#include <apr_strings.h>
#include <string.h>

#include "text/time.h"

/* 2026-11-21T20:00:00.25Z */
static const apr_time_t now = INT64_C(1795291200250000);

typedef struct row {
    const char *text;
    double start, end; /* seconds */
} row;

static void
check(const row *row)
{
    mc_time_span span = { 0, 0 };
    const char *wrong = mc_time_parse(&span, row->text, strlen(row->text), now);
    ck_assert_msg(wrong == NULL, "%s: %s", row->text, wrong);
    ck_assert_msg(span.start_us == (int64_t)(row->start * 1e6 + (row->start < 0 ? -0.5 : 0.5)),
                  "%s starts at %lld us, not %.6f s", row->text, (long long)span.start_us, row->start);
    ck_assert_msg(span.end_us == (int64_t)(row->end * 1e6 + (row->end < 0 ? -0.5 : 0.5)),
                  "%s ends at %lld us, not %.6f s", row->text, (long long)span.end_us, row->end);
}

#define CHECK_ALL(rows)                                                                                                \
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)                                                        \
    check(&rows[i])

START_TEST(an_instant_is_its_whole_period)
{
    static const row rows[] = {
        { "2010", 1262304000, 1293840000 }, /* as MapCache has it */
        { "1970", 0, 31536000 },
        { "1969", -31536000, 0 },
        { "0000", -62167219200, -62135596800 },
        { "9999", 253370764800, 253402300800 },
        { "2012", 1325376000, 1356998400 },
        { "2010-02", 1264982400, 1267401600 },
        { "2012-02", 1328054400, 1330560000 },   /* 29 days */
        { "1900-02", -2206310400, -2203891200 }, /* 28: a century */
        { "2000-02", 949363200, 951868800 },     /* 29: four of them */
        { "2010-12", 1291161600, 1293840000 },
        { "2010-03-04", 1267660800, 1267747200 },
        { "2010-12-31", 1293753600, 1293840000 },
        { "2012-02-29", 1330473600, 1330560000 },
        { "2010-03-04T12Z", 1267704000, 1267707600 },
        { "2010-03-04T12:30Z", 1267705800, 1267705860 },
        { "2010-03-04T12:30:15Z", 1267705815, 1267705816 },
        { "1969-12-31T23:59:59Z", -1, 0 },
        { "2016-12-31T23:59:60Z", 1483228800, 1483228801 }, /* a leap second */
    };
    CHECK_ALL(rows);
}
END_TEST

START_TEST(fractions_of_a_second)
{
    static const row rows[] = {
        { "2010-03-04T12:30:15.5Z", 1267705815.5, 1267705815.6 },
        { "2010-03-04T12:30:15.50Z", 1267705815.5, 1267705815.51 },
        { "2010-03-04T12:30:15.250Z", 1267705815.25, 1267705815.251 },
        { "2010-03-04T12:30:15.000001Z", 1267705815.000001, 1267705815.000002 },
        { "2010-03-04T12:30:15.000001999Z", 1267705815.000001, 1267705815.000002 }, /* cut */
        { "1969-12-31T23:59:59.5Z", -0.5, -0.4 },
    };
    CHECK_ALL(rows);
}
END_TEST

START_TEST(offsets_lead_to_utc)
{
    static const row rows[] = {
        { "2010-03-04T12:30:15+02:00", 1267698615, 1267698616 },
        { "2010-03-04T12:30:15 02:00", 1267698615, 1267698616 }, /* a '+' that came as a blank */
        { "2010-03-04T12:30:15-02:00", 1267713015, 1267713016 },
        { "2010-03-04T12:30:15+0530", 1267686015, 1267686016 },
        { "2010-03-04T12:30+02", 1267698600, 1267698660 },
        { "2010-03-04T12-12", 1267747200, 1267750800 },
        { "2010-01-01T00:00:00.5+01:00", 1262300400.5, 1262300400.6 }, /* the year before */
        { "2010-12-31T23:00:00-01:00", 1293840000, 1293840001 },       /* the next year */
    };
    CHECK_ALL(rows);
}
END_TEST

START_TEST(ranges_end_behind_the_period_of_their_end)
{
    static const row rows[] = {
        { "2010/2010", 1262304000, 1293840000 },
        { "2010/2012", 1262304000, 1356998400 },
        { "2010--2012", 1262304000, 1356998400 },
        { "2010-03-04/2010-03-04T12:00:00Z", 1267660800, 1267704001 }, /* as MapCache has it */
        { "2010-03-04--2010-03-05", 1267660800, 1267833600 },
        { "2010-03-04T12:00:00-02:00/2010-03-04T12:00:00-02:00", 1267711200, 1267711201 },
        { "2010-03-04T12:00:00-02:00--2010-03-04T13Z", 1267711200, 1267711200 },
        { "2012/2010", 1325376000, 1293840000 }, /* reversed: empty, not refused */
    };
    CHECK_ALL(rows);
}
END_TEST

START_TEST(a_resolution_changes_nothing)
{
    static const row rows[] = {
        { "2010/2012/P1Y", 1262304000, 1356998400 },
        { "2010-01-01/2010-01-02/PT1H", 1262304000, 1262476800 },
        { "2010-01-01/2010-01-02/PT0.5S", 1262304000, 1262476800 },
        { "2010-01-01/2010-01-02/P1Y2M3W4DT5H6M7S", 1262304000, 1262476800 },
    };
    CHECK_ALL(rows);
}
END_TEST

START_TEST(a_duration_stands_for_one_end_of_a_range)
{
    static const row rows[] = {
        { "2010/P1Y", 1262304000, 1293840000 },
        { "2010-01-01/P1M", 1262304000, 1264982400 },
        { "2010-01-31/P1M", 1264896000, 1267315200 }, /* the last day of February */
        { "2010-01-01/P1D", 1262304000, 1262390400 },
        { "2010-01-01/P1W", 1262304000, 1262908800 },
        { "2010-01-01T06Z/PT1H30M", 1262325600, 1262331000 },
        { "2010-01-01/PT0.25S", 1262304000, 1262304000.25 },
        { "2010-01-01T12Z/P1M", 1262347200, 1265025600 },
        { "P1Y/2010", 1262304000, 1293840000 },
        { "P1M/2010-02-28", 1264982400, 1267401600 }, /* up to March, from the first of February */
        { "P1D/2010-01-01", 1262304000, 1262390400 },
        { "P13M/2010", 1259625600, 1293840000 },
        { "1960-01-15T06:00:00Z/P1M", -314388000, -311709600 },
        { "2010/P1Y/P1D", 1262304000, 1293840000 },
    };
    CHECK_ALL(rows);
}
END_TEST

START_TEST(current_is_the_end_of_a_range)
{
    static const row rows[] = {
        { "2026-11-21/current", 1795219200, 1795291201 }, { "PT1H/current", 1795287601, 1795291201 },
        { "P1M/current", 1792612801, 1795291201 },        { "current/2027", 1795291200, 1830297600 },
        { "current/P1D", 1795291200, 1795377600 },        { "current", 1795291200, 1795291201 },
    };
    CHECK_ALL(rows);
}
END_TEST

START_TEST(what_is_no_time)
{
    static const char *const bad[] = {
        "",
        " ",
        "d1",
        "default",
        "201",
        "20100",
        "+2010",
        "-2010",
        "2010-",
        "2010-1",
        "2010-00",
        "2010-13",
        "2010-01-00",
        "2010-01-32",
        "2010-02-29",
        "1900-02-29",
        "2010-04-31",
        "2010-1-1",
        "20100101",
        "2010-01-01 12Z",
        "2010-01-01T",
        "2010-01-01T12",
        "2010-01-01T24Z",
        "2010-01-01T12:60Z",
        "2010-01-01T12:00:61Z",
        "2010-01-01T12:00:00",
        "2010-01-01T12:00:00.Z",
        "2010-01-01T12:00:00.0000000001Z",
        "2010-01-01T12:00.5Z",
        "2010-01-01T12:00:00z",
        "2010-01-01T12:00:00+",
        "2010-01-01T12:00:00+1",
        "2010-01-01T12:00:00+24:00",
        "2010-01-01T12:00:00+01:60",
        "2010-01-01T12:00:00+01:",
        "2010-01-01T12:00:00Z+01:00",
        "2010-01-01Z",
        "2010-01-01Tcurrent",
        "currents",
        "Current",
        "now",
        "/",
        "//",
        "2010/",
        "/2010",
        "2010//2011",
        "2010/2011/",
        "2010/2011/1D",
        "2010/2011/2012",
        "2010/2011/P1D/P1D",
        "2010---2011",
        "2010/P",
        "2010/PT",
        "2010/P1",
        "2010/P1S",
        "2010/PT1D",
        "2010/P1D1Y",
        "2010/P1DT",
        "2010/P1Y1Y",
        "2010/P1TT1H",
        "2010/P0.5Y",
        "2010/PT.5S",
        "2010/P-1D",
        "2010/P1234567D",
        "2010/P999999Y",
        "P999999M/2010",
        "P1D/P1D",
        "P1D",
        "2010/P1D2011",
        "2010-01-01T12:00:00Z'; DROP TABLE catalog; --",
        "%",
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        mc_time_span span;
        ck_assert_msg(mc_time_parse(&span, bad[i], strlen(bad[i]), now) != NULL, "\"%s\" is taken for a time", bad[i]);
    }
}
END_TEST

START_TEST(lists)
{
    apr_array_header_t *spans;
    ck_ok(mc_time_parse_list(&spans, "time", "2010,2012/2013/P1Y, 2015-01 ,,", now, pool));
    ck_assert_int_eq(spans->nelts, 3);
    ck_assert_int_eq(APR_ARRAY_IDX(spans, 1, mc_time_span).start_us, INT64_C(1325376000000000));
    ck_assert_int_eq(APR_ARRAY_IDX(spans, 2, mc_time_span).start_us, INT64_C(1420070400000000));
    ck_fails(INVALID_DIMENSION, mc_time_parse_list(&spans, "time", "2010,x,2011", now, pool));
    ck_fails(INVALID_DIMENSION, mc_time_parse_list(&spans, "time", ",,", now, pool));
    ck_fails(INVALID_DIMENSION, mc_time_parse_list(&spans, "time", "", now, pool));
}
END_TEST

START_TEST(a_list_has_a_greatest_length)
{
    apr_array_header_t *spans;
    char *text = apr_pcalloc(pool, 6 * MC_TIME_ITEMS_MAX + 8);
    for (int i = 0; i < MC_TIME_ITEMS_MAX; i++)
        memcpy(text + i * 5, "2010,", 5);
    ck_ok(mc_time_parse_list(&spans, "time", text, now, pool));
    ck_assert_int_eq(spans->nelts, MC_TIME_ITEMS_MAX);
    memcpy(text + MC_TIME_ITEMS_MAX * 5, "2010", 4);
    ck_fails(INVALID_DIMENSION, mc_time_parse_list(&spans, "time", text, now, pool));
}
END_TEST

START_TEST(what_is_wrong_is_named)
{
    apr_array_header_t *spans;
    mc_error *error = mc_time_parse_list(&spans, "TIME", "2010-01-01T12:00:00", now, pool);
    ck_assert_ptr_nonnull(strstr(error->message, "2010-01-01T12:00:00"));
    ck_assert_ptr_nonnull(strstr(error->message, "offset"));
    ck_assert_str_eq(error->locator, "TIME");
    char *long_text = apr_pcalloc(pool, 16001);
    memset(long_text, 'x', 16000);
    error = mc_time_parse_list(&spans, "TIME", long_text, now, pool);
    ck_assert_int_lt((int)strlen(error->message), 300);
}
END_TEST

START_TEST(instants_are_written_as_they_are_read)
{
    static const char *const texts[] = { "1970-01-01",
                                         "2000-02-29",
                                         "1900-03-01",
                                         "1899-12-31",
                                         "2024-12-31",
                                         "0001-01-01",
                                         "9999-12-31T23:59:59Z",
                                         "1969-12-31T23:59:59Z",
                                         "2010-03-04T00:00:01Z",
                                         "2010-03-04T12:30:15.25Z",
                                         "1969-12-31T23:59:59.999999Z" };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        mc_time_span span;
        ck_assert_ptr_null(mc_time_parse(&span, texts[i], strlen(texts[i]), now));
        ck_assert_str_eq(mc_time_text(span.start_us, pool), texts[i]);
    }
    for (int64_t day = -800000; day < 2900000; day += 97) {
        mc_time_span span;
        const char *text = mc_time_text(day * 86400 * 1000000, pool);
        if (day >= -719162 && day <= 2932896) {
            ck_assert_ptr_null(mc_time_parse(&span, text, strlen(text), now));
            ck_assert_int_eq(span.start_us, day * 86400 * 1000000);
        }
    }
}
END_TEST

START_TEST(steps_are_counted_from_the_first_one)
{
    static const struct {
        const char *from, *step;
        int times;
        const char *to;
    } rows[] = {
        { "2024-01-31", "P1M", 0, "2024-01-31" },
        { "2024-01-31", "P1M", 1, "2024-02-29" },
        { "2024-01-31", "P1M", 2, "2024-03-31" },
        { "2024-02-29", "P1Y", 4, "2028-02-29" },
        { "2024-01-01", "PT6H", 7, "2024-01-02T18:00:00Z" },
        { "2024-01-01", "P1W", 2000000, NULL },
        { "2024-01-01", "P1Y", INT32_MAX, NULL },
        { "2024-01-01", "PT999999H", INT32_MAX, NULL },
        { "2024-01-01", "P0D", 0, NULL },
        { "2024-01-01", "never", 0, NULL },
        { "2024-01-01", "P1D/P1D", 0, NULL },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        mc_time_span span;
        ck_assert_ptr_null(mc_time_parse(&span, rows[i].from, strlen(rows[i].from), now));
        const char *wrong = mc_time_step(&span.start_us, rows[i].step, rows[i].times);
        ck_assert_msg((wrong == NULL) == (rows[i].to != NULL), "row %d: %s", (int)i, wrong);
        if (wrong == NULL)
            ck_assert_str_eq(mc_time_text(span.start_us, pool), rows[i].to);
    }
}
END_TEST

UNIT_MAIN("time", instants_are_written_as_they_are_read, an_instant_is_its_whole_period, fractions_of_a_second,
          offsets_lead_to_utc, ranges_end_behind_the_period_of_their_end, a_resolution_changes_nothing,
          a_duration_stands_for_one_end_of_a_range, current_is_the_end_of_a_range, what_is_no_time, lists,
          a_list_has_a_greatest_length, what_is_wrong_is_named, steps_are_counted_from_the_first_one)
