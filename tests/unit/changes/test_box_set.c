/* Boxes that have changed: a bounded number of them covers all that were added. */
#include "changes/box_set.h"

#include <float.h>
#include <math.h>

#include "unit.h"

static bool
covers(const mc_box_set *set, const mc_extent *box)
{
    for (int i = 0; i < set->count; i++)
        if (set->boxes[i].minx <= box->minx && set->boxes[i].miny <= box->miny && set->boxes[i].maxx >= box->maxx &&
            set->boxes[i].maxy >= box->maxy)
            return true;
    return set->whole;
}

START_TEST(few_boxes_stay_as_they_are)
{
    mc_box_set *set = mc_box_set_create(pool);
    for (int i = 0; i < 1000; i++) {
        const mc_extent box = { i, -i, i + 0.5, -i + 0.25 };
        mc_box_set_add(set, &box);
        mc_box_set_add(set, &box);
    }
    ck_assert_int_eq(set->count, 1000);
    ck_assert(!set->whole);
}
END_TEST

START_TEST(many_boxes_are_joined_with_their_neighbours)
{
    enum { BOXES = 200000 };
    static mc_extent boxes[BOXES];
    mc_box_set *set = mc_box_set_create(pool);
    double area = 0;
    for (int i = 0; i < BOXES; i++) {
        double x = fmod(i * 0.61803398875, 1) * 360 - 180, y = fmod(i * 0.7548776662, 1) * 180 - 90;
        boxes[i] = (mc_extent){ x, y, x + 0.01, y + 0.01 };
        mc_box_set_add(set, &boxes[i]);
    }
    ck_assert_int_le(set->count, MC_BOX_SET_MAX);
    ck_assert(!set->whole);
    for (int i = 0; i < BOXES; i += 97)
        ck_assert(covers(set, &boxes[i]));
    for (int i = 0; i < set->count; i++)
        area += (set->boxes[i].maxx - set->boxes[i].minx) * (set->boxes[i].maxy - set->boxes[i].miny);
    ck_assert_double_le(area, 1.2 * 360 * 180); /* neighbours, not anybody */
}
END_TEST

START_TEST(boxes_of_all_sizes_and_places_come_to_an_end)
{
    mc_box_set *set = mc_box_set_create(pool);
    mc_extent last = { 0, 0, 0, 0 };
    for (int i = 0; i < 100000; i++) {
        double size = ldexp(1, i % 98 - 49), x = (i % 2 == 0 ? -1 : 1) * size,
               y = (i % 3 == 0 ? -1 : 1) * size * i / 1e5;
        last = (mc_extent){ fmin(x, x / 2), fmin(y, y / 3), fmax(x, x / 2), fmax(y, y / 3) };
        mc_box_set_add(set, &last);
    }
    ck_assert_int_le(set->count, MC_BOX_SET_MAX);
    ck_assert(!set->whole && covers(set, &last));
}
END_TEST

START_TEST(what_is_no_place_is_everything)
{
    const mc_extent odd[] = { { NAN, 0, 1, 1 },       { 0, NAN, 1, 1 },      { 0, 0, NAN, 1 }, { 0, 0, 1, NAN },
                              { -INFINITY, 0, 1, 1 }, { 0, 0, 1, 1e16 },     { 2, 0, 1, 1 },   { 0, 2, 1, 1 },
                              { 0, 0, DBL_MAX, 1 },   { NAN, NAN, NAN, NAN } };
    for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
        mc_box_set *set = mc_box_set_create(pool);
        mc_box_set_add(set, &odd[i]);
        ck_assert_msg(set->whole, "%d", (int)i);
    }
    const mc_extent point = { 3, 4, 3, 4 };
    mc_box_set *set = mc_box_set_create(pool);
    mc_box_set_add(set, &point);
    ck_assert(!set->whole && set->count == 1);
}
END_TEST

UNIT_MAIN("box_set", few_boxes_stay_as_they_are, many_boxes_are_joined_with_their_neighbours,
          boxes_of_all_sizes_and_places_come_to_an_end, what_is_no_place_is_everything)
