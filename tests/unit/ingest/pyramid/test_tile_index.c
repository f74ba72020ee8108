/* Which images touch which tiles, against a loop over all of them. */
#include "ingest/pyramid/tile_cover.h"
#include "ingest/pyramid/tile_index.h"

#include "unit.h"

static uint32_t state = 1;

static int
chance(int most)
{
    state = state * 1664525u + 1013904223u;
    return (int)(state >> 8) % most;
}

static bool
meets(const mc_tile_range *a, const mc_tile_range *b)
{
    return a->minx < b->maxx && b->minx < a->maxx && a->miny < b->maxy && b->miny < a->maxy;
}

START_TEST(as_a_loop_finds_it)
{
    for (int count = 0; count < 70; count++) {
        mc_tile_range ranges[70];
        for (int i = 0; i < count; i++) {
            int x = chance(200), y = chance(200);
            ranges[i] = (mc_tile_range){ x, y, x + chance(30), y + chance(30) }; /* some are empty */
        }
        const mc_tile_index *tile_index = mc_tile_index_create(ranges, count, pool);
        for (int k = 0; k < 200; k++) {
            int x = chance(230), y = chance(230), side = 1 << chance(5), after = chance(count + 2) - 1;
            mc_tile_range block = { x, y, x + side, y + side };
            bool expected = false;
            for (int i = after + 1; i < count; i++)
                expected = expected || (ranges[i].minx < ranges[i].maxx && ranges[i].miny < ranges[i].maxy &&
                                        meets(&ranges[i], &block));
            ck_assert_int_eq(mc_tile_index_any(tile_index, &block, after), expected);
        }
    }
}
END_TEST

START_TEST(far_tiles)
{
    const mc_tile_range far = { (1 << 30) - 2, (1 << 30) - 3, 1 << 30, 1 << 30 };
    const mc_tile_index *tile_index = mc_tile_index_create(&far, 1, pool);
    ck_assert(mc_tile_index_any(tile_index, &far, -1));
    ck_assert(!mc_tile_index_any(tile_index, &far, 0));
    ck_assert(!mc_tile_index_any(tile_index, &(mc_tile_range){ 0, 0, (1 << 30) - 2, 1 << 30 }, -1));
}
END_TEST

START_TEST(covered_tiles_are_counted_once)
{
    enum { SIDE = 64 };
    for (int count = 0; count < 60; count++) {
        mc_tile_range ranges[60];
        bool covered[SIDE][SIDE] = { { false } };
        int expected = 0;
        for (int i = 0; i < count; i++) {
            int x = chance(40), y = chance(40);
            ranges[i] = (mc_tile_range){ x, y, x + chance(12), y + chance(12) }; /* some are empty */
            for (int row = y; row < ranges[i].maxy; row++)
                for (int column = x; column < ranges[i].maxx; column++)
                    covered[row][column] = true;
        }
        for (int i = 0; i < SIDE * SIDE; i++)
            expected += covered[i / SIDE][i % SIDE];
        ck_assert_int_eq(mc_tile_cover_count(ranges, count, pool), expected);
    }
}
END_TEST

START_TEST(very_many_tiles_are_not_counted_for_ever)
{
    enum { COUNT = 40000 };
    mc_tile_range *ranges = apr_palloc(pool, sizeof(*ranges) * COUNT);
    for (int i = 0; i < COUNT; i++)
        ranges[i] = (mc_tile_range){ i, i, i + COUNT, i + COUNT };
    apr_int64_t counted = mc_tile_cover_count(ranges, COUNT, pool);
    ck_assert_int_ge(counted, (apr_int64_t)COUNT * COUNT);
    ck_assert_int_le(counted, (apr_int64_t)4 * COUNT * COUNT);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = { as_a_loop_finds_it, far_tiles, covered_tiles_are_counted_once,
                                   very_many_tiles_are_not_counted_for_ever };
    return unit_run("tile_index", tests, sizeof(tests) / sizeof(tests[0]));
}
