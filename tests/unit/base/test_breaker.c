/* Circuit breakers, and pauses before repetitions. */
#include "unit.h"

#include <unistd.h>

#include "base/backoff.h"
#include "base/breaker.h"

START_TEST(pauses_double_and_differ)
{
    apr_interval_time_t least = INT64_MAX, most = 0;
    for (int i = 0; i < 1000; i++) {
        apr_interval_time_t pause = mc_backoff(2, 1000, 100000);
        ck_assert(pause > 3000 && pause <= 4000);
        least = pause < least ? pause : least;
        most = pause > most ? pause : most;
    }
    ck_assert(most - least > 500);
    ck_assert_int_le(mc_backoff(60, 1000, 100000), 100000);
    ck_assert_int_gt(mc_backoff(1000000, 1000, 100000), 74000);
    ck_assert_int_eq(mc_backoff(3, 0, 100000), 0);
}
END_TEST

START_TEST(one_caller_finds_out)
{
    mc_breaker breaker;
    mc_breaker_start(&breaker);
    ck_assert(mc_breaker_admits(&breaker) && mc_breaker_works(&breaker));
    mc_breaker_report(&breaker, false, MC_BREAKER_COSTLY);
    ck_assert(!mc_breaker_admits(&breaker) && !mc_breaker_works(&breaker));
    apr_time_t begin = mc_clock_now();
    while (!mc_breaker_admits(&breaker))
        usleep(5000);
    ck_assert_int_ge(mc_clock_now() - begin, MC_BREAKER_PAUSE / 2);
    ck_assert(!mc_breaker_admits(&breaker)); /* nobody else until that one knows */
    mc_breaker_report(&breaker, true, 0);
    ck_assert(mc_breaker_admits(&breaker) && mc_breaker_admits(&breaker) && mc_breaker_works(&breaker));
    mc_breaker_end(&breaker);
}
END_TEST

/* As one caller finds out once the pause is over. */
static void
fail_after_pause(mc_breaker *breaker, apr_interval_time_t waited)
{
    if (breaker->open_until != 0)
        breaker->open_until = 1;
    ck_assert(mc_breaker_admits(breaker));
    mc_breaker_report(breaker, false, waited);
}

START_TEST(failures_in_a_row_lengthen_the_pause)
{
    mc_breaker breaker;
    mc_breaker_start(&breaker);
    apr_interval_time_t before = 0;
    for (int i = 0; i < 5; i++) {
        fail_after_pause(&breaker, MC_BREAKER_COSTLY);
        apr_interval_time_t pause = breaker.open_until - mc_clock_now();
        ck_assert_int_gt(pause, before);
        before = pause;
    }
    for (int i = 0; i < 100; i++)
        fail_after_pause(&breaker, 0);
    ck_assert_int_le(breaker.open_until - mc_clock_now(), MC_BREAKER_PAUSE_MOST);
    mc_breaker_report(&breaker, true, 0);
    mc_breaker_report(&breaker, false, MC_BREAKER_COSTLY);
    ck_assert_int_le(breaker.open_until - mc_clock_now(), MC_BREAKER_PAUSE);
    mc_breaker_end(&breaker);
}
END_TEST

/* They cost nobody any time, and one of them may be the load of a moment. */
START_TEST(quick_failures_open_it_when_there_are_three_in_a_row)
{
    mc_breaker breaker;
    mc_breaker_start(&breaker);
    for (int i = 0; i < MC_BREAKER_FAILURES - 1; i++)
        mc_breaker_report(&breaker, false, MC_BREAKER_COSTLY - 1);
    ck_assert(mc_breaker_admits(&breaker) && !mc_breaker_works(&breaker));
    mc_breaker_report(&breaker, true, 0); /* the row ends */
    ck_assert(mc_breaker_works(&breaker));
    for (int i = 0; i < MC_BREAKER_FAILURES - 1; i++)
        mc_breaker_report(&breaker, false, 0);
    ck_assert(mc_breaker_admits(&breaker));
    mc_breaker_report(&breaker, false, 0);
    ck_assert(!mc_breaker_admits(&breaker));
    ck_assert_int_le(breaker.open_until - mc_clock_now(), MC_BREAKER_PAUSE);
    fail_after_pause(&breaker, 0);
    ck_assert_int_gt(breaker.open_until - mc_clock_now(), MC_BREAKER_PAUSE);
    mc_breaker_end(&breaker);
}
END_TEST

/* Requests that were under way together, of which the first ones open it. */
START_TEST(failures_of_one_moment_count_once)
{
    mc_breaker breaker;
    mc_breaker_start(&breaker);
    for (int i = 0; i < 64; i++)
        mc_breaker_report(&breaker, false, MC_BREAKER_COSTLY);
    ck_assert_int_le(breaker.open_until - mc_clock_now(), MC_BREAKER_PAUSE);
    mc_breaker_end(&breaker);
}
END_TEST

UNIT_MAIN("breaker", pauses_double_and_differ, one_caller_finds_out, failures_in_a_row_lengthen_the_pause,
          quick_failures_open_it_when_there_are_three_in_a_row, failures_of_one_moment_count_once)
