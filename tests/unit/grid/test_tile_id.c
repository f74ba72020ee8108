/* Numbers of tiles on Hilbert's curves. */
#include "unit.h"

#include <stdlib.h>

#include "grid/tile_id.h"

START_TEST(numbers_are_those_of_the_specification)
{
    static const struct {
        int z;
        uint32_t x, y;
        uint64_t id;
    } known[] = { { 0, 0, 0, 0 },
                  { 1, 0, 0, 1 },
                  { 1, 0, 1, 2 },
                  { 1, 1, 1, 3 },
                  { 1, 1, 0, 4 },
                  { 2, 0, 0, 5 },
                  { 12, 3423, 1763, 19078479 } };
    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
        ck_assert_uint_eq(mc_tile_id(known[i].z, known[i].x, known[i].y), known[i].id);
}
END_TEST

START_TEST(numbers_go_to_places_and_back)
{
    uint64_t next = 0;
    uint32_t last_x = 0, last_y = 0;
    int last_z = -1;
    for (uint64_t id = 0; id < mc_tile_first_id(9); id++) {
        int z;
        uint32_t x, y;
        ck_assert(mc_tile_place(&z, &x, &y, id));
        ck_assert_uint_eq(mc_tile_id(z, x, y), next++);
        if (z == last_z) /* neighbours are neighbours */
            ck_assert_uint_eq((x > last_x ? x - last_x : last_x - x) + (y > last_y ? y - last_y : last_y - y), 1);
        last_z = z;
        last_x = x;
        last_y = y;
    }
    srandom(1);
    for (int i = 0; i < 100000; i++) {
        int z = (int)(random() % (MC_TILE_ID_LEVEL_MAX + 1)), level;
        uint32_t x = (uint32_t)random() % ((uint32_t)1 << z), y = (uint32_t)random() % ((uint32_t)1 << z), column, row;
        ck_assert(mc_tile_place(&level, &column, &row, mc_tile_id(z, x, y)));
        ck_assert(level == z && column == x && row == y);
    }
}
END_TEST

START_TEST(levels_end)
{
    int z;
    uint32_t x, y, last = ((uint32_t)1 << MC_TILE_ID_LEVEL_MAX) - 1;
    uint64_t end = mc_tile_first_id(MC_TILE_ID_LEVEL_MAX + 1);
    ck_assert(mc_tile_place(&z, &x, &y, end - 1));
    ck_assert(z == MC_TILE_ID_LEVEL_MAX && x == last && y == 0);
    ck_assert(!mc_tile_place(&z, &x, &y, end));
    ck_assert(!mc_tile_place(&z, &x, &y, UINT64_MAX));
}
END_TEST

UNIT_MAIN("tile_id", numbers_are_those_of_the_specification, numbers_go_to_places_and_back, levels_end)
