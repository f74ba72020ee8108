/* Where graphics stand: the parts of a geometry as points. */
#include "vector/geometry/places.h"

#include "unit.h"

static mc_geometry geometry;
static mc_shape places;

/* A geometry of one ring or line, and its places of one part. */
static void
find(mc_shape_kind kind, mc_geometry_part part, const mc_shape_point *points, int count)
{
    mc_geometry_clear(&geometry);
    for (int i = 0; i < count; i++)
        mc_shape_add(&geometry.shapes[kind], points[i].x, points[i].y);
    if (kind == MC_SHAPE_POLYGONS)
        mc_shape_end_ring(&geometry.shapes[kind], false);
    else
        mc_shape_end_part(&geometry.shapes[kind]);
    mc_places_find(&places, &geometry, part);
}

START_TEST(an_area_has_its_centroid_or_a_point_inside)
{
    /* A U: its centroid lies between its legs. */
    static const mc_shape_point u[] = { { 0, 0 },    { 300, 0 }, { 300, 300 }, { 260, 300 },
                                        { 260, 40 }, { 40, 40 }, { 40, 300 },  { 0, 300 } };
    find(MC_SHAPE_POLYGONS, MC_PART_CENTROID, u, 8);
    ck_assert_int_eq(places.point_count, 1);
    ck_assert_int_eq(places.points[0].x, 150);
    ck_assert_int_gt(places.points[0].y, 40);
    find(MC_SHAPE_POLYGONS, MC_PART_INSIDE, u, 8);
    ck_assert_int_eq(places.point_count, 1);
    ck_assert(places.points[0].x <= 40 || places.points[0].x >= 260);
}
END_TEST

START_TEST(a_line_has_its_middle_and_its_ends)
{
    static const mc_shape_point line[] = { { 0, 0 }, { 100, 0 }, { 100, 300 } };
    find(MC_SHAPE_LINES, MC_PART_MIDDLE, line, 3);
    ck_assert_int_eq(places.point_count, 1);
    ck_assert_int_eq(places.points[0].x, 100);
    ck_assert_int_eq(places.points[0].y, 100);
    find(MC_SHAPE_LINES, MC_PART_END, line, 3);
    ck_assert_int_eq(places.points[0].y, 300);
    find(MC_SHAPE_LINES, MC_PART_VERTICES, line, 3);
    ck_assert_int_eq(places.point_count, 3);
}
END_TEST

/* The two halves of an eight cancel out but for a little, and the centroid divides by that little. */
START_TEST(the_centroid_of_a_ring_that_crosses_itself_stays_within_reach)
{
    enum { FAR = MC_SHAPE_REACH };
    static const mc_shape_point eight[] = { { FAR, -FAR }, { FAR, FAR }, { -FAR, -FAR }, { -FAR, FAR - 3 } };
    for (int turned = 0; turned < 2; turned++) {
        mc_shape_point ring[4];
        for (int i = 0; i < 4; i++)
            ring[i] = turned ? (mc_shape_point){ eight[i].y, eight[i].x } : eight[i];
        for (int part = MC_PART_CENTROID; part <= MC_PART_INSIDE; part++) {
            find(MC_SHAPE_POLYGONS, (mc_geometry_part)part, ring, 4);
            ck_assert_int_eq(places.point_count, 1);
            ck_assert_int_le(abs(places.points[0].x), FAR);
            ck_assert_int_le(abs(places.points[0].y), FAR);
        }
    }
}
END_TEST

UNIT_MAIN("places", an_area_has_its_centroid_or_a_point_inside, a_line_has_its_middle_and_its_ends,
          the_centroid_of_a_ring_that_crosses_itself_stays_within_reach)
