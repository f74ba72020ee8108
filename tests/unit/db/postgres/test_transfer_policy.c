#include "unit.h"

#include "db/postgres/transfer_policy.h"

static mc_transfer_policy *policy;
static apr_time_t now;

static void
set_up(void)
{
    policy = mc_transfer_policy_create();
    now = apr_time_now();
}

/* An answer of `worth` bytes (packed: a fifth of them) over a line of `rate` bytes a microsecond. */
static void
read_over(mc_packing packing, double worth, double rate)
{
    double bytes = packing == MC_PACKED ? worth / 5 : worth;
    mc_transfer_policy_add(policy, packing, (int64_t)bytes, (int64_t)worth, (apr_interval_time_t)(bytes / rate), now);
    now += APR_USEC_PER_SEC;
}

START_TEST(plain_until_something_is_known)
{
    set_up();
    ck_assert_int_eq(mc_transfer_policy_choose(policy, now), MC_PLAIN);
    mc_transfer_policy_add(policy, MC_PLAIN, 1000, 1000, 1000000,
                           now); /* a few rows that took long: no news of the line */
    ck_assert_int_eq(mc_transfer_policy_choose(policy, now), MC_PLAIN);
    mc_transfer_policy_destroy(policy);
}
END_TEST

START_TEST(near_databases_stay_plain)
{
    set_up();
    for (int i = 0; i < 100; i++) {
        read_over(MC_PLAIN, 1400000, 500);
        ck_assert_int_eq(mc_transfer_policy_choose(policy, now), MC_PLAIN);
    }
    mc_transfer_policy_destroy(policy);
}
END_TEST

START_TEST(far_ones_are_packed_from_the_second_map_on)
{
    set_up();
    read_over(MC_PLAIN, 1400000, 1.25);
    for (int i = 0; i < 100; i++) { /* also long after the last plain one: nothing says that the line is faster now */
        ck_assert_int_eq(mc_transfer_policy_choose(policy, now), MC_PACKED);
        read_over(MC_PACKED, 1400000, 1.25);
    }
    mc_transfer_policy_destroy(policy);
}
END_TEST

/* Processors that are busy make everything slow: packing brings nothing then, and is tried now and then only. */
START_TEST(a_busy_database_is_not_a_far_one)
{
    set_up();
    int packed = 0;
    for (int i = 0; i < 100; i++) {
        mc_packing chosen = mc_transfer_policy_choose(policy, now);
        packed += chosen == MC_PACKED;
        mc_transfer_policy_add(policy, chosen, chosen == MC_PACKED ? 280000 : 1400000, 1400000, 140000, now);
        now += APR_USEC_PER_SEC;
    }
    ck_assert_int_ge(packed, 1);
    ck_assert_int_le(packed, 3);
    mc_transfer_policy_destroy(policy);
}
END_TEST

START_TEST(a_line_that_becomes_fast_or_slow_is_noticed)
{
    set_up();
    read_over(MC_PLAIN, 1400000, 1.25);
    read_over(MC_PACKED, 1400000, 1.25);
    for (int i = 0; i < 40; i++)
        read_over(mc_transfer_policy_choose(policy, now), 1400000, 500);
    ck_assert_int_eq(mc_transfer_policy_choose(policy, now), MC_PLAIN);
    for (int i = 0; i < 3; i++)
        read_over(mc_transfer_policy_choose(policy, now), 1400000, 1.25);
    ck_assert_int_eq(mc_transfer_policy_choose(policy, now), MC_PACKED);
    mc_transfer_policy_destroy(policy);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        plain_until_something_is_known,
        near_databases_stay_plain,
        far_ones_are_packed_from_the_second_map_on,
        a_busy_database_is_not_a_far_one,
        a_line_that_becomes_fast_or_slow_is_noticed,
    };
    return unit_run("transfer_policy", tests, (int)(sizeof(tests) / sizeof(tests[0])));
}
