#include "unit.h"

#include <math.h>
#include <string.h>

#include "seed/region.h"

static mc_level levels[] = { { 4, 1, 1 }, { 2, 2, 2 }, { 0.001, 4096, 4096 } };

static mc_grid
plain_grid(void)
{
    return (mc_grid){ .name = "plain",
                      .srs = "EPSG:3857",
                      .extent = { 0, 0, 1024, 1024 },
                      .tile_width = 256,
                      .tile_height = 256,
                      .level_count = 3,
                      .levels = levels };
}

static mc_region_builder *
begin(const char *srs)
{
    static mc_grid grid;
    grid = plain_grid();
    grid.aliases = apr_array_make(pool, 1, sizeof(const char *));
    mc_region_builder *builder;
    ck_ok(mc_region_begin(&builder, &grid, grid.level_count - 1, srs, pool));
    return builder;
}

static uint64_t state = 1;

/* 0 <= x < 1 */
static double
chance(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (double)(state >> 11) / 9007199254740992.0;
}

/* ---- the same by hand: a box and an edge by clipping, a point by crossings */

static bool
meets(const double *a, const double *b, const mc_extent *box)
{
    double from = 0, to = 1, d[2] = { b[0] - a[0], b[1] - a[1] };
    double low[2] = { box->minx, box->miny }, high[2] = { box->maxx, box->maxy };
    for (int axis = 0; axis < 2; axis++) {
        if (d[axis] == 0) {
            if (a[axis] < low[axis] || a[axis] > high[axis])
                return false;
            continue;
        }
        double t0 = (low[axis] - a[axis]) / d[axis], t1 = (high[axis] - a[axis]) / d[axis];
        from = fmax(from, fmin(t0, t1));
        to = fmin(to, fmax(t0, t1));
    }
    return from <= to;
}

static bool
holds_point(const double *ring, size_t count, double x, double y)
{
    bool in = false;
    for (size_t i = 0; i < count; i++) {
        const double *a = &ring[2 * i], *b = &ring[2 * ((i + 1) % count)];
        if ((a[1] > y) != (b[1] > y) && x < a[0] + (y - a[1]) / (b[1] - a[1]) * (b[0] - a[0]))
            in = !in;
    }
    return in;
}

/* A star-shaped ring with teeth. */
static void
make_ring(double *ring, size_t count, double x, double y, double radius, bool clockwise)
{
    for (size_t i = 0; i < count; i++) {
        double angle = 2 * 3.14159265358979 * (double)(clockwise ? count - i : i) / (double)count;
        double r = radius * (0.6 + 0.4 * chance());
        ring[2 * i] = x + r * cos(angle);
        ring[2 * i + 1] = y + r * sin(angle);
    }
}

static mc_region_relation
expected(const double *rings[3], const size_t counts[3], const mc_extent *box)
{
    for (int r = 0; r < 3; r++)
        for (size_t i = 0; i < counts[r]; i++)
            if (meets(&rings[r][2 * i], &rings[r][2 * ((i + 1) % counts[r])], box))
                return MC_REGION_CROSSED;
    double x = (box->minx + box->maxx) / 2, y = (box->miny + box->maxy) / 2;
    bool in = (holds_point(rings[0], counts[0], x, y) && !holds_point(rings[1], counts[1], x, y)) ||
              holds_point(rings[2], counts[2], x, y);
    return in ? MC_REGION_INSIDE : MC_REGION_OUTSIDE;
}

/* An area with a hole, and another one that overlaps both. */
START_TEST(boxes_of_all_sizes_are_told_apart)
{
    static double outer[2 * 3000], hole[2 * 500], other[2 * 50];
    const double *rings[3] = { outer, hole, other };
    static const size_t counts[3] = { 3000, 500, 50 };
    int seen[3] = { 0 };
    make_ring(outer, 3000, 500, 500, 450, false);
    make_ring(hole, 500, 450, 550, 150, false);
    make_ring(other, 50, 380, 500, 120, true);
    mc_region_builder *builder = begin(NULL);
    ck_ok(mc_region_add(builder, MC_REGION_RING, outer, 3000, pool));
    ck_ok(mc_region_add(builder, MC_REGION_HOLE, hole, 500, pool));
    ck_ok(mc_region_add(builder, MC_REGION_RING, other, 50, pool));
    mc_seed_region *region = mc_region_finish(builder);
    for (int i = 0; i < 20000; i++) {
        double side = pow(10, -3 + 5.5 * chance()), x = 1024 * chance(), y = 1024 * chance();
        mc_extent box = { x, y, x + side, y + side * (0.2 + chance()) };
        mc_region_relation found = mc_region_relate(region, &box, 0, 0);
        ck_assert_int_eq(found, expected(rings, counts, &box));
        seen[found]++;
    }
    for (int i = 0; i < 3; i++)
        ck_assert_int_gt(seen[i], 200);
}
END_TEST

