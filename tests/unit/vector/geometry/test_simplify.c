/* Simplifying by vectors gives what simplifying without them gives. */
#include "vector/geometry/simplify.h"

#include <string.h>

#include "unit.h"

#undef __SSE4_2__
#define mc_shape_simplify simplify_without_vectors
void simplify_without_vectors(mc_shape *out, const mc_shape *in, double tolerance);
#include "vector/geometry/simplify.c"
#undef mc_shape_simplify

static uint64_t state = 88172645463325252U;

static int
number_from_to(int least, int most)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return least + (int)((state >> 24) % ((uint64_t)most - (uint64_t)least + 1));
}

/* Anywhere; steps in any direction; or a curve. */
static void
add_any_part(mc_shape *shape, int reach, int way)
{
    int x = 0, y = 0, right = 0, down = 0;
    for (int i = 0, count = number_from_to(3, 40); i < count; i++) {
        right = way == 2 ? right + number_from_to(-1, 1) : number_from_to(-3, 3);
        down = way == 2 ? down + number_from_to(-1, 1) : number_from_to(-3, 3);
        x = way == 0 ? number_from_to(-reach, reach) : x + right;
        y = way == 0 ? number_from_to(-reach, reach) : y + down;
        mc_shape_add(shape, x, y);
    }
    mc_shape_end_part(shape);
}

START_TEST(vectors_change_nothing)
{
    static const double tolerances[] = { 0, 0.25, 0.5, 1, 1.3, 2, 4, 8, 20, 256, 300.5 };
    mc_shape in = { 0 }, simple = { 0 }, expected = { 0 };
    int64_t all = 0, kept = 0;
    for (int round = 0; round < 20000; round++) {
        double tolerance = tolerances[number_from_to(0, 10)];
        mc_shape_clear(&in, round % 2 == 0 ? MC_SHAPE_LINES : MC_SHAPE_POLYGONS);
        for (int part = 0, parts = number_from_to(1, 3), reach = MC_SHAPE_REACH >> number_from_to(0, 27); part < parts;
             part++)
            add_any_part(&in, reach, number_from_to(0, 2));
        mc_shape_simplify(&simple, &in, tolerance);
        simplify_without_vectors(&expected, &in, tolerance);
        ck_assert_int_eq(simple.part_count, expected.part_count);
        ck_assert_int_eq(simple.point_count, expected.point_count);
        ck_assert_int_eq(memcmp(simple.points, expected.points, sizeof(*simple.points) * (size_t)simple.point_count),
                         0);
        ck_assert_int_eq(memcmp(simple.ends, expected.ends, sizeof(*simple.ends) * (size_t)simple.part_count), 0);
        all += in.point_count;
        kept += simple.point_count;
    }
    ck_assert_int_gt(kept, all / 10);
    ck_assert_int_lt(kept, all - all / 10);
    mc_shape_free(&in);
    mc_shape_free(&simple);
    mc_shape_free(&expected);
}
END_TEST

UNIT_MAIN("simplify", vectors_change_nothing)
