/* Marks of old tiles: what was marked is found, however much is marked, by any number of threads. */
#include "changes/marks.h"

#include <pthread.h>
#include <stdint.h>

#include "unit.h"

enum { LEVELS = 20 };

static mc_level levels[LEVELS];
static mc_grid grid = { .name = "g", .level_count = LEVELS, .levels = levels };

static void
set_up_grid(void)
{
    for (int z = 0; z < LEVELS; z++)
        levels[z] = (mc_level){ 1, 1 << z, 1 << z };
}

static uint32_t state = 1;

static int
random_below(int limit)
{
    state = state * 1664525 + 1013904223;
    return (int)((uint64_t)(state >> 4) * (uint64_t)limit >> 28);
}

static mc_tile_range
one_tile(int x, int y)
{
    return (mc_tile_range){ x, y, x + 1, y + 1 };
}

START_TEST(a_marked_tile_is_found_and_no_other)
{
    set_up_grid();
    mc_marks *marks = mc_marks_create(1024, 8);
    mc_mark_set *set = mc_marks_set(marks, "a", &grid, 1, 1, NULL),
                *other = mc_marks_set(marks, "b", &grid, 1, 1, NULL);
    ck_assert_int_eq(mc_marks_find(set, 5, 3, 4), 0);
    const mc_tile_range range = { 3, 4, 6, 5 };
    mc_marks_add(set, 5, &range, 1, 100);
    for (int y = 0; y < 32; y++)
        for (int x = 0; x < 32; x++)
            ck_assert_int_eq(mc_marks_find(set, 5, x, y), x >= 3 && x < 6 && y == 4 ? 100 : 0);
    ck_assert_int_eq(mc_marks_find(set, 4, 3, 4), 0);
    ck_assert_int_eq(mc_marks_find(other, 5, 3, 4), 0);
    ck_assert_ptr_eq(mc_marks_set(marks, "a", &grid, 1, 1, NULL), set);
    mc_marks_add(set, 5, &range, 1, 200);
    mc_marks_add(set, 5, &range, 1, 150);
    ck_assert_int_eq(mc_marks_find(set, 5, 3, 4), 200);
    ck_assert_int_eq(mc_marks_find(set, -1, 0, 0), 0);
    ck_assert_int_eq(mc_marks_find(set, LEVELS, 0, 0), 0);
    mc_marks_destroy(marks);
    mc_marks_destroy(NULL);
}
END_TEST

START_TEST(the_unit_is_the_metatile)
{
    set_up_grid();
    mc_marks *marks = mc_marks_create(1024, 8);
    mc_mark_set *set = mc_marks_set(marks, "a", &grid, 4, 2, NULL);
    const mc_tile_range range = one_tile(5, 5);
    mc_marks_add(set, 6, &range, 1, 7);
    for (int y = 0; y < 64; y++)
        for (int x = 0; x < 64; x++)
            ck_assert_int_eq(mc_marks_find(set, 6, x, y), x / 4 == 1 && y / 2 == 2 ? 7 : 0);
    mc_marks_destroy(marks);
}
END_TEST

START_TEST(a_table_that_is_smaller_than_its_levels_marks_by_rectangles)
{
    set_up_grid();
    mc_marks *marks = mc_marks_create(16, 8);
    mc_mark_set *sets[] = { mc_marks_set(marks, "a", &grid, 1, 1, NULL), mc_marks_set(marks, "b", &grid, 1, 1, NULL) };
    for (int i = 0; i < 2 * LEVELS; i++) {
        const mc_tile_range range = one_tile(0, 0);
        mc_marks_add(sets[i % 2], i / 2, &range, 1, 10 + i);
    }
    for (int i = 0; i < 2 * LEVELS; i++)
        ck_assert_int_eq(mc_marks_find(sets[i % 2], i / 2, 0, 0), 10 + i);
    mc_marks_destroy(marks);
}
END_TEST

