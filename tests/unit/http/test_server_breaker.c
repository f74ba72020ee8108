/* Servers that are left alone for a while (lib/http/breaker.h). */
#include "unit.h"

#include <apr_strings.h>
#include <pthread.h>

#include "http/breaker.h"

static const apr_time_t start = 1000 * APR_USEC_PER_SEC;

static void
fail_times(mc_breakers *breakers, const char *server, int count, apr_time_t now)
{
    for (int i = 0; i < count; i++)
        mc_breaker_judge(breakers, server, false, now);
}

START_TEST(failures_in_a_row_open_it)
{
    mc_breakers *breakers = mc_breakers_create();
    fail_times(breakers, "http://a", MC_BREAKER_FAILURES - 1, start);
    ck_assert_int_eq(mc_breaker_pause(breakers, "http://a", start), 0);
    mc_breaker_judge(breakers, "http://a", true, start); /* the row ends */
    fail_times(breakers, "http://a", MC_BREAKER_FAILURES - 1, start);
    ck_assert_int_eq(mc_breaker_pause(breakers, "http://a", start), 0);
    fail_times(breakers, "http://a", 1, start);
    ck_assert_int_eq(mc_breaker_pause(breakers, "http://a", start), MC_BREAKER_PAUSE);
    ck_assert_int_eq(mc_breaker_pause(breakers, "http://a", start + 1), MC_BREAKER_PAUSE - 1);
    ck_assert_int_eq(mc_breaker_pause(breakers, "http://b", start), 0); /* another server */
    mc_breakers_destroy(breakers);
}
END_TEST

START_TEST(one_finds_out_after_the_pause)
{
    mc_breakers *breakers = mc_breakers_create();
    apr_time_t now = start;
    apr_interval_time_t pause = MC_BREAKER_PAUSE;
    fail_times(breakers, "http://a", MC_BREAKER_FAILURES, now);
    for (int i = 0; i < 8; i++) {
        now += pause;
        ck_assert_int_eq(mc_breaker_pause(breakers, "http://a", now), 0);     /* this one asks */
        ck_assert_int_eq(mc_breaker_pause(breakers, "http://a", now), pause); /* the others do not */
        fail_times(breakers, "http://a", 1, now);
        pause = pause * 2 < MC_BREAKER_PAUSE_MOST ? pause * 2 : MC_BREAKER_PAUSE_MOST;
        ck_assert_int_eq(mc_breaker_pause(breakers, "http://a", now), pause);
    }
    ck_assert_int_eq(mc_breaker_pause(breakers, "http://a", now + pause), 0);
    mc_breaker_judge(breakers, "http://a", true, now + pause);
    ck_assert_int_eq(mc_breaker_pause(breakers, "http://a", now + pause), 0);
    ck_assert_int_eq(mc_breaker_pause(breakers, "http://a", now + pause), 0);
    mc_breakers_destroy(breakers);
}
END_TEST

START_TEST(servers_are_bounded_in_number_and_name)
{
    mc_breakers *breakers = mc_breakers_create();
    char *name = apr_pcalloc(pool, 5001);
    memset(name, 'x', 5000);
    fail_times(breakers, name, MC_BREAKER_FAILURES, start);
    ck_assert_int_gt(mc_breaker_pause(breakers, name, start), 0);
    for (int i = 0; i < 1000; i++)
        fail_times(breakers, apr_psprintf(pool, "http://%d", i), MC_BREAKER_FAILURES, start + 1 + i);
    ck_assert_int_eq(mc_breaker_pause(breakers, name, start), 0); /* the one that was asked longest ago */
    ck_assert_int_gt(mc_breaker_pause(breakers, "http://999", start), 0);
    mc_breakers_destroy(breakers);
}
END_TEST

UNIT_MAIN("server_breaker", failures_in_a_row_open_it, one_finds_out_after_the_pause,
          servers_are_bounded_in_number_and_name)
