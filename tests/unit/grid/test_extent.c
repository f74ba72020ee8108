/* Extents and ranges of tiles as sets. */
#include "unit.h"

#include "mapcache/grid.h"

static void
ck_extent(mc_extent extent, double minx, double miny, double maxx, double maxy)
{
    ck_assert_double_eq(extent.minx, minx);
    ck_assert_double_eq(extent.miny, miny);
    ck_assert_double_eq(extent.maxx, maxx);
    ck_assert_double_eq(extent.maxy, maxy);
}

START_TEST(extents_have_a_union_and_an_intersection)
{
    const mc_extent a = { 0, 1, 10, 11 }, b = { -5, 4, 3, 20 }, far = { 30, 30, 40, 40 };
    ck_extent(mc_extent_union(&a, &b), -5, 1, 10, 20);
    ck_extent(mc_extent_intersection(&a, &b), 0, 4, 3, 11);
    ck_extent(mc_extent_intersection(&b, &a), 0, 4, 3, 11);
    const mc_extent none = mc_extent_intersection(&a, &far);
    ck_assert(!mc_extent_valid(&none));
}
END_TEST

START_TEST(ranges_have_a_union_and_an_intersection)
{
    const mc_tile_range a = { 0, 1, 10, 11 }, b = { -5, 4, 3, 20 };
    mc_tile_range all = mc_tile_range_union(&a, &b), both = mc_tile_range_intersection(&a, &b);
    ck_assert(all.minx == -5 && all.miny == 1 && all.maxx == 10 && all.maxy == 20);
    ck_assert(both.minx == 0 && both.miny == 4 && both.maxx == 3 && both.maxy == 11);
}
END_TEST

START_TEST(a_range_of_tiles_has_an_extent_whatever_the_origin)
{
    const mc_level level = { 1, 4, 4 };
    mc_grid grid = { .extent = { 0, 0, 1024, 1024 },
                     .tile_width = 256,
                     .tile_height = 256,
                     .level_count = 1,
                     .levels = &level,
                     .origin = MC_BOTTOM_LEFT };
    const mc_tile_range range = { 0, 1, 2, 4 };
    ck_extent(mc_grid_range_extent(&grid, 0, &range), 0, 256, 512, 1024);
    grid.origin = MC_TOP_RIGHT;
    ck_extent(mc_grid_range_extent(&grid, 0, &range), 512, 0, 1024, 768);
}
END_TEST

UNIT_MAIN("extent", extents_have_a_union_and_an_intersection, ranges_have_a_union_and_an_intersection,
          a_range_of_tiles_has_an_extent_whatever_the_origin)
