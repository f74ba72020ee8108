/* <auto_expire>: seconds, durations, dates and cron expressions. */
#include "unit.h"

#include <string.h>

#include "text/expiry.h"
#include "text/time.h"

static mc_expiry *
expiry_of(const char *text)
{
    mc_expiry *expiry;
    const char *wrong = mc_expiry_parse(&expiry, text, pool);
    ck_assert_msg(wrong == NULL, "%s: %s", text, wrong);
    return expiry;
}

static int64_t
at(const char *text)
{
    mc_time_span span;
    ck_assert_ptr_null(mc_time_parse(&span, text, strlen(text), 0));
    return span.start_us;
}

START_TEST(seconds_and_durations_are_counted_from_the_making)
{
    static const struct {
        const char *text;
        int seconds;
    } known[] = {
        { "3600", 3600 },    { " 60\n", 60 },   { "PT6H", 21600 }, { "P1D", 86400 }, { "P2W", 1209600 },
        { "P1DT1M", 86460 }, { "PT90M", 5400 }, { "PT1.5S", 1 },   { "PT1S", 1 },    { "2147483647", 2147483647 }
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        mc_expiry *expiry = expiry_of(known[i].text);
        ck_assert_int_eq(mc_expiry_age(expiry), known[i].seconds);
        ck_assert_int_eq(mc_expiry_end(expiry, 7), 7 + known[i].seconds * INT64_C(1000000));
        ck_assert_int_eq(mc_expiry_end(expiry, INT64_MAX - 1), MC_EXPIRY_NEVER);
    }
}
END_TEST

START_TEST(nothing_and_less_is_never)
{
    ck_assert_ptr_null(expiry_of("0"));
    ck_assert_ptr_null(expiry_of("-5"));
    ck_assert_int_eq(mc_expiry_end(NULL, 5), MC_EXPIRY_NEVER);
    ck_assert_int_eq(mc_expiry_age(NULL), 0);
}
END_TEST

START_TEST(a_date_ends_what_was_made_before)
{
    mc_expiry *expiry = expiry_of("2027-01-01T06:00+01:00");
    int64_t date = at("2027-01-01T05:00Z");
    ck_assert_int_eq(mc_expiry_age(expiry), 0);
    ck_assert_int_eq(mc_expiry_end(expiry, 0), date);
    ck_assert_int_eq(mc_expiry_end(expiry, date - 1), date);
    ck_assert_int_eq(mc_expiry_end(expiry, date), MC_EXPIRY_NEVER);
    ck_assert_int_eq(mc_expiry_end(expiry_of("2027-03"), 0), at("2027-03-01"));
}
END_TEST

START_TEST(cron_moments_end_what_was_made_before)
{
    mc_expiry *expiry = expiry_of("cron: 15 */6 * * *");
    int64_t moment = at("2026-11-28T18:15Z"), next = at("2026-11-29T00:15Z");
    ck_assert_int_eq(mc_expiry_age(expiry), 0);
    for (int i = 0; i < 2; i++) { /* the second time from memory, or not */
        ck_assert_int_eq(mc_expiry_end(expiry, moment), next);
        ck_assert_int_eq(mc_expiry_end(expiry, moment + 1), next);
        ck_assert_int_eq(mc_expiry_end(expiry, next - 1), next);
        ck_assert_int_eq(mc_expiry_end(expiry, moment - 1), moment);
        ck_assert_int_eq(mc_expiry_end(expiry, next), at("2026-11-29T06:15Z"));
    }
    ck_assert_int_eq(mc_expiry_end(expiry, INT64_MIN), at("1970-01-01T00:15Z"));
    ck_assert_int_eq(mc_expiry_end(expiry, INT64_MAX), MC_EXPIRY_NEVER);
}
END_TEST

START_TEST(what_is_none_of_these_is_refused)
{
    static const char *const wrong[] = {
        "",          "soon",       "1h",        "P",          "PT",         "P1M",          "P1Y",
        "PT0S",      "-PT1H",      "P99999D",   "3600s",      "2147483648", "cron:",        "cron: 1",
        "1.5",       "2027-13-01", "2027/2028", "2027--2028", "current",    "15 */6 * * *", "cron: 0 0 30 2 *",
        "1960-01-01"
    };
    mc_expiry *expiry;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        ck_assert_msg(mc_expiry_parse(&expiry, wrong[i], pool) != NULL, "%s", wrong[i]);
        ck_assert_ptr_null(expiry);
    }
    char *text = memset(apr_palloc(pool, 2000), '1', 1999);
    text[1999] = '\0';
    ck_assert_ptr_nonnull(mc_expiry_parse(&expiry, text, pool));
}
END_TEST

UNIT_MAIN("expiry", seconds_and_durations_are_counted_from_the_making, nothing_and_less_is_never,
          a_date_ends_what_was_made_before, cron_moments_end_what_was_made_before, what_is_none_of_these_is_refused)
