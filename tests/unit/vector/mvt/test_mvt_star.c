/* Rings that are told to be valid by a glance are those that cleaning, mending and ordering leave as they are. */
#include "vector/mvt/mvt_star.h"

#include <math.h>
#include <string.h>

#include "random_numbers.h"
#include "unit.h"
#include "vector/mvt/mvt_mend.h"
#include "vector/mvt/mvt_shape.h"

static mc_shape in, clean, other;

static void
begin_ring(void)
{
    mc_shape_clear(&in, MC_SHAPE_POLYGONS);
}

static void
add_ring(const int (*points)[2], int count)
{
    for (int i = 0; i < count; i++)
        mc_shape_add(&in, points[i][0], points[i][1]);
    mc_shape_end_part(&in);
}

#define RING(...)                                                                                                      \
    add_ring((const int[][2]){ __VA_ARGS__ }, (int)(sizeof((const int[][2]){ __VA_ARGS__ }) / (2 * sizeof(int))))
#define IS_STAR(...) (begin_ring(), RING(__VA_ARGS__), mc_mvt_is_star(&in))

/* Whether the long way leaves the ring as it is. */
static bool
stays_as_it_is(mc_mvt_mender *mender)
{
    mc_mvt_clean_rings(&clean, &in);
    if (mc_mvt_mend(&other, &clean, mender) != MC_MVT_SOUND ||
        mc_mvt_order_rings(&other, &clean, false, pool) != &clean)
        return false;
    return clean.part_count == 1 && clean.point_count == in.point_count &&
           memcmp(clean.points, in.points, sizeof(*in.points) * (size_t)in.point_count) == 0;
}

START_TEST(stars_are_outer_rings_seen_from_the_middle)
{
    ck_assert(IS_STAR({ 0, 0 }, { 100, 0 }, { 100, 100 }, { 0, 100 }));
    ck_assert(IS_STAR({ 0, 0 }, { 100, 10 }, { 60, 100 }));
    ck_assert(IS_STAR({ 0, 0 }, { 50, 20 }, { 100, 0 }, { 80, 50 }, { 100, 100 }, { 50, 80 }, { 0, 100 }, { 20, 50 }));
    ck_assert(IS_STAR({ -4, -9 }, { 90, 0 }, { 120, 70 }, { 70, 100 }, { 0, 90 }));
    ck_assert(IS_STAR({ 0, 0 }, { 16383, 0 }, { 16383, 16383 }, { 0, 16383 }));
    ck_assert(IS_STAR({ -100000000, 5 }, { -99990000, 5 }, { -99990000, 12000 }, { -100000000, 12000 }));
}
END_TEST

START_TEST(what_has_to_be_looked_at_is_no_star)
{
    ck_assert(!IS_STAR({ 0, 0 }, { 0, 100 }, { 100, 100 }, { 100, 0 }));             /* a hole */
    ck_assert(!IS_STAR({ 0, 0 }, { 50, 0 }, { 100, 0 }, { 100, 100 }, { 0, 100 }));  /* straight */
    ck_assert(!IS_STAR({ 50, 0 }, { 100, 0 }, { 100, 100 }, { 0, 100 }, { 0, 0 }));  /* straight at its beginning */
    ck_assert(!IS_STAR({ 0, 0 }, { 100, 0 }, { 100, 100 }, { 0, 100 }, { 0, 50 }));  /* and at its end */
    ck_assert(!IS_STAR({ 0, 0 }, { 100, 0 }, { 100, 0 }, { 100, 100 }, { 0, 100 })); /* a vertex twice */
    ck_assert(
        !IS_STAR({ 0, 0 }, { 100, 0 }, { 100, 50 }, { 50, 50 }, { 100, 100 }, { 0, 100 })); /* through the middle */
    ck_assert(!IS_STAR({ 50, 0 }, { 79, 90 }, { 2, 35 }, { 98, 35 }, { 21, 90 }));          /* twice round */
    ck_assert(!IS_STAR({ 0, 0 }, { 10, 10 }, { 10, 0 }, { 0, 10 }));                        /* a figure of eight */
    ck_assert(!IS_STAR({ 0, 0 }, { 16384, 0 }, { 16384, 16384 }, { 0, 16384 }));            /* too large */
    begin_ring();
    ck_assert(!mc_mvt_is_star(&in));
    RING({ 0, 0 }, { 100, 0 }, { 100, 100 }, { 0, 100 });
    RING({ 10, 10 }, { 10, 20 }, { 20, 20 }, { 20, 10 });
    ck_assert(!mc_mvt_is_star(&in)); /* with a hole */
}
END_TEST

/* A ring around a point, by vertices at growing angles; `disorder`: how often two of them change places, of 100. */
static void
make_random_ring(int count, int disorder)
{
    begin_ring();
    for (int i = 0; i < count; i++) {
        double turn = 2 * M_PI * i / count, far = random_between(40, 100) * (1 + count / 16.0);
        mc_shape_add(&in, 1000 + (int)lrint(far * cos(turn)), 1000 + (int)lrint(far * sin(turn)));
    }
    for (int i = 1; i < count; i++)
        if (random_whole(0, 100) < disorder) {
            mc_shape_point before = in.points[i - 1];
            in.points[i - 1] = in.points[i];
            in.points[i] = before;
        }
    mc_shape_end_part(&in);
}

START_TEST(the_long_way_leaves_stars_as_they_are)
{
    mc_mvt_mender *mender = mc_mvt_mender_create(pool);
    int stars = 0, tangled = 0;
    for (int i = 0; i < 6000; i++) {
        make_random_ring(3 + i % 70, i % 3 * 3);
        bool star = mc_mvt_is_star(&in);
        stars += star;
        tangled += !stays_as_it_is(mender);
        ck_assert_msg(!star || stays_as_it_is(mender), "ring %d with %d vertices", i, in.point_count);
    }
    ck_assert_int_gt(stars, 1000);
    ck_assert_int_gt(tangled, 1000);
}
END_TEST

START_TEST(many_vertices)
{
    begin_ring();
    for (int i = 0; i < 256; i++)
        mc_shape_add(&in, (int)lrint(6000 * cos(M_PI * i / 128)), (int)lrint(6000 * sin(M_PI * i / 128)));
    mc_shape_end_part(&in);
    ck_assert(mc_mvt_is_star(&in));
    mc_shape_clear(&in, MC_SHAPE_POLYGONS);
    for (int i = 0; i < 257; i++)
        mc_shape_add(&in, (int)lrint(6000 * cos(M_PI * i / 128.5)), (int)lrint(6000 * sin(M_PI * i / 128.5)));
    mc_shape_end_part(&in);
    ck_assert(!mc_mvt_is_star(&in)); /* of so many the long way is not much longer */
}
END_TEST

UNIT_MAIN("mvt_star", stars_are_outer_rings_seen_from_the_middle, what_has_to_be_looked_at_is_no_star,
          the_long_way_leaves_stars_as_they_are, many_vertices)
