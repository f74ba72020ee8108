/* Rings that touch or cross become those of valid polygons of the same area. */
#include "vector/mvt/mvt_mend.h"

#include <math.h>
#include <string.h>

#include "unit.h"
#include "vector/mvt/mvt_edges.h"
#include "vector/mvt/mvt_shape.h"

static mc_shape in, out;
static mc_mvt_mender *mender;

static void
begin(void)
{
    mc_shape_clear(&in, MC_SHAPE_POLYGONS);
    mc_shape_clear(&out, MC_SHAPE_POLYGONS);
    mender = mc_mvt_mender_create(pool);
}

static void
ring(const int (*points)[2], int count)
{
    for (int i = 0; i < count; i++)
        mc_shape_add(&in, points[i][0], points[i][1]);
    mc_shape_end_part(&in);
}

#define RING(...)                                                                                                      \
    ring((const int[][2]){ __VA_ARGS__ }, (int)(sizeof((const int[][2]){ __VA_ARGS__ }) / (2 * sizeof(int))))

/* Twice the area of one part, or of all. */
static int64_t
area_of(const mc_shape *shape, int only)
{
    int64_t twice = 0;
    for (int part = 0; part < shape->part_count; part++) {
        int first = mc_shape_part_begin(shape, part), end = shape->ends[part];
        for (int i = first; (only < 0 || only == part) && i < end; i++) {
            mc_shape_point p = shape->points[i], next = shape->points[i + 1 < end ? i + 1 : first];
            twice += (int64_t)p.x * next.y - (int64_t)next.x * p.y;
        }
    }
    return twice;
}

static int
count_outer(void)
{
    int outer = 0;
    for (int part = 0; part < out.part_count; part++)
        outer += area_of(&out, part) > 0;
    return outer;
}

static void
ck_mended(int parts, int outer, int64_t twice)
{
    ck_assert_int_eq(mc_mvt_mend(&out, &in, mender), MC_MVT_MENDED);
    ck_assert_int_eq(out.part_count, parts);
    ck_assert_int_eq(count_outer(), outer);
    ck_assert_int_eq(area_of(&out, -1), twice);
}

START_TEST(sound_rings_stay)
{
    begin();
    RING({ 0, 0 }, { 100, 0 }, { 100, 100 }, { 0, 100 });
    ck_assert_int_eq(mc_mvt_mend(&out, &in, mender), MC_MVT_SOUND);
    RING({ 10, 10 }, { 10, 20 }, { 20, 20 }, { 20, 10 });
    RING({ 200, 0 }, { 300, 0 }, { 300, 100 });
    ck_assert_int_eq(mc_mvt_mend(&out, &in, mender), MC_MVT_SOUND);
    RING({ 12, 12 }, { 14, 12 }, { 14, 14 }, { 12, 14 }); /* an island in the hole */
    ck_assert_int_eq(mc_mvt_mend(&out, &in, mender), MC_MVT_SOUND);
}
END_TEST

START_TEST(rings_that_cross_are_parted)
{
    begin(); /* a figure of eight */
    RING({ 0, 0 }, { 10, 10 }, { 10, 0 }, { 0, 10 });
    ck_mended(2, 2, 100);
    begin(); /* its other lobe is the larger one: both are inside */
    RING({ 0, 0 }, { 30, 30 }, { 30, 0 }, { 0, 30 }, { -10, 15 });
    ck_assert_int_eq(mc_mvt_mend(&out, &in, mender), MC_MVT_MENDED);
    ck_assert_int_eq(count_outer(), 2);
    begin(); /* a hole that sticks out of its polygon: what the rings run around the wrong way is inside, too */
    RING({ 0, 0 }, { 100, 0 }, { 100, 100 }, { 0, 100 });
    RING({ 90, 40 }, { 90, 60 }, { 110, 60 }, { 110, 40 });
    ck_assert_int_eq(mc_mvt_mend(&out, &in, mender), MC_MVT_MENDED);
    ck_assert_int_eq(area_of(&out, -1), 2 * (10000 - 200 + 200));
    begin(); /* a pinch: two squares in one ring */
    RING({ 0, 0 }, { 10, 0 }, { 10, 10 }, { 20, 10 }, { 20, 20 }, { 10, 20 }, { 10, 10 }, { 0, 10 });
    ck_mended(2, 2, 400);
}
END_TEST