START_TEST(large_ranges_are_rectangles_that_join)
{
    set_up_grid();
    mc_marks *marks = mc_marks_create(1024, 8);
    mc_mark_set *set = mc_marks_set(marks, "a", &grid, 1, 1, NULL);
    for (int i = 0; i < 40; i++) {
        const mc_tile_range range = { i * 1000, i * 500, i * 1000 + 300, i * 500 + 20 };
        mc_marks_add(set, 18, &range, 1, 10 + i);
    }
    for (int i = 0; i < 40; i++)
        ck_assert_int_ge(mc_marks_find(set, 18, i * 1000 + 299, i * 500 + 19), 10 + i);
    ck_assert_int_eq(mc_marks_find(set, 18, 200000, 10), 0);
    mc_marks_statistics statistics = mc_marks_stat(marks);
    ck_assert_int_eq(statistics.entries, 0);
    ck_assert_int_le(statistics.rectangles, 8);
    const mc_tile_range world = { 0, 0, 1 << 18, 1 << 18 };
    mc_marks_add(set, 18, &world, 1, 1000);
    ck_assert_int_eq(mc_marks_find(set, 18, 0, (1 << 18) - 1), 1000);
    mc_marks_destroy(marks);
}
END_TEST

START_TEST(an_older_mark_of_an_area_takes_no_newer_one_away)
{
    set_up_grid();
    mc_marks *marks = mc_marks_create(1024, 8);
    mc_mark_set *set = mc_marks_set(marks, "a", &grid, 1, 1, NULL);
    const mc_tile_range part = { 100, 100, 300, 300 }, world = { 0, 0, 1 << 12, 1 << 12 };
    mc_marks_add(set, 12, &part, 1, 500);
    mc_marks_add(set, 12, &world, 1, 200);
    ck_assert_int_eq(mc_marks_find(set, 12, 150, 150), 500);
    ck_assert_int_eq(mc_marks_find(set, 12, 50, 50), 200);
    for (int i = 0; i < 20; i++) { /* no room: joined with areas that are newer */
        const mc_tile_range range = { i * 100, 0, i * 100 + 30, 30 };
        mc_marks_add(set, 12, &range, 1, 400 - i);
        ck_assert_int_eq(mc_marks_find(set, 12, 150, 150), 500);
        ck_assert_int_ge(mc_marks_find(set, 12, i * 100, 0), 400 - i);
    }
    mc_marks_destroy(marks);
}
END_TEST

START_TEST(nothing_is_missed_when_there_is_no_room)
{
    enum { TILES = 20000 };
    static int x[TILES], y[TILES], z[TILES];
    set_up_grid();
    mc_marks *marks = mc_marks_create(512, 8);
    mc_mark_set *sets[3] = { mc_marks_set(marks, "a", &grid, 1, 1, NULL), mc_marks_set(marks, "b", &grid, 2, 2, NULL),
                             mc_marks_set(marks, "c", &grid, 5, 5, NULL) };
    for (int i = 0; i < TILES; i++) {
        z[i] = random_below(LEVELS);
        x[i] = random_below(1 << z[i]);
        y[i] = random_below(1 << z[i]);
        const mc_tile_range range = one_tile(x[i], y[i]);
        mc_marks_add(sets[i % 3], z[i], &range, 1, i + 1);
    }
    for (int i = 0; i < TILES; i++)
        ck_assert_int_ge(mc_marks_find(sets[i % 3], z[i], x[i], y[i]), i + 1);
    mc_marks_statistics statistics = mc_marks_stat(marks);
    ck_assert_int_le(statistics.entries, 512);
    ck_assert_int_gt(statistics.coarsened, 0);
    mc_marks_destroy(marks);
}
END_TEST

START_TEST(what_is_applied_is_forgotten_and_marks_are_fine_again)
{
    set_up_grid();
    mc_marks *marks = mc_marks_create(64, 8);
    mc_mark_set *set = mc_marks_set(marks, "a", &grid, 1, 1, NULL);
    for (int i = 0; i < 1000; i++) {
        const mc_tile_range range = one_tile(random_below(1 << 15), random_below(1 << 15));
        mc_marks_add(set, 15, &range, 1, 50);
    }
    const mc_tile_range wide = { 0, 0, 100, 100 }, late = one_tile(9, 9);
    mc_marks_add(set, 10, &wide, 1, 50);
    mc_marks_add(set, 3, &late, 1, 60);
    mc_marks_forget(marks, 50);
    ck_assert_int_eq(mc_marks_stat(marks).entries, 1);
    ck_assert_int_eq(mc_marks_stat(marks).rectangles, 0);
    ck_assert_int_eq(mc_marks_find(set, 3, 9, 9), 60);
    mc_marks_forget(marks, 60);
    ck_assert_int_eq(mc_marks_find(set, 3, 9, 9), 0);
    const mc_tile_range one = one_tile(100, 100);
    mc_marks_add(set, 15, &one, 1, 70);
    ck_assert_int_eq(mc_marks_find(set, 15, 100, 100), 70);
    ck_assert_int_eq(mc_marks_find(set, 15, 101, 100), 0);
    mc_marks_destroy(marks);
}
END_TEST

