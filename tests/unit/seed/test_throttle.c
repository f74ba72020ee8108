#include "unit.h"

#include "seed/throttle.h"

/*
 * An origin in simulated time: it answers `at_once` requests at a time, each after `seconds`; with more of them each
 * takes longer in proportion. Returns the smallest limit that was seen.
 */
static int
answer(mc_throttle *t, int count, int at_once, double seconds, bool failed)
{
    int smallest = t->limit;
    for (int i = 0; i < count; i++) {
        double load = t->limit > at_once ? (double)t->limit / at_once : 1;
        mc_throttle_take(t, seconds * load, failed);
        smallest = t->limit < smallest ? t->limit : smallest;
        ck_assert_int_ge(t->limit, 1);
        ck_assert_int_le(t->limit, t->most);
    }
    return smallest;
}

START_TEST(a_steady_origin_keeps_all_workers)
{
    for (int most = 1; most <= 64; most *= 4) {
        mc_throttle t;
        mc_throttle_begin(&t, most);
        ck_assert_int_eq(answer(&t, 5000, 2, 0.1, false), most);
    }
}
END_TEST

START_TEST(maps_of_different_cost_keep_all_workers)
{
    mc_throttle t;
    mc_throttle_begin(&t, 16);
    for (int i = 0; i < 5000; i++) {
        mc_throttle_take(&t, i % 4 == 0 ? 0.5 : 0.05, false);
        ck_assert_int_eq(t.limit, 16);
    }
}
END_TEST

START_TEST(what_is_fast_may_vary)
{
    mc_throttle t;
    mc_throttle_begin(&t, 16);
    answer(&t, 100, 16, 0.001, false);
    ck_assert_int_eq(answer(&t, 100, 16, 0.09, false), 16);
}
END_TEST

/* An origin that can do sixteen at a time and then only one: nearly all stop, and all come back after it has recovered.
 */
START_TEST(a_slow_origin_is_let_alone_and_recovers)
{
    mc_throttle t;
    mc_throttle_begin(&t, 16);
    answer(&t, 200, 16, 0.1, false);
    ck_assert_int_le(answer(&t, 200, 1, 0.5, false), 3);
    answer(&t, 400, 16, 0.1, false);
    ck_assert_int_eq(t.limit, 16);
}
END_TEST

/* What is as slow for fewer workers is not slow because of them: dear maps are drawn by nearly all. */
START_TEST(what_does_not_get_better_becomes_usual)
{
    mc_throttle t;
    mc_throttle_begin(&t, 8);
    answer(&t, 200, 8, 0.1, false);
    ck_assert_int_eq(answer(&t, 500, 8, 2, false), 6);
    ck_assert_int_eq(t.limit, 8);
    answer(&t, 100, 8, 0.1, false);
    ck_assert_int_eq(answer(&t, 500, 8, 2, false), 6);
}
END_TEST

START_TEST(failures_halve_and_single_ones_do_not)
{
    mc_throttle t;
    mc_throttle_begin(&t, 16);
    for (int i = 0; i < 1024; i++)
        mc_throttle_take(&t, 0.1, i % 8 == 0);
    ck_assert_int_eq(t.limit, 16);
    answer(&t, 16, 16, 0.1, true);
    ck_assert_int_eq(t.limit, 8);
    answer(&t, 100, 16, 0.1, true);
    ck_assert_int_eq(t.limit, 1);
    answer(&t, 300, 16, 0.1, false);
    ck_assert_int_eq(t.limit, 16);
}
END_TEST

UNIT_MAIN("throttle", a_steady_origin_keeps_all_workers, maps_of_different_cost_keep_all_workers, what_is_fast_may_vary,
          a_slow_origin_is_let_alone_and_recovers, what_does_not_get_better_becomes_usual,
          failures_halve_and_single_ones_do_not)
