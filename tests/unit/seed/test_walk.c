#include "unit.h"

#include <apr_strings.h>
#include <string.h>

#include "mapcache/seed.h"
#include "seed/region.h"

enum { VISITS_MAX = 200000, LEVELS = 12 };

typedef struct visits {
    int count;
    int at[VISITS_MAX][3];
    int stop_after; /* 0: never */
} visits;

static visits down, flat, hilbert;

static bool
note_visit(void *baton, int z, int x, int y)
{
    visits *visits = baton;
    ck_assert_int_lt(visits->count, VISITS_MAX);
    int *at = visits->at[visits->count++];
    at[0] = z, at[1] = x, at[2] = y;
    return visits->stop_after == 0 || visits->count < visits->stop_after;
}

static int
compare(const void *a, const void *b)
{
    const int *first = a, *second = b;
    for (int i = 0; i < 3; i++)
        if (first[i] != second[i])
            return first[i] < second[i] ? -1 : 1;
    return 0;
}

static mc_level levels[LEVELS];

/* A square grid of side 1024 at level 0, one tile of 256 pixels there. */
static mc_grid
square_grid(double ratio, mc_origin origin)
{
    double resolution = 4;
    for (int z = 0; z < LEVELS; z++, resolution /= ratio) {
        int tiles = (int)(1024 / (256 * resolution) + 0.999999);
        levels[z] = (mc_level){ resolution, tiles, tiles };
    }
    return (mc_grid){ .name = "square",
                      .extent = { 0, 0, 1024, 1024 },
                      .origin = origin,
                      .tile_width = 256,
                      .tile_height = 256,
                      .level_count = LEVELS,
                      .levels = levels };
}

static void
walk(const mc_seed_area *area)
{
    memset(&down, 0, sizeof(down));
    memset(&flat, 0, sizeof(flat));
    memset(&hilbert, 0, sizeof(hilbert));
    ck_assert(mc_seed_walk(area, MC_SEED_DOWN, note_visit, &down));
    ck_assert(mc_seed_walk(area, MC_SEED_LEVELS, note_visit, &flat));
    ck_assert(mc_seed_walk(area, MC_SEED_HILBERT, note_visit, &hilbert));
}

START_TEST(levels_go_one_after_the_other_x_inside)
{
    mc_tile_range limits[2] = { { 0, 0, 1, 1 }, { 0, 0, 2, 2 } };
    mc_grid grid = square_grid(2, MC_BOTTOM_LEFT);
    mc_seed_area area = { &grid, 0, 1, limits, 1, 1, NULL, false };
    static const int expected[5][3] = { { 0, 0, 0 }, { 1, 0, 0 }, { 1, 1, 0 }, { 1, 0, 1 }, { 1, 1, 1 } };
    walk(&area);
    ck_assert_int_eq(flat.count, 5);
    ck_assert_mem_eq(flat.at, expected, sizeof(expected));
}
END_TEST

START_TEST(drill_down_finishes_a_branch_before_the_next)
{
    mc_tile_range limits[3] = { { 0, 0, 1, 1 }, { 0, 0, 2, 1 }, { 1, 1, 3, 2 } };
    mc_grid grid = square_grid(2, MC_BOTTOM_LEFT);
    mc_seed_area area = { &grid, 0, 2, limits, 1, 1, NULL, false };
    static const int expected[5][3] = { { 0, 0, 0 }, { 1, 0, 0 }, { 2, 1, 1 }, { 1, 1, 0 }, { 2, 2, 1 } };
    walk(&area);
    ck_assert_int_eq(down.count, 5);
    ck_assert_mem_eq(down.at, expected, sizeof(expected));
}
END_TEST

START_TEST(limits_are_rounded_outwards_to_metatiles)
{
    mc_tile_range limits[4] = { { 0 }, { 0 }, { 0 }, { 3, 4, 5, 8 } };
    mc_grid grid = square_grid(2, MC_BOTTOM_LEFT);
    mc_seed_area area = { &grid, 3, 3, limits, 4, 3, NULL, false };
    static const int expected[4][3] = { { 3, 0, 3 }, { 3, 4, 3 }, { 3, 0, 6 }, { 3, 4, 6 } };
    walk(&area);
    ck_assert_int_eq(flat.count, 4);
    ck_assert_mem_eq(flat.at, expected, sizeof(expected));
    ck_assert_int_eq(down.count, 4);
}
END_TEST

