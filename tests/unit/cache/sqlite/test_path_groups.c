#include "unit.h"

#include <apr_strings.h>

#include "cache/sqlite/path_groups.h"

START_TEST(members_keep_their_order)
{
    const char *const paths[] = { "b", "a", NULL, "b", "b", NULL, "c", "a" };
    static const int expected[3][4] = { { 0, 3, 4, -1 }, { 1, 7, -1 }, { 6, -1 } };
    mc_path_groups groups = mc_path_groups_of(paths, 8, pool);
    ck_assert_int_eq(groups.count, 3);
    for (int g = 0; g < 3; g++) {
        int at = groups.first[g];
        for (int i = 0; i < 4 && expected[g][i] >= 0; i++) {
            ck_assert_int_eq(at, expected[g][i]);
            at = groups.next[at];
        }
        ck_assert_int_eq(at, -1);
    }
}
END_TEST

START_TEST(equal_texts_are_one_path)
{
    const char *paths[1000];
    for (int i = 0; i < 1000; i++)
        paths[i] = apr_psprintf(pool, "%d.sqlite3", i % 7);
    mc_path_groups groups = mc_path_groups_of(paths, 1000, pool);
    ck_assert_int_eq(groups.count, 7);
    int members = 0;
    for (int g = 0; g < 7; g++)
        for (int i = groups.first[g]; i >= 0; i = groups.next[i], members++)
            ck_assert_int_eq(i % 7, g);
    ck_assert_int_eq(members, 1000);
}
END_TEST

START_TEST(no_paths_are_no_groups)
{
    const char *const none[] = { NULL, NULL };
    ck_assert_int_eq(mc_path_groups_of(none, 2, pool).count, 0);
    ck_assert_int_eq(mc_path_groups_of(NULL, 0, pool).count, 0);
}
END_TEST

UNIT_MAIN("path_groups", members_keep_their_order, equal_texts_are_one_path, no_paths_are_no_groups)