START_TEST(points_on_lines_do_not_confuse_it)
{
    /* All vertices and centres of boxes lie on a lattice of quarters: rays meet vertices and run along edges. */
    static const double ring[] = { 0, 0, 8, 0, 8, 8, 6, 8, 6, 2, 4, 4, 2, 2, 2, 8, 0, 8, 0, 0 };
    mc_region_builder *builder = begin(NULL);
    ck_ok(mc_region_add(builder, MC_REGION_RING, ring, 10, pool));
    mc_seed_region *region = mc_region_finish(builder);
    for (int x = -4; x < 40; x++)
        for (int y = -4; y < 40; y++) {
            mc_extent box = { x * 0.25, y * 0.25, x * 0.25 + 0.25, y * 0.25 + 0.25 };
            mc_region_relation found = mc_region_relate(region, &box, 0.001, 0.001);
            double cx = box.minx + 0.125, cy = box.miny + 0.125;
            bool diagonal = cy >= 2 && cy <= 4 && fabs(fabs(cx - 4) - fabs(4 - cy)) < 0.2;
            if (diagonal)
                continue;
            ck_assert_int_eq(found, holds_point(ring, 9, cx, cy) ? MC_REGION_INSIDE : MC_REGION_OUTSIDE);
        }
}
END_TEST

START_TEST(lines_and_points_count_where_they_touch)
{
    static const double line[] = { 0, 10, 20, 10 }, point[] = { 40, 40 };
    mc_region_builder *builder = begin(NULL);
    ck_ok(mc_region_add(builder, MC_REGION_LINE, line, 2, pool));
    ck_ok(mc_region_add(builder, MC_REGION_POINT, point, 1, pool));
    mc_seed_region *region = mc_region_finish(builder);
    static const mc_extent above = { 5, 10, 15, 15 }, below = { 5, 5, 15, 10 }, apart = { 5, 11, 15, 15 };
    static const mc_extent at = { 40, 40, 41, 41 }, beside = { 41, 40, 42, 41 };
    ck_assert_int_eq(mc_region_relate(region, &above, 0.1, 0.1), MC_REGION_CROSSED);
    ck_assert_int_eq(mc_region_relate(region, &below, 0.1, 0.1), MC_REGION_CROSSED);
    ck_assert_int_eq(mc_region_relate(region, &apart, 0.1, 0.1), MC_REGION_OUTSIDE);
    ck_assert_int_eq(mc_region_relate(region, &at, 0.1, 0.1), MC_REGION_CROSSED);
    ck_assert_int_eq(mc_region_relate(region, &beside, 0.1, 0.1), MC_REGION_OUTSIDE);
}
END_TEST

/* In the CRS of the file a line is straight: the image of a parallel that is not a vertex is one, too. */
START_TEST(coordinates_are_transformed_and_lines_stay_where_they_are)
{
    static const double ring[] = { 0, 0, 0.009, 0, 0.009, 0.009, 0, 0.009 };
    mc_region_builder *builder = begin("EPSG:4326");
    ck_ok(mc_region_add(builder, MC_REGION_RING, ring, 4, pool));
    mc_seed_region *region = mc_region_finish(builder);
    mc_extent bounds = mc_region_bounds(region);
    ck_assert_double_eq_tol(bounds.maxx, 0.009 * 6378137 * 3.14159265358979323846 / 180, 1e-6);
    ck_assert_double_eq_tol(bounds.miny, 0, 1e-6);
    static const mc_extent within = { 10, 10, 990, 990 };
    ck_assert_int_eq(mc_region_relate(region, &within, 0, 0), MC_REGION_INSIDE);
}
END_TEST

/* A country's grid of two levels. */
static mc_grid
swiss(const mc_level *levels)
{
    return (mc_grid){ .name = "lv95",
                      .srs = "EPSG:2056",
                      .aliases = apr_array_make(pool, 1, sizeof(const char *)),
                      .extent = { 2420000, 1030000, 2900000, 1350000 },
                      .tile_width = 256,
                      .tile_height = 256,
                      .level_count = 2,
                      .levels = levels };
}