START_TEST(a_tileset_with_other_metatiles_keeps_its_marks)
{
    set_up_grid();
    mc_marks *marks = mc_marks_create(64, 8);
    const mc_tile_range one = one_tile(9, 9);
    mc_marks_add(mc_marks_set(marks, "a", &grid, 1, 1, NULL), 8, &one, 1, 30);
    mc_mark_set *next = mc_marks_set(marks, "a", &grid, 4, 4, NULL);
    ck_assert_int_eq(mc_marks_find(next, 8, 9, 9), 30);
    ck_assert_int_eq(mc_marks_find(mc_marks_set(marks, "b", &grid, 4, 4, NULL), 8, 9, 9), 0);
    mc_marks_destroy(marks);
}
END_TEST

START_TEST(many_ranges_at_once_are_marked_as_one_by_one)
{
    enum { RANGES = 300, SIDE = 1 << 11 };
    set_up_grid();
    for (int room = 64; room <= 1 << 16; room <<= 10) {
        mc_marks *marks = mc_marks_create(room, 8);
        mc_mark_set *at_once = mc_marks_set(marks, "a", &grid, 2, 2, NULL),
                    *single = mc_marks_set(marks, "b", &grid, 2, 2, NULL);
        mc_tile_range ranges[RANGES];
        for (int i = 0; i < RANGES; i++) {
            int x = random_below(SIDE - 16), y = random_below(SIDE - 16);
            ranges[i] = (mc_tile_range){ x, y, x + random_below(15), y + random_below(15) };
        }
        mc_marks_add(at_once, 11, ranges, RANGES, 70);
        bool coarse = mc_marks_stat(marks).coarsened > 0;
        ck_assert_int_eq(coarse, room == 64);
        for (int i = 0; i < RANGES && !coarse; i++)
            mc_marks_add(single, 11, &ranges[i], 1, 70);
        for (int i = 0; i < RANGES; i++)
            for (int y = ranges[i].miny; y < ranges[i].maxy; y++)
                for (int x = ranges[i].minx; x < ranges[i].maxx; x++)
                    ck_assert_int_eq(mc_marks_find(at_once, 11, x, y), 70);
        for (int y = 0; y < SIDE && !coarse; y += 2)
            for (int x = 0; x < SIDE; x += 2)
                ck_assert_int_eq(mc_marks_find(at_once, 11, x, y), mc_marks_find(single, 11, x, y));
        mc_marks_destroy(marks);
    }
}
END_TEST

START_TEST(a_range_for_which_its_level_becomes_coarser_is_marked_as_a_whole)
{
    set_up_grid();
    for (int before = 0; before <= 17; before++) {
        mc_marks *marks = mc_marks_create(16, 8);
        mc_mark_set *set = mc_marks_set(marks, "a", &grid, 1, 1, NULL);
        for (int i = 0; i < before; i++) {
            const mc_tile_range single = one_tile(20 + 2 * i, 30);
            mc_marks_add(set, 8, &single, 1, 60);
        }
        const mc_tile_range range = { 1, 1, 6, 5 };
        mc_marks_add(set, 8, &range, 1, 70);
        for (int y = range.miny; y < range.maxy; y++)
            for (int x = range.minx; x < range.maxx; x++)
                ck_assert_int_eq(mc_marks_find(set, 8, x, y), 70);
        ck_assert_int_gt(mc_marks_stat(marks).coarsened, 0);
        mc_marks_destroy(marks);
    }
}
END_TEST