START_TEST(rings_that_touch_or_lie_in_each_other)
{
    begin(); /* a hole that touches its outer ring in one point is right */
    RING({ 0, 0 }, { 100, 0 }, { 100, 100 }, { 0, 100 });
    RING({ 0, 50 }, { 10, 60 }, { 10, 40 });
    ck_mended(2, 1, 20000 - 200);
    begin(); /* a hole that touches in two points parts the polygon */
    RING({ 0, 0 }, { 100, 0 }, { 100, 100 }, { 0, 100 });
    RING({ 0, 50 }, { 50, 60 }, { 100, 50 }, { 50, 40 });
    ck_mended(2, 2, 20000 - 2000);
    begin(); /* two squares with a side in common */
    RING({ 0, 0 }, { 10, 0 }, { 10, 10 }, { 0, 10 });
    RING({ 10, 0 }, { 20, 0 }, { 20, 10 }, { 10, 10 });
    ck_mended(1, 1, 400);
    begin(); /* an outer ring in an outer ring */
    RING({ 0, 0 }, { 100, 0 }, { 100, 100 }, { 0, 100 });
    RING({ 10, 10 }, { 20, 10 }, { 20, 20 }, { 10, 20 });
    ck_mended(1, 1, 20000);
    begin(); /* a way there and back between two squares: nothing is inside of it */
    RING({ 0, 0 }, { 10, 0 }, { 10, 5 }, { 20, 5 }, { 20, 0 }, { 30, 0 }, { 30, 10 }, { 20, 10 }, { 20, 5 }, { 10, 5 },
         { 10, 10 }, { 0, 10 });
    ck_mended(2, 2, 400);
}
END_TEST

static int
number_below(unsigned *state, int limit)
{
    *state = *state * 1664525U + 1013904223U;
    return (int)((*state >> 8) % (unsigned)limit);
}

/* No two edges meet but at their ends, and no vertex of a ring comes twice. */
static void
ck_apart(const mc_shape *shape)
{
    mc_mvt_edges edges = { 0 };
    ck_assert(mc_mvt_edges_take(&edges, shape));
    ck_assert(mc_mvt_edges_meet(&edges));
    ck_assert_int_eq(edges.count, edges.own);
    mc_mvt_edges_free(&edges);
    for (int part = 0; part < shape->part_count; part++)
        for (int i = mc_shape_part_begin(shape, part); i < shape->ends[part]; i++)
            for (int j = i + 1; j < shape->ends[part]; j++)
                ck_assert(!mc_shape_same_point(shape->points[i], shape->points[j]));
}

START_TEST(zigzags_are_mended_once_and_for_all)
{
    unsigned state = 7;
    int mended = 0;
    for (int round = 0; round < 400; round++) {
        begin();
        mc_shape raw = { 0 }, clean = { 0 };
        mc_shape_clear(&raw, MC_SHAPE_POLYGONS);
        for (int part = 0, size = 4 << number_below(&state, 9); part <= number_below(&state, 3); part++) {
            for (int i = 0, count = 3 + number_below(&state, 40); i < count; i++)
                mc_shape_add(&raw, number_below(&state, size), number_below(&state, size));
            mc_shape_end_ring(&raw, part > 0);
        }
        mc_mvt_clean_rings(&in, &raw);
        mc_mvt_mending how = mc_mvt_mend(&out, &in, mender);
        ck_assert_int_ne(how, MC_MVT_BEYOND);
        mended += how == MC_MVT_MENDED;
        ck_apart(how == MC_MVT_MENDED ? &out : &in);
        if (how == MC_MVT_MENDED) {
            mc_mvt_clean_rings(&clean, &out);
            ck_assert_int_eq(area_of(&clean, -1), area_of(&out, -1));
            mc_shape again = { 0 };
            how = mc_mvt_mend(&again, &clean, mender);
            ck_assert_int_ne(how, MC_MVT_BEYOND);
            ck_assert_int_eq(area_of(how == MC_MVT_MENDED ? &again : &clean, -1), area_of(&out, -1));
            mc_shape_free(&again);
        }
        mc_shape_free(&raw);
        mc_shape_free(&clean);
    }
    ck_assert_int_gt(mended, 300);
}
END_TEST

START_TEST(what_would_take_for_ever_is_left_out)
{
    enum { TEETH = 30000 };
    begin(); /* long edges that all cross each other */
    unsigned state = 3;
    for (int i = 0; i < TEETH; i++)
        mc_shape_add(&in, i % 2 == 0 ? number_below(&state, 100) : 4000 + number_below(&state, 100),
                     number_below(&state, 4096));
    mc_shape_end_part(&in);
    ck_assert_int_eq(mc_mvt_mend(&out, &in, mender), MC_MVT_BEYOND);
}
END_TEST

/* Each spike crosses almost all others: what is kept of the crossings is bounded, too. */
START_TEST(a_star_that_crosses_itself_everywhere_is_left_out)
{
    enum { SPIKES = 6001 };
    begin();
    for (int i = 0; i < SPIKES; i++) {
        double angle = 2 * M_PI * (i * (SPIKES / 2) % SPIKES) / SPIKES;
        mc_shape_add(&in, (int)lrint(100000 + 100000 * cos(angle)), (int)lrint(100000 + 100000 * sin(angle)));
    }
    mc_shape_end_part(&in);
    ck_assert_int_eq(mc_mvt_mend(&out, &in, mender), MC_MVT_BEYOND);
    ck_assert_int_gt(mc_mvt_mender_take_work(mender), 100000);
    ck_assert_int_eq(mc_mvt_mender_take_work(mender), 0);
}
END_TEST

UNIT_MAIN("mend", sound_rings_stay, rings_that_cross_are_parted, rings_that_touch_or_lie_in_each_other,
          zigzags_are_mended_once_and_for_all, what_would_take_for_ever_is_left_out,
          a_star_that_crosses_itself_everywhere_is_left_out)
