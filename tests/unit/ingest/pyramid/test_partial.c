/* Tiles that are not final: what goes to the scratch file comes back as it was. */
#include "ingest/pyramid/partial.h"

#include <string.h>
#include <unistd.h>

#include "unit.h"

enum { SIDE = 32, BYTES = SIDE * SIDE * 4, COUNT = 50 };

static void
fill(mc_partial *partial, int value)
{
    memset(partial->pixels->data, value, BYTES);
}

START_TEST(keeps_to_its_limit_and_loses_nothing)
{
    mc_partials *partials = mc_partials_create(SIDE, SIDE, 10 * BYTES, "/tmp", pool);
    mc_partial *tile;
    bool is_new;
    for (int round = 0; round < 3; round++)
        for (int i = 0; i < COUNT; i++) {
            ck_ok(mc_partial_hold(&tile, &is_new, partials, 3, i, 7, pool));
            ck_assert_int_eq(is_new, round == 0);
            for (int k = 0; k < BYTES; k++)
                ck_assert_int_eq(tile->pixels->data[k], round == 0 ? 0 : i + round - 1);
            fill(tile, i + round);
            mc_partial_let_go(tile);
            ck_ok(mc_partials_trim(partials, pool));
        }
    ck_assert_int_eq(mc_partials_count(partials), COUNT);
    ck_assert_int_le(mc_partials_peak(partials), 11 * BYTES);
    ck_assert_int_ge(mc_partials_spooled(partials), COUNT - 10);
    for (int i = 0; i < COUNT; i++) {
        ck_ok(mc_partial_hold(&tile, &is_new, partials, 3, i, 7, pool));
        mc_partial_drop(partials, tile);
    }
    ck_assert_int_eq(mc_partials_count(partials), 0);
    ck_ok(mc_partial_hold(&tile, &is_new, partials, 3, 1, 7, pool));
    ck_assert(is_new && tile->pixels->data[0] == 0);
}
END_TEST

START_TEST(what_is_held_stays)
{
    mc_partials *partials = mc_partials_create(SIDE, SIDE, BYTES, "/tmp", pool);
    mc_partial *tiles[5];
    bool is_new;
    for (int i = 0; i < 5; i++)
        ck_ok(mc_partial_hold(&tiles[i], &is_new, partials, i, 0, 0, pool));
    ck_ok(mc_partials_trim(partials, pool));
    for (int i = 0; i < 5; i++)
        ck_assert_ptr_nonnull(tiles[i]->pixels);
    mc_partial_let_go(tiles[2]);
    ck_ok(mc_partials_trim(partials, pool));
    ck_assert_ptr_null(tiles[2]->pixels);
}
END_TEST

START_TEST(a_folder_that_cannot_be_written_is_named)
{
    char folder[] = "/tmp/mapcache-partial-XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(rmdir(folder), 0);
    mc_partials *partials = mc_partials_create(SIDE, SIDE, 0, folder, pool);
    mc_partial *tile;
    bool is_new;
    ck_ok(mc_partial_hold(&tile, &is_new, partials, 0, 0, 0, pool));
    mc_partial_let_go(tile);
    mc_error *error = mc_partials_trim(partials, pool);
    ck_assert_ptr_nonnull(error);
    ck_assert_int_eq(error->kind, MC_ERR_IO);
    ck_assert_ptr_nonnull(strstr(error->message, folder));
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = { keeps_to_its_limit_and_loses_nothing, what_is_held_stays,
                                   a_folder_that_cannot_be_written_is_named };
    return unit_run("partial", tests, sizeof(tests) / sizeof(tests[0]));
}