START_TEST(a_set_may_share_the_marks_of_another_one)
{
    set_up_grid();
    mc_grid fine = grid;
    fine.name = "g@2x";
    mc_marks *marks = mc_marks_create(64, 8);
    mc_mark_set *set = mc_marks_set(marks, "a", &grid, 2, 2, NULL),
                *shared = mc_marks_set(marks, "a", &fine, 2, 2, set);
    const mc_tile_range one = one_tile(9, 9);
    ck_assert(mc_marks_kept_apart(set) && !mc_marks_kept_apart(shared));
    ck_assert_ptr_eq(mc_marks_set(marks, "a", &fine, 2, 2, set), shared);
    mc_marks_add(set, 8, &one, 1, 30);
    ck_assert_int_eq(mc_marks_find(shared, 8, 8, 8), 30);
    ck_assert_int_eq(mc_marks_find(shared, 8, 10, 8), 0);
    mc_marks_note_drawn(set, 8, 9, 9, 40); /* what is drawn is one of them */
    ck_assert_int_eq(mc_marks_drawn(shared, 8, 9, 9), 0);
    mc_mark_set *apart = mc_marks_set(marks, "a", &fine, 2, 2, NULL);
    ck_assert(apart != shared && mc_marks_kept_apart(apart));
    ck_assert_int_eq(mc_marks_find(apart, 8, 100, 8), 30);
    mc_marks_destroy(marks);
}
END_TEST

START_TEST(sets_for_which_there_is_no_room_are_old_as_a_whole)
{
    set_up_grid();
    mc_grid deep = grid;
    mc_level many[80] = { { 1, 1, 1 } };
    deep.name = "deep";
    deep.levels = many;
    deep.level_count = 80;
    mc_marks *marks = mc_marks_create(64, 2);
    mc_mark_set *first = mc_marks_set(marks, "a", &grid, 1, 1, NULL),
                *rest = mc_marks_set(marks, "d", &deep, 1, 1, NULL);
    mc_mark_set *second = mc_marks_set(marks, "b", &grid, 2, 2, NULL);
    ck_assert(!mc_marks_is_rest(first) && !mc_marks_is_rest(second) && mc_marks_is_rest(rest));
    ck_assert_ptr_eq(mc_marks_set(marks, "c", &grid, 1, 1, NULL), rest);
    ck_assert_ptr_eq(mc_marks_set(marks, "a", &grid, 1, 1, NULL), first);
    const mc_tile_range one = one_tile(3, 3);
    mc_marks_add(first, 5, &one, 1, 20);
    ck_assert_int_eq(mc_marks_find(rest, 5, 3, 3), 0);
    mc_marks_add(rest, 70, &one, 1, 30);
    mc_marks_add(rest, 2, &one, 1, 25);
    ck_assert_int_eq(mc_marks_find(rest, 0, 0, 0), 30);
    ck_assert_int_eq(mc_marks_find(rest, 79, 500, 7), 30);
    ck_assert_int_eq(mc_marks_find(first, 5, 4, 3), 0);
    mc_marks_add(second, 4, &one, 1, 35);
    ck_assert_ptr_eq(mc_marks_set(marks, "b", &grid, 4, 4, NULL), rest); /* what was marked before, still is */
    ck_assert_int_eq(mc_marks_find(rest, 4, 3, 3), 35);
    mc_marks_note_drawn(rest, 5, 3, 3, 40); /* of which of them, nobody knows */
    ck_assert_int_eq(mc_marks_drawn(rest, 5, 3, 3), 0);
    mc_marks_forget(marks, 34);
    ck_assert_int_eq(mc_marks_find(rest, 0, 0, 0), 35);
    mc_marks_forget(marks, 35);
    ck_assert_int_eq(mc_marks_find(rest, 0, 0, 0), 0);
    mc_marks_destroy(marks);
}
END_TEST

START_TEST(own_renders_are_remembered)
{
    set_up_grid();
    mc_marks *marks = mc_marks_create(64, 8);
    mc_mark_set *set = mc_marks_set(marks, "a", &grid, 2, 2, NULL);
    ck_assert_int_eq(mc_marks_drawn(set, 5, 3, 3), 0);
    mc_marks_note_drawn(set, 5, 3, 3, 77);
    ck_assert_int_eq(mc_marks_drawn(set, 5, 2, 2), 77);
    ck_assert_int_eq(mc_marks_drawn(set, 5, 4, 2), 0);
    ck_assert_int_eq(mc_marks_drawn(set, 6, 2, 2), 0);
    mc_marks_destroy(marks);
}
END_TEST

