/* What of a tile nothing opaque covers yet. */
#include "unit.h"

#include <string.h>

#include "footprint/region.h"

START_TEST(rectangles_that_cover_all_leave_nothing)
{
    mc_region region;
    mc_region_set(&region, 256, 256);
    mc_region_subtract(&region, &(mc_rect){ 0, 0, 256, 100 });
    ck_assert(mc_region_touches(&region, &(mc_rect){ 10, 99, 20, 101 }));
    ck_assert(!mc_region_touches(&region, &(mc_rect){ 10, 90, 20, 100 }));
    mc_region_subtract(&region, &(mc_rect){ 0, 90, 128, 300 });
    mc_region_subtract(&region, &(mc_rect){ 128, 100, 256, 255 });
    ck_assert(mc_region_touches(&region, &(mc_rect){ 0, 0, 256, 256 }));
    ck_assert_int_eq(region.count, 1);
    mc_region_subtract(&region, &(mc_rect){ -5, 250, 400, 260 });
    ck_assert_int_eq(region.count, 0);
    ck_assert(!mc_region_touches(&region, &(mc_rect){ 0, 0, 256, 256 }));
}
END_TEST

START_TEST(a_hole_leaves_four_pieces)
{
    mc_region region;
    mc_region_set(&region, 10, 10);
    mc_region_subtract(&region, &(mc_rect){ 3, 4, 6, 7 });
    ck_assert_int_eq(region.count, 4);
    for (int y = 0; y < 10; y++)
        for (int x = 0; x < 10; x++) {
            bool hole = x >= 3 && x < 6 && y >= 4 && y < 7;
            ck_assert_int_eq(mc_region_touches(&region, &(mc_rect){ x, y, x + 1, y + 1 }), !hole);
        }
}
END_TEST

/* The same as a bitmap, with any number of pieces: the region may only ever be too large. */
START_TEST(it_is_never_too_small)
{
    unsigned state = 12345;
    for (int round = 0; round < 200; round++) {
        bool open[32][32];
        mc_region region;
        mc_region_set(&region, 32, 32);
        memset(open, 1, sizeof(open));
        for (int i = 0; i < 40; i++) {
            int n[4];
            for (int j = 0; j < 4; j++) {
                state = state * 1103515245u + 12345u;
                n[j] = (int)(state >> 16) % 24;
            }
            mc_rect rect = { n[0], n[1], n[0] + 1 + n[2] / 2, n[1] + 1 + n[3] / 2 };
            mc_region before = region;
            mc_region_subtract(&region, &rect);
            ck_assert_int_le(region.count, mc_region_max);
            for (int y = rect.y0; y < rect.y1 && y < 32; y++)
                for (int x = rect.x0; x < rect.x1 && x < 32; x++)
                    open[y][x] = false;
            bool kept = region.count == before.count && memcmp(&region, &before, sizeof(region)) == 0;
            for (int y = 0; y < 32; y++)
                for (int x = 0; x < 32; x++) {
                    bool touched = mc_region_touches(&region, &(mc_rect){ x, y, x + 1, y + 1 });
                    ck_assert(touched || !open[y][x]);
                    if (!kept && x >= rect.x0 && x < rect.x1 && y >= rect.y0 && y < rect.y1)
                        ck_assert(!touched);
                }
        }
    }
}
END_TEST

UNIT_MAIN("region", rectangles_that_cover_all_leave_nothing, a_hole_leaves_four_pieces, it_is_never_too_small)
