/* A clock that is set back is noticed; one that is read inexactly, or set forward, is not. */
#include "changes/clock_watch.h"

#include "unit.h"

START_TEST(a_clock_that_runs_on_shows_nothing_twice)
{
    mc_clock_watch watch = { 0 };
    ck_assert_int_eq(mc_clock_watch_read(&watch, 1000000, 50, 100), 0);
    ck_assert_int_eq(mc_clock_watch_read(&watch, 2000000, 1000050, 100), 0);
    ck_assert_int_eq(mc_clock_watch_read(&watch, 2999900, 2000050, 100), 0); /* within what both are unsure by */
    ck_assert_int_eq(mc_clock_watch_read(&watch, 2999701, 2000050, 100), 0);
    ck_assert_int_eq(mc_clock_watch_read(&watch, 90000000, 3000050, 100), 0); /* set forward */
    ck_assert_int_eq(mc_clock_watch_after(&watch, 5), 5);
}
END_TEST

START_TEST(a_step_back_counts_until_the_clock_has_made_up_for_it)
{
    mc_clock_watch watch = { 0 };
    mc_clock_watch_read(&watch, 100000000, 1000, 10);
    ck_assert_int_eq(mc_clock_watch_read(&watch, 70000000, 2001000, 20), 32000000);
    ck_assert_int_eq(mc_clock_watch_after(&watch, 70000000), 102000030);
    ck_assert_int_eq(mc_clock_watch_after(&watch, 102000031), 102000031);
    ck_assert_int_eq(mc_clock_watch_read(&watch, 71000000, 3001000, 20), 0);
    ck_assert_int_eq(mc_clock_watch_read(&watch, 61000000, 4001000, 20), 11000000); /* and once more: less far */
    ck_assert_int_eq(mc_clock_watch_after(&watch, 70000000), 102000030);
}
END_TEST

UNIT_MAIN("clock_watch", a_clock_that_runs_on_shows_nothing_twice,
          a_step_back_counts_until_the_clock_has_made_up_for_it)
