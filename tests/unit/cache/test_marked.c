/* Marks of stored tiles: the time that a marked tile is stored with says so, and when the tile was made. */
#include "cache/marked.h"

#include "unit.h"

START_TEST(a_marked_time_tells_when_the_tile_was_made)
{
    for (apr_time_t seconds = MC_MARK_EARLIEST; seconds <= MC_MARK_LATEST; seconds += 86399) {
        apr_time_t made = apr_time_from_sec(seconds) + 123456, marked = mc_marked_time(made);
        ck_assert(mc_is_marked_time(marked) && !mc_is_marked_time(made));
        ck_assert_int_eq(marked % APR_USEC_PER_SEC, 0);
        ck_assert_int_le(mc_time_made(marked), made);
        ck_assert_int_lt(made - mc_time_made(marked), apr_time_from_sec(MC_MARK_SHARE) + APR_USEC_PER_SEC);
        ck_assert_int_eq(mc_time_made(made), made);
    }
}
END_TEST

START_TEST(other_times_are_not_marked)
{
    const apr_time_t times[] = { 0,
                                 1,
                                 APR_USEC_PER_SEC,
                                 -1,
                                 -apr_time_from_sec(86400),
                                 apr_time_from_sec(86400 * 300) * 2,
                                 apr_time_from_sec(INT64_C(1) << 40) };
    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
        ck_assert_msg(!mc_is_marked_time(times[i]), "%d", (int)i);
        ck_assert_msg(mc_is_marked_time(mc_marked_time(times[i])), "%d", (int)i);
    }
}
END_TEST

START_TEST(a_mark_is_not_older_than_its_own_tile)
{
    const apr_time_t made = apr_time_from_sec(INT64_C(1790000063)) + 5;
    const apr_time_t later = made + apr_time_from_sec(3 * MC_MARK_SHARE);
    ck_assert(!mc_is_made_later(made, mc_marked_time(made))); /* the mark takes the place of the tile */
    ck_assert(!mc_is_made_later(mc_marked_time(made), made));
    ck_assert(mc_is_made_later(later, mc_marked_time(made)) && mc_is_made_later(later, made));
    ck_assert(!mc_is_made_later(made, later) && !mc_is_made_later(made, made));
}
END_TEST

UNIT_MAIN("marked", a_mark_is_not_older_than_its_own_tile, a_marked_time_tells_when_the_tile_was_made,
          other_times_are_not_marked)
