/* Cron expressions: what is read, and the next moment beside a search minute by minute. */
#include "unit.h"

#include <string.h>
#include <time.h>

#include "text/cron.h"
#include "text/time.h"

static mc_cron
parsed(const char *text)
{
    mc_cron cron;
    ck_assert_msg(mc_cron_parse(&cron, text, strlen(text)) == NULL, "%s", text);
    return cron;
}

static int64_t
at(const char *text)
{
    mc_time_span span;
    ck_assert_ptr_null(mc_time_parse(&span, text, strlen(text), 0));
    return span.start_us;
}

START_TEST(the_next_moment_is_after_the_time)
{
    static const struct {
        const char *cron, *from, *next;
    } known[] = {
        { "15 */6 * * *", "2026-11-28T21:37:39Z", "2026-11-29T00:15Z" },
        { "15 */6 * * *", "2026-11-28T18:15:00Z", "2026-11-29T00:15Z" },
        { "15 */6 * * *", "2026-11-28T18:14:59.999Z", "2026-11-28T18:15Z" },
        { "* * * * *", "2026-12-31T23:59:30Z", "2027-01-01T00:00Z" },
        { " 0\t3  1,15 * * ", "2026-11-28T00:00Z", "2026-12-01T03:00Z" },
        { "0 3 * * 1-5", "2026-11-28T00:00Z", "2026-11-30T03:00Z" }, /* a Saturday, then Monday */
        { "0 3 * * 7", "2026-11-28T00:00Z", "2026-11-29T03:00Z" },
        { "0 3 * * 0", "2026-11-28T00:00Z", "2026-11-29T03:00Z" },
        { "0 0 13 * 5", "2026-11-28T00:00Z", "2026-12-04T00:00Z" },  /* the 13th, or a Friday */
        { "0 0 */2 * 5", "2026-11-28T00:00Z", "2026-12-11T00:00Z" }, /* '*': both have to hold */
        { "0 0 29 2 *", "2096-03-01T00:00Z", "2104-02-29T00:00Z" },
        { "10-50/20,59 23 31 12 *", "2026-12-31T23:50Z", "2026-12-31T23:59Z" },
        { "0 0 1 1 *", "1969-12-31T23:59:59Z", "1970-01-01T00:00Z" },
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        mc_cron cron = parsed(known[i].cron);
        ck_assert_str_eq(mc_time_text(mc_cron_next(&cron, at(known[i].from)), pool),
                         mc_time_text(at(known[i].next), pool));
    }
}
END_TEST

START_TEST(each_minute_is_asked_alike)
{
    static const char *const expressions[] = { "15 */6 * * *", "0 3 1,15 * *", "7,9 1-3 * 2,12 1-5", "59 23 28-31 * 0",
                                               "0 */5 */3 * 2" };
    for (size_t e = 0; e < sizeof(expressions) / sizeof(expressions[0]); e++) {
        mc_cron cron = parsed(expressions[e]);
        int64_t begin = at("2027-02-20T00:00Z"), expected = 0;
        for (int64_t minute = 40 * 1440; minute >= 0; minute--) { /* backwards: the next one is the last one seen */
            time_t seconds = (time_t)(begin / 1000000 + minute * 60);
            struct tm date;
            gmtime_r(&seconds, &date);
            if (expected != 0)
                ck_assert_int_eq(mc_cron_next(&cron, (int64_t)seconds * 1000000), expected);
            bool dated = cron.days >> date.tm_mday & 1, named = cron.weekdays >> date.tm_wday & 1;
            bool day = cron.any_day || cron.any_weekday ? dated && named : dated || named;
            if (day && (cron.minutes >> date.tm_min & 1) && (cron.hours >> date.tm_hour & 1) &&
                (cron.months >> (date.tm_mon + 1) & 1))
                expected = (int64_t)seconds * 1000000;
        }
        ck_assert_int_ne(expected, 0);
    }
}
END_TEST

START_TEST(what_is_no_cron_expression_is_refused)
{
    static const char *const wrong[] = { "",           "*",          "* * * *",      "* * * * * *", "60 * * * *",
                                         "* 24 * * *", "* * 0 * *",  "* * 32 * *",   "* * * 13 *",  "* * * 0 *",
                                         "* * * * 8",  "-1 * * * *", "5-1 * * * *",  "*/0 * * * *", "5/2 * * * *",
                                         "1, * * * *", ",1 * * * *", "1000 * * * *", "* * 30 2 *",  "* * 31 4,6 *",
                                         "a * * * *",  "*/ * * * *", "1- * * * *",   "1;* * * *" };
    mc_cron cron;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        ck_assert_msg(mc_cron_parse(&cron, wrong[i], strlen(wrong[i])) != NULL, "%s", wrong[i]);
}
END_TEST

UNIT_MAIN("cron", the_next_moment_is_after_the_time, each_minute_is_asked_alike, what_is_no_cron_expression_is_refused)