/* The whole world cannot be transformed into such a grid, what is near it can. */
START_TEST(what_lies_far_outside_is_cut_off)
{
    static mc_level far[] = { { 1000, 2, 2 }, { 10, 200, 200 } };
    const mc_grid grid = swiss(far);
    static const double world[] = { -180, -90, 180, -90, 180, 90, -180, 90 };
    static const double equator[] = { -180, 0, 180, 0 }, meridian[] = { 8, -80, 8, 80 };
    mc_region_builder *builder;
    ck_ok(mc_region_begin(&builder, &grid, grid.level_count - 1, "EPSG:4326", pool));
    ck_ok(mc_region_add(builder, MC_REGION_RING, world, 4, pool));
    mc_seed_region *region = mc_region_finish(builder);
    ck_assert_int_eq(mc_region_relate(region, &grid.extent, 0, 0), MC_REGION_INSIDE);
    ck_ok(mc_region_begin(&builder, &grid, grid.level_count - 1, "EPSG:4326", pool));
    ck_ok(mc_region_add(builder, MC_REGION_LINE, equator, 2, pool));
    ck_assert_ptr_null(mc_region_finish(builder));
    ck_ok(mc_region_begin(&builder, &grid, grid.level_count - 1, "EPSG:4326", pool));
    ck_ok(mc_region_add(builder, MC_REGION_LINE, meridian, 2, pool));
    region = mc_region_finish(builder);
    ck_assert_int_eq(mc_region_relate(region, &grid.extent, 0, 0), MC_REGION_CROSSED);
    /* The meridian bends: its chords stay within half a pixel, which their number shows. */
    ck_assert_uint_gt(mc_region_size(region), 2);
}
END_TEST

/* A short text must not become a region of millions of lines. */
START_TEST(lines_bend_into_a_bounded_number_of_pieces)
{
    static const mc_level far[] = { { 100, 4800, 3200 }, { 1e-9, INT32_MAX, INT32_MAX } };
    const mc_grid grid = swiss(far);
    mc_region_builder *builder;
    mc_error *error = MC_OK;
    double line[2 * 200];
    for (int i = 0; i < 200; i++)
        line[2 * i] = i % 2 == 0 ? 6 : 10, line[2 * i + 1] = 46 + i * 0.01;
    ck_ok(mc_region_begin(&builder, &grid, 1, "EPSG:4326", pool));
    error = mc_region_add(builder, MC_REGION_LINE, line, 200, pool);
    ck_fails(LIMIT, error);
    ck_ok(mc_region_begin(&builder, &grid, 1, "EPSG:4326", pool));
    ck_ok(mc_region_add(builder, MC_REGION_LINE, line, 20, pool));
}
END_TEST

START_TEST(what_is_no_number_is_refused)
{
    const double bad[] = { 0, 0, NAN, 1, 1, 1 }, far[] = { 0, 0, 1e300, 1, 1, 1 };
    mc_region_builder *builder = begin(NULL);
    ck_fails(CORRUPT, mc_region_add(builder, MC_REGION_RING, bad, 3, pool));
    ck_fails(CORRUPT, mc_region_add(builder, MC_REGION_RING, far, 3, pool));
    ck_assert_ptr_null(mc_region_finish(builder));
}
END_TEST

/* Thousands of equal edges must not make a tree of thousands of copies. */
START_TEST(edges_that_lie_over_each_other_stay_together)
{
    mc_region_builder *builder = begin(NULL);
    for (int i = 0; i < 5000; i++) {
        const double ring[] = { 0, 0, 1000, 1e-9 * i, 500, 700 };
        ck_ok(mc_region_add(builder, MC_REGION_RING, ring, 3, pool));
    }
    mc_seed_region *region = mc_region_finish(builder);
    static const mc_extent within = { 480, 100, 520, 200 }, outside = { 0, 600, 100, 700 };
    ck_assert_int_eq(mc_region_relate(region, &within, 0, 0), MC_REGION_INSIDE);
    ck_assert_int_eq(mc_region_relate(region, &outside, 0, 0), MC_REGION_OUTSIDE);
}
END_TEST

UNIT_MAIN("seed_region", boxes_of_all_sizes_are_told_apart, points_on_lines_do_not_confuse_it,
          lines_and_points_count_where_they_touch, coordinates_are_transformed_and_lines_stay_where_they_are,
          what_lies_far_outside_is_cut_off, lines_bend_into_a_bounded_number_of_pieces, what_is_no_number_is_refused,
          edges_that_lie_over_each_other_stay_together)
