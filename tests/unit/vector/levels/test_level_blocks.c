/* Blocks of overviews: features of many blocks come in drawing order, with their values; broken blocks are refused and
 * leave nothing behind. */
#include "vector/levels/level_blocks.h"

#include <string.h>

#include "unit.h"

#define BLOCK(text) text, sizeof(text) - 1

static mc_level_window *window;

static void
expect_feature(const char *geometry, bool packed, const char *first, const char *second)
{
    mc_level_feature feature;
    ck_assert(mc_level_window_next(&feature, window));
    ck_assert_uint_eq(feature.size, strlen(geometry));
    ck_assert_mem_eq(feature.geometry, geometry, feature.size);
    ck_assert_int_eq(feature.packed, packed);
    ck_assert_pstr_eq(feature.values[0], first);
    ck_assert_pstr_eq(feature.values[1], second);
}

static void
expect_end(void)
{
    mc_level_feature feature;
    ck_assert(!mc_level_window_next(&feature, window));
    mc_level_window_clear(window);
}

static void
expect_broken(const char *block, size_t size)
{
    ck_assert(mc_level_window_add(window, block, size) != MC_OK);
    expect_end();
}

START_TEST(features_of_all_blocks_come_in_drawing_order)
{
    window = mc_level_window_create(2, pool);
    for (int round = 0; round < 2; round++) { /* a window is used again */
        /* two attributes, two tuples: ("a", null), ("", "bc"); then places 1, 3 and the last one */
        ck_assert(mc_level_window_add(window, BLOCK("\2\2\2a\0\1\3bc"
                                                    "\1\0\5XY"
                                                    "\2\1\2P"
                                                    "\xfc\xff\xff\1\0\0")) == MC_OK);
        ck_assert(mc_level_window_add(window, BLOCK("\2\1\2q\2r"
                                                    "\0\0\3U"
                                                    "\2\0\3V")) == MC_OK);
        expect_feature("U", true, "q", "r");
        expect_feature("XY", true, "a", NULL);
        expect_feature("V", true, "q", "r");
        expect_feature("P", false, "", "bc");
        expect_feature("", false, "a", NULL);
        expect_end();
    }
}
END_TEST

START_TEST(broken_blocks_are_refused)
{
    window = mc_level_window_create(2, pool);
    expect_broken(BLOCK(""));
    expect_broken(BLOCK("\1\1\2a\0\0\3U"));                      /* one attribute */
    expect_broken(BLOCK("\2\1\2a\1\0\0\3U\0\1\3U"));             /* the second tuple of one */
    expect_broken(BLOCK("\2\1\2a\1\0\0\5U"));                    /* two bytes of one */
    expect_broken(BLOCK("\2\1\2a\1\x80\x80\x80\2\0\3U"));        /* a place too far */
    expect_broken(BLOCK("\2\1\2a\1\xff\xff\xff\1\0\3U\1\0\3U")); /* the place after the last one */
    expect_broken(BLOCK("\2\xff\xff\xff\xff\xff\xff\xff\x7f"));  /* tuples */
    expect_broken(BLOCK("\2\1\xff\xff\xff\xff\xff\xff\xff\xff\x7fz\0"));
    expect_broken(BLOCK("\2\1\2a\1\0\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"));
}
END_TEST

START_TEST(a_broken_block_leaves_those_of_others)
{
    window = mc_level_window_create(2, pool);
    ck_assert(mc_level_window_add(window, BLOCK("\2\1\2q\2r\5\0\3U")) == MC_OK);
    ck_assert(mc_level_window_add(window, BLOCK("\2\1\2q\2r\1\0\3V\1\0\x09V")) != MC_OK);
    expect_feature("U", true, "q", "r");
    expect_end();
}
END_TEST

UNIT_MAIN("level_blocks", features_of_all_blocks_come_in_drawing_order, broken_blocks_are_refused,
          a_broken_block_leaves_those_of_others)