START_TEST(a_mark_in_the_future_has_a_tile_drawn_once_in_a_while)
{
    set_up_grid();
    const apr_time_t second = APR_USEC_PER_SEC, hour = 3600 * second, now = apr_time_now();
    mc_marks *marks = mc_marks_create(64, 8);
    mc_mark_set *set = mc_marks_set(marks, "a", &grid, 1, 1, NULL);
    mc_marks_set_clock(marks, -hour); /* was set back */
    ck_assert(!mc_marks_hold(set, 5, 3, 3, now));
    mc_marks_note_drawn(set, 5, 3, 3, now - second); /* by the clock before */
    ck_assert(!mc_marks_hold(set, 5, 3, 3, now));
    mc_marks_note_drawn(set, 5, 3, 3, now - hour);
    ck_assert(mc_marks_hold(set, 5, 3, 3, now));
    ck_assert(!mc_marks_hold(set, 5, 3, 3, now - hour)); /* such a mark is not in the future */
    ck_assert(!mc_marks_hold(set, 5, 4, 3, now));
    mc_marks_note_drawn(set, 5, 3, 3, now - hour - MC_MARKS_HOLD * second);
    ck_assert(!mc_marks_hold(set, 5, 3, 3, now));
    mc_marks_destroy(marks);
}
END_TEST

typedef struct looking {
    mc_mark_set *set;
    atomic_bool *end;
    int missed;
} looking;

static void *
look_for_ever(void *baton)
{
    looking *look = baton;
    while (!atomic_load(look->end))
        look->missed += mc_marks_find(look->set, 12, 4000, 4000) == 0 || mc_marks_find(look->set, 11, 700, 600) == 0;
    return NULL;
}

START_TEST(who_looks_while_the_table_is_rebuilt_misses_nothing)
{
    enum { THREADS = 3, ROUNDS = 60000 };
    set_up_grid();
    mc_marks *marks = mc_marks_create(128, 8);
    mc_mark_set *set = mc_marks_set(marks, "a", &grid, 1, 1, NULL);
    const mc_tile_range one = one_tile(4000, 4000), wide = { 600, 500, 800, 700 };
    atomic_bool end = false;
    pthread_t threads[THREADS];
    looking looks[THREADS];
    mc_marks_add(set, 12, &one, 1, 1000000);
    mc_marks_add(set, 11, &wide, 1, 1000000);
    for (int i = 0; i < THREADS; i++) {
        looks[i] = (looking){ set, &end, 0 };
        pthread_create(&threads[i], NULL, look_for_ever, &looks[i]);
    }
    for (int i = 0; i < ROUNDS; i++) {
        const mc_tile_range range = one_tile(random_below(4096), random_below(4096));
        mc_marks_add(set, 12 + i % 3, &range, 1, 10);
        if (i % 1000 == 0)
            mc_marks_forget(marks, 10);
    }
    atomic_store(&end, true);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        ck_assert_int_eq(looks[i].missed, 0);
    }
    mc_marks_destroy(marks);
}
END_TEST

UNIT_MAIN("marks", a_marked_tile_is_found_and_no_other, the_unit_is_the_metatile,
          a_table_that_is_smaller_than_its_levels_marks_by_rectangles, large_ranges_are_rectangles_that_join,
          an_older_mark_of_an_area_takes_no_newer_one_away, nothing_is_missed_when_there_is_no_room,
          what_is_applied_is_forgotten_and_marks_are_fine_again, a_tileset_with_other_metatiles_keeps_its_marks,
          many_ranges_at_once_are_marked_as_one_by_one,
          a_range_for_which_its_level_becomes_coarser_is_marked_as_a_whole, a_set_may_share_the_marks_of_another_one,
          sets_for_which_there_is_no_room_are_old_as_a_whole, own_renders_are_remembered,
          a_mark_in_the_future_has_a_tile_drawn_once_in_a_while, who_looks_while_the_table_is_rebuilt_misses_nothing)