/* All walks see the same metatiles, each once, and as many as mc_seed_count says. */
static void
check_same(const mc_seed_area *area)
{
    walk(area);
    ck_assert_int_eq(mc_seed_count(area), flat.count);
    ck_assert_int_eq(mc_seed_estimate(area, 1000000), flat.count);
    ck_assert_int_eq(down.count, flat.count);
    ck_assert_int_eq(hilbert.count, flat.count);
    qsort(down.at, (size_t)down.count, sizeof(down.at[0]), compare);
    qsort(flat.at, (size_t)flat.count, sizeof(flat.at[0]), compare);
    qsort(hilbert.at, (size_t)hilbert.count, sizeof(hilbert.at[0]), compare);
    ck_assert_mem_eq(down.at, flat.at, sizeof(flat.at[0]) * (size_t)flat.count);
    ck_assert_mem_eq(hilbert.at, flat.at, sizeof(flat.at[0]) * (size_t)flat.count);
    for (int i = 1; i < flat.count; i++)
        ck_assert_int_lt(compare(flat.at[i - 1], flat.at[i]), 0);
}

START_TEST(all_walks_visit_the_same_whatever_the_grid)
{
    static const double ratios[] = { 2, 1.7, 2.5, 1.01, 4 };
    static const mc_extent extents[] = { { 0, 0, 1024, 1024 },
                                         { 100, 100, 101, 101 },
                                         { 511, 511, 513, 513 },
                                         { 0, 0, 512, 1024 },
                                         { 1000, 3, 1024, 900 } };
    static const int sides[][2] = { { 1, 1 }, { 2, 2 }, { 5, 5 }, { 4, 8 }, { 1, 3 } };
    for (int origin = MC_BOTTOM_LEFT; origin <= MC_BOTTOM_RIGHT; origin++)
        for (size_t r = 0; r < sizeof(ratios) / sizeof(ratios[0]); r++)
            for (size_t e = 0; e < sizeof(extents) / sizeof(extents[0]); e++)
                for (size_t s = 0; s < sizeof(sides) / sizeof(sides[0]); s++) {
                    mc_grid grid = square_grid(ratios[r], (mc_origin)origin);
                    const mc_tile_range *limits = mc_seed_limits(&grid, &extents[e], pool);
                    mc_seed_area area = {
                        &grid, 0, ratios[r] > 3 ? 3 : 6, limits, sides[s][0], sides[s][1], NULL, false
                    };
                    check_same(&area);
                }
}
END_TEST

START_TEST(a_level_without_tiles_does_not_hide_those_below)
{
    mc_tile_range limits[3] = { { 0, 0, 0, 0 }, { 0, 0, 2, 2 }, { 0, 0, 4, 4 } };
    mc_grid grid = square_grid(2, MC_BOTTOM_LEFT);
    mc_seed_area area = { &grid, 0, 2, limits, 1, 1, NULL, false };
    check_same(&area);
    ck_assert_int_eq(flat.count, 20);
}
END_TEST

START_TEST(a_visit_ends_the_walk)
{
    mc_tile_range limits[3] = { { 0, 0, 1, 1 }, { 0, 0, 2, 2 }, { 0, 0, 4, 4 } };
    mc_grid grid = square_grid(2, MC_BOTTOM_LEFT);
    mc_seed_area area = { &grid, 0, 2, limits, 1, 1, NULL, false };
    down = (visits){ .stop_after = 7 };
    ck_assert(!mc_seed_walk(&area, MC_SEED_DOWN, note_visit, &down));
    ck_assert_int_eq(down.count, 7);
    flat = (visits){ .stop_after = 1 };
    ck_assert(!mc_seed_walk(&area, MC_SEED_LEVELS, note_visit, &flat));
    ck_assert_int_eq(flat.count, 1);
    hilbert = (visits){ .stop_after = 3 };
    ck_assert(!mc_seed_walk(&area, MC_SEED_HILBERT, note_visit, &hilbert));
    ck_assert_int_eq(hilbert.count, 3);
}
END_TEST

START_TEST(extents_become_limits_from_every_origin)
{
    /* At level 2 a tile is 256 wide: x 256..300 is in column 1 from the left, 2 from the right; y 700..1024 in rows 2
     * and 3 from the bottom, 0 and 1 from the top. */
    mc_extent extent = { 256, 700, 300, 1024 };
    static const mc_tile_range expected[] = { [MC_BOTTOM_LEFT] = { 1, 2, 2, 4 },
                                              [MC_TOP_LEFT] = { 1, 0, 2, 2 },
                                              [MC_TOP_RIGHT] = { 2, 0, 3, 2 },
                                              [MC_BOTTOM_RIGHT] = { 2, 2, 3, 4 } };
    for (int origin = MC_BOTTOM_LEFT; origin <= MC_BOTTOM_RIGHT; origin++) {
        mc_grid grid = square_grid(2, (mc_origin)origin);
        const mc_tile_range *limits = mc_seed_limits(&grid, &extent, pool);
        ck_assert_mem_eq(&limits[2], &expected[origin], sizeof(expected[origin]));
    }
}
END_TEST

