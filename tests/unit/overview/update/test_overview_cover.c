/* What covers changed boxes: everything near them, nothing far away, and few boxes however many changes there are. */
#include "overview/update/overview_cover.h"

#include <math.h>

#include "unit.h"

#define BOX(x_, y_, width_, height_)                                                                                   \
    &(mc_extent)                                                                                                       \
    {                                                                                                                  \
        x_, y_, (x_) + (width_), (y_) + (height_)                                                                      \
    }

static mc_box_set *boxes;
static apr_array_header_t *cover;

static bool
is_covered(double x, double y)
{
    int within = 0;
    for (int i = 0; i < cover->nelts; i++) {
        const mc_extent *box = &APR_ARRAY_IDX(cover, i, mc_extent);
        within += x >= box->minx && x <= box->maxx && y >= box->miny && y <= box->maxy;
    }
    return within > 0;
}

static double
area_of_cover(void)
{
    double area = 0;
    for (int i = 0; i < cover->nelts; i++) {
        const mc_extent *box = &APR_ARRAY_IDX(cover, i, mc_extent);
        area += (box->maxx - box->minx) * (box->maxy - box->miny);
    }
    return area;
}

START_TEST(all_within_reach_is_covered_and_little_more)
{
    boxes = mc_box_set_create(pool);
    mc_box_set_add(boxes, BOX(2600000, 1200000, 0, 0));
    mc_box_set_add(boxes, BOX(2650000, 1100000, 700, 30));
    cover = mc_overview_cover(boxes, 100, pool);
    for (double x = -100; x <= 100; x += 10)
        for (double y = -100; y <= 100; y += 10) {
            ck_assert(is_covered(2600000 + x, 1200000 + y));
            ck_assert(is_covered(2650350 + x * 4.5, 1100015 + y * 1.15));
        }
    ck_assert(!is_covered(2600000 + 160, 1200000));
    ck_assert(!is_covered(2600000, 1200000 - 160));
    ck_assert(!is_covered(2625000, 1150000));
}
END_TEST

START_TEST(boxes_that_lie_over_each_other_are_covered_once)
{
    boxes = mc_box_set_create(pool);
    for (int i = 0; i < 2000; i++)
        mc_box_set_add(boxes, BOX(i % 50 * 3.0, i / 50 * 3.0, 1, 1));
    cover = mc_overview_cover(boxes, 100, pool);
    ck_assert_int_lt(cover->nelts, 12);
    ck_assert_double_lt(area_of_cover(), 500.0 * 500.0);
    ck_assert(is_covered(75, 75) && is_covered(-100, -100) && is_covered(248, 218));
}
END_TEST

START_TEST(a_lattice_is_never_too_fine)
{
    boxes = mc_box_set_create(pool);
    mc_box_set_add(boxes, BOX(-9e14, -9e14, 1, 1)); /* far from each other */
    mc_box_set_add(boxes, BOX(0, 0, 1e9, 1e9));     /* and large against the reach */
    cover = mc_overview_cover(boxes, 1e-3, pool);
    ck_assert_int_lt(cover->nelts, 1 << 17);
    ck_assert(is_covered(-9e14, -9e14) && is_covered(0, 0) && is_covered(1e9, 1e9));
    ck_assert(!is_covered(-4e14, -4e14));
}
END_TEST

UNIT_MAIN("overview_cover", all_within_reach_is_covered_and_little_more,
          boxes_that_lie_over_each_other_are_covered_once, a_lattice_is_never_too_fine)
