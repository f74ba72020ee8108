/* What is read and not applied for good: the oldest time is known however much there is. */
#include "changes/unsettled.h"

#include <apr_strings.h>

#include "unit.h"

static mc_unsettled unsettled;

static const char *
snapshot_of(int end)
{
    return apr_psprintf(pool, "%d:%d:", end, end);
}

START_TEST(what_is_applied_waits_no_more)
{
    mc_unsettled_clear(&unsettled);
    ck_assert_int_eq(mc_unsettled_oldest(&unsettled), 0);
    for (int i = 1; i <= 10; i++)
        mc_unsettled_add(&unsettled, snapshot_of(100 * i), i);
    mc_unsettled_settle(&unsettled, NULL);
    ck_assert_int_eq(mc_unsettled_oldest(&unsettled), 1);
    mc_unsettled_settle(&unsettled, "299:350:");
    ck_assert_int_eq(mc_unsettled_oldest(&unsettled), 3);
    mc_unsettled_settle(&unsettled,
                        "150:1000:150,160"); /* a transaction is under way: what comes behind it may be too */
    ck_assert_int_eq(mc_unsettled_oldest(&unsettled), 3);
    mc_unsettled_settle(&unsettled, snapshot_of(1000));
    ck_assert_int_eq(mc_unsettled_oldest(&unsettled), 0);
    mc_unsettled_add(&unsettled, snapshot_of(1100), 50);
    mc_unsettled_add(&unsettled, snapshot_of(1200), 40); /* what was lost is older */
    ck_assert_int_eq(mc_unsettled_oldest(&unsettled), 40);
    mc_unsettled_clear(&unsettled);
}
END_TEST

START_TEST(a_reader_that_never_applies_anything_costs_no_memory)
{
    enum { MANY = 100000 };
    for (int i = 1; i <= MANY; i++) {
        mc_unsettled_add(&unsettled, snapshot_of(i), i);
        ck_assert_int_le(unsettled.count, MC_UNSETTLED_MAX);
        ck_assert_int_eq(mc_unsettled_oldest(&unsettled), 1);
        if (i % 1000 == 0)
            apr_pool_clear(pool);
    }
    for (int applied = 1; applied <= MANY; applied += 997) {
        mc_unsettled_settle(&unsettled, snapshot_of(applied));
        ck_assert_int_le(mc_unsettled_oldest(&unsettled), applied + 1); /* never forgotten too early */
        ck_assert_int_gt(mc_unsettled_oldest(&unsettled), 0);
    }
    mc_unsettled_settle(&unsettled, snapshot_of(MANY));
    ck_assert_int_eq(mc_unsettled_oldest(&unsettled), 0);
    mc_unsettled_clear(&unsettled);
}
END_TEST

UNIT_MAIN("unsettled", what_is_applied_waits_no_more, a_reader_that_never_applies_anything_costs_no_memory)