START_TEST(extents_beyond_the_grid_have_no_tiles)
{
    mc_grid grid = square_grid(2, MC_BOTTOM_LEFT);
    static const mc_extent outside[] = { { -1e300, -1e300, -5, -5 }, { 1e15, 0, 1e300, 1e300 } };
    for (int i = 0; i < 2; i++) {
        mc_seed_area area = { &grid, 0, 5, mc_seed_limits(&grid, &outside[i], pool), 1, 1, NULL, false };
        check_same(&area);
        ck_assert_int_eq(flat.count, 0);
    }
    mc_extent everything = { -1e300, -1e300, 1e300, 1e300 };
    mc_seed_area area = { &grid, 0, 3, mc_seed_limits(&grid, &everything, pool), 1, 1, NULL, false };
    ck_assert_int_eq(mc_seed_count(&area), 1 + 4 + 16 + 64);
}
END_TEST

START_TEST(hilbert_steps_to_a_neighbour)
{
    mc_tile_range limits[7] = { [6] = { 0, 0, 64, 64 } };
    mc_grid grid = square_grid(2, MC_TOP_LEFT);
    mc_seed_area area = { &grid, 6, 6, limits, 1, 1, NULL, false };
    check_same(&area);
    memset(&hilbert, 0, sizeof(hilbert));
    ck_assert(mc_seed_walk(&area, MC_SEED_HILBERT, note_visit, &hilbert));
    for (int i = 1; i < hilbert.count; i++)
        ck_assert_int_eq(abs(hilbert.at[i][1] - hilbert.at[i - 1][1]) + abs(hilbert.at[i][2] - hilbert.at[i - 1][2]),
                         1);
}
END_TEST

static mc_seed_region *
region_of(const mc_grid *grid, const double *ring, size_t count, const double *hole, size_t hole_count)
{
    mc_region_builder *builder;
    ck_ok(mc_region_begin(&builder, grid, 0, NULL, pool));
    ck_ok(mc_region_add(builder, MC_REGION_RING, ring, count, pool));
    if (hole_count > 0)
        ck_ok(mc_region_add(builder, MC_REGION_HOLE, hole, hole_count, pool));
    return mc_region_finish(builder);
}

/* A metatile of the grid as the walks see it. */
static mc_extent
metatile_box(const mc_seed_area *area, int z, int x, int y)
{
    const mc_level *level = &area->grid->levels[z];
    int right = x + area->columns < level->columns ? x + area->columns : level->columns;
    int upper = y + area->rows < level->rows ? y + area->rows : level->rows;
    mc_extent a = mc_grid_tile_extent(area->grid, z, x, y),
              b = mc_grid_tile_extent(area->grid, z, right - 1, upper - 1);
    return (mc_extent){ a.minx < b.minx ? a.minx : b.minx, a.miny < b.miny ? a.miny : b.miny,
                        a.maxx > b.maxx ? a.maxx : b.maxx, a.maxy > b.maxy ? a.maxy : b.maxy };
}

/* What the walks have visited (flat, sorted) against each metatile by itself. */
static void
check_against_each(const mc_seed_area *area)
{
    int found = 0;
    for (int z = area->minzoom; z <= area->maxzoom; z++) {
        double slack = area->grid->levels[z].resolution * 256e-7;
        for (int x = 0; x < area->grid->levels[z].columns; x += area->columns)
            for (int y = 0; y < area->grid->levels[z].rows; y += area->rows) {
                mc_extent box = metatile_box(area, z, x, y);
                bool meets = mc_region_relate(area->region, &box, slack, slack) != MC_REGION_OUTSIDE;
                bool within = x + area->columns > area->limits[z].minx && x < area->limits[z].maxx &&
                              y + area->rows > area->limits[z].miny && y < area->limits[z].maxy;
                bool wanted = within && meets != area->outside;
                ck_assert_int_eq(wanted, mc_seed_wanted(area, z, x, y));
                if (!wanted)
                    continue;
                ck_assert_int_lt(found, flat.count);
                int expected[3] = { z, x, y };
                ck_assert_mem_eq(flat.at[found++], expected, sizeof(expected));
            }
    }
    ck_assert_int_eq(found, flat.count);
}

START_TEST(regions_choose_metatiles_in_every_order)
{
    static const double ratios[] = { 2, 1.7, 4 };
    static const double ring[] = { 100, 100, 900, 150, 700, 500, 950, 980, 512, 600, 60, 940 };
    static const double hole[] = { 300, 300, 600, 320, 400, 512 };
    static const int sides[][2] = { { 1, 1 }, { 3, 2 } };
    static const mc_extent extents[] = { { 0, 0, 1024, 1024 }, { 200, 100, 513, 900 } };
    for (int origin = MC_BOTTOM_LEFT; origin <= MC_BOTTOM_RIGHT; origin++)
        for (size_t r = 0; r < sizeof(ratios) / sizeof(ratios[0]); r++)
            for (int way = 0; way < 8; way++) {
                mc_grid grid = square_grid(ratios[r], (mc_origin)origin);
                mc_seed_area area = { .grid = &grid,
                                      .minzoom = way & 1,
                                      .maxzoom = ratios[r] > 3 ? 3 : 6,
                                      .limits = mc_seed_limits(&grid, &extents[way >> 1 & 1], pool),
                                      .columns = sides[way & 1][0],
                                      .rows = sides[way & 1][1],
                                      .region = region_of(&grid, ring, 6, hole, 3),
                                      .outside = way >> 2 };
                check_same(&area);
                check_against_each(&area);
            }
}
END_TEST

START_TEST(a_rectangle_is_the_same_as_polygon_and_as_extent)
{
    static const mc_extent extents[] = { { 256, 128, 512, 512 }, { 0, 0, 1024, 1024 }, { 100, 7, 101, 900 } };
    for (size_t i = 0; i < sizeof(extents) / sizeof(extents[0]); i++) {
        const mc_extent *e = &extents[i];
        mc_grid grid = square_grid(2, MC_TOP_LEFT);
        const double ring[] = { e->minx, e->miny, e->maxx, e->miny, e->maxx, e->maxy, e->minx, e->maxy };
        mc_extent everything = grid.extent;
        mc_seed_area by_extent = { &grid, 0, 6, mc_seed_limits(&grid, e, pool), 1, 1, NULL, false };
        mc_seed_area by_region = { &grid, 0, 6, mc_seed_limits(&grid, &everything, pool), 1, 1, NULL, false };
        by_region.region = region_of(&grid, ring, 4, NULL, 0);
        check_same(&by_extent);
        int count = flat.count;
        static int kept[VISITS_MAX][3];
        memcpy(kept, flat.at, sizeof(kept));
        check_same(&by_region);
        ck_assert_int_eq(flat.count, count);
        ck_assert_mem_eq(flat.at, kept, sizeof(kept[0]) * (size_t)count);
    }
}
END_TEST

START_TEST(estimates_are_near_the_count)
{
    static const double ring[] = { 100, 100, 900, 150, 700, 500, 950, 980, 512, 600, 60, 940 };
    mc_grid grid = square_grid(2, MC_TOP_LEFT);
    mc_tile_range whole[LEVELS];
    for (int z = 0; z < LEVELS; z++)
        whole[z] = (mc_tile_range){ 0, 0, levels[z].columns, levels[z].rows };
    mc_region_builder *builder;
    ck_ok(mc_region_begin(&builder, &grid, 0, NULL, pool));
    ck_ok(mc_region_add(builder, MC_REGION_LINE, ring, 6, pool));
    const mc_seed_region *regions[] = { region_of(&grid, ring, 6, NULL, 0), mc_region_finish(builder) };
    for (int i = 0; i < 6; i++) {
        mc_seed_area area = { &grid, i < 3 ? 0 : 11, 11, whole, 1, 1, regions[i % 3 == 1], i % 3 == 2 };
        int64_t count = mc_seed_count(&area);
        ck_assert_int_eq(mc_seed_estimate(&area, 10000000), count);
        int64_t guessed = mc_seed_estimate(&area, 0);
        ck_assert_msg(llabs(guessed - count) <= count / 4, "%lld of %lld", (long long)guessed, (long long)count);
    }
}
END_TEST

UNIT_MAIN("walk", estimates_are_near_the_count, hilbert_steps_to_a_neighbour, regions_choose_metatiles_in_every_order,
          a_rectangle_is_the_same_as_polygon_and_as_extent, levels_go_one_after_the_other_x_inside,
          drill_down_finishes_a_branch_before_the_next, limits_are_rounded_outwards_to_metatiles,
          all_walks_visit_the_same_whatever_the_grid, a_level_without_tiles_does_not_hide_those_below,
          a_visit_ends_the_walk, extents_become_limits_from_every_origin, extents_beyond_the_grid_have_no_tiles)
