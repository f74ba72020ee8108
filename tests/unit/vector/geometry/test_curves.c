/* Curves of WKB, and what TWKB can be off. */
#include "unit.h"

#include <math.h>
#include <string.h>

#include "vector/geometry/geometry.h"

/* A pixel is a unit; y of the map goes down from 100. */
static const mc_pixel_grid pixel_grid = { .x0 = 0, .y0 = 100, .per_x = 1, .per_y = 1 };

typedef struct writer {
    uint8_t bytes[1024];
    size_t size;
} writer;

static mc_geometry geometry;

static void
put(writer *w, const void *value, size_t size)
{
    memcpy(w->bytes + w->size, value, size);
    w->size += size;
}

static void
put_head(writer *w, uint32_t type, uint32_t count)
{
    put(w, "\1", 1);
    put(w, &type, 4);
    put(w, &count, 4);
}

static void
put_points(writer *w, const double (*points)[2], int count)
{
    put(w, points, sizeof(*points) * (size_t)count);
}

static void
read_curve(const writer *w)
{
    ck_ok(mc_wkb_read(&geometry, w->bytes, w->size, &pixel_grid, pool));
}

/* All points are on the circle, in 1/256 of pixels, and their chords no more than an eighth of a pixel inside of it. */
static void
check_circle(const mc_shape *shape, double x, double y, double radius)
{
    for (int i = 0; i < shape->point_count; i++) {
        const mc_shape_point *p = &shape->points[i];
        double px = p->x / 256.0 - x, py = 100 - p->y / 256.0 - y;
        ck_assert_double_eq_tol(hypot(px, py), radius, 0.01);
        if (i == 0)
            continue;
        double qx = shape->points[i - 1].x / 256.0 - x, qy = 100 - shape->points[i - 1].y / 256.0 - y;
        ck_assert_double_ge(hypot((px + qx) / 2, (py + qy) / 2), radius - 0.14);
    }
}

START_TEST(arcs_become_chords)
{
    static const double half[][2] = { { 0, 50 }, { 50, 100 }, { 100, 50 } };
    static const double below[][2] = { { 0, 50 }, { 50, 0 }, { 100, 50 } };
    const mc_shape *lines = &geometry.shapes[MC_SHAPE_LINES];
    for (int turn = 0; turn < 2; turn++) {
        writer w = { .size = 0 };
        put_head(&w, 8, 3);
        put_points(&w, turn == 0 ? half : below, 3);
        read_curve(&w);
        ck_assert_int_eq(lines->part_count, 1);
        ck_assert_int_gt(lines->point_count, 15);
        ck_assert_int_lt(lines->point_count, 200);
        check_circle(lines, 50, 50, 50);
        int32_t minx, miny, maxx, maxy;
        ck_assert(mc_shape_bounds(lines, &minx, &miny, &maxx, &maxy));
        ck_assert_int_eq(minx, 0);
        ck_assert_int_eq(maxx, 100 * 256);
        ck_assert_int_le(abs(turn == 0 ? miny : maxy - 100 * 256), 40);
    }
    mc_geometry_free(&geometry);
}
END_TEST

START_TEST(a_circle_ends_where_it_begins)
{
    static const double points[][2] = { { 10, 50 }, { 70, 50 }, { 10, 50 } };
    writer w = { .size = 0 };
    put_head(&w, 10, 1); /* a polygon of it */
    put_head(&w, 8, 3);
    put_points(&w, points, 3);
    read_curve(&w);
    const mc_shape *ring = &geometry.shapes[MC_SHAPE_POLYGONS];
    ck_assert_int_eq(ring->part_count, 1);
    check_circle(ring, 40, 50, 30);
    double twice = 0;
    for (int i = 0; i < ring->point_count; i++) {
        const mc_shape_point *p = &ring->points[i], *q = &ring->points[(i + 1) % ring->point_count];
        twice += (double)p->x * q->y - (double)q->x * p->y;
    }
    ck_assert_double_eq_tol(fabs(twice) / 2 / 65536, M_PI * 900, 20);
    mc_geometry_free(&geometry);
}
END_TEST

START_TEST(compound_curves_are_one_part)
{
    static const double straight[][2] = { { 0, 0 }, { 20, 0 } }, arc[][2] = { { 20, 0 }, { 40, 20 }, { 60, 0 } };
    writer w = { .size = 0 };
    put_head(&w, 9, 2);
    put_head(&w, 2, 2);
    put_points(&w, straight, 2);
    put_head(&w, 8, 3);
    put_points(&w, arc, 3);
    read_curve(&w);
    const mc_shape *lines = &geometry.shapes[MC_SHAPE_LINES];
    ck_assert_int_eq(lines->part_count, 1);
    ck_assert_int_eq(lines->points[0].x, 0);
    ck_assert_int_eq(lines->points[lines->point_count - 1].x, 60 * 256);
    mc_geometry_free(&geometry);
}
END_TEST

START_TEST(points_in_a_line_and_points_that_are_none)
{
    static const double line[][2] = { { 0, 0 }, { 10, 10 }, { 40, 40 } }, same[][2] = { { 5, 5 }, { 5, 5 }, { 5, 5 } };
    const double wild[][2] = { { 0, 0 }, { NAN, 1 }, { 2, 0 } },
                 far[][2] = { { 0, 0 }, { 1e300, 1 }, { 2e300, -1e300 } };
    const double(*const all[])[2] = { line, same, wild, far };
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        writer w = { .size = 0 };
        put_head(&w, 8, 3);
        put_points(&w, all[i], 3);
        read_curve(&w);
        ck_assert_int_eq(geometry.shapes[MC_SHAPE_LINES].part_count, i == 0 || i == 3);
        ck_assert_int_le(geometry.shapes[MC_SHAPE_LINES].point_count, 3 + 2 * 4); /* with bends far away */
    }
    mc_geometry_free(&geometry);
}
END_TEST

START_TEST(curves_that_are_none_are_refused)
{
    static const double points[][2] = { { 0, 0 }, { 1, 1 }, { 2, 0 }, { 3, 1 } };
    writer even = { .size = 0 }, strange = { .size = 0 }, deep = { .size = 0 }, whole = { .size = 0 };
    put_head(&even, 8, 4);
    put_points(&even, points, 4);
    ck_fails(CORRUPT, mc_wkb_read(&geometry, even.bytes, even.size, &pixel_grid, pool));
    put_head(&strange, 10, 1);
    put_head(&strange, 3, 0); /* a ring that is a polygon */
    ck_fails(CORRUPT, mc_wkb_read(&geometry, strange.bytes, strange.size, &pixel_grid, pool));
    for (int i = 0; i < 50; i++)
        put_head(&deep, 9, 1);
    ck_fails(CORRUPT, mc_wkb_read(&geometry, deep.bytes, deep.size, &pixel_grid, pool));
    put_head(&whole, 12, 1);
    put_head(&whole, 10, 1);
    put_head(&whole, 9, 1);
    put_head(&whole, 8, 3);
    put_points(&whole, points, 3);
    read_curve(&whole);
    for (size_t cut = 0; cut < whole.size; cut++)
        ck_fails(CORRUPT, mc_wkb_read(&geometry, whole.bytes, cut, &pixel_grid, pool));
    mc_geometry_free(&geometry);
}
END_TEST

START_TEST(digits_make_steps_of_at_most_a_tenth_of_a_pixel)
{
    for (double pixel = 1e-12; pixel < 1e12; pixel *= 1.37) {
        int digits = mc_twkb_digits(pixel);
        if (digits <= MC_TWKB_DIGITS)
            ck_assert_double_le(pow(10, -digits), pixel / 10 * (1 + 1e-9));
        else
            ck_assert_double_gt(pow(10, -MC_TWKB_DIGITS), pixel / 10 * (1 - 1e-9));
        ck_assert_int_ge(digits, -MC_TWKB_DIGITS);
    }
}
END_TEST

/* SELECT ST_AsTWKB('LINESTRING(0 0,1 NaN,3 3,5 5)', 2), and of a whole line. */
START_TEST(packed_vertices_that_are_no_numbers)
{
    static const uint8_t wild[] = { 0x42, 0x00, 0x04, 0x00, 0x00, 0xc8, 0x01, 0xff, 0xff, 0xff, 0xff,
                                    0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 0x90, 0x03, 0xa7, 0xfb, 0xff,
                                    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 0x90, 0x03, 0x90, 0x03 };
    static const uint8_t whole[] = { 0x42, 0x00, 0x02, 0x00, 0x00, 0xd0, 0x0f, 0xd0, 0x0f };
    ck_ok(mc_twkb_read(&geometry, wild, sizeof(wild), &pixel_grid, pool));
    ck_assert(mc_geometry_is_empty(&geometry));
    ck_assert_int_eq(geometry.vertex_count, 4);
    ck_ok(mc_twkb_read(&geometry, whole, sizeof(whole), &pixel_grid, pool));
    ck_assert_int_eq(geometry.shapes[MC_SHAPE_LINES].points[1].x, 10 * 256);
    mc_geometry_free(&geometry);
}
END_TEST

UNIT_MAIN("curves", arcs_become_chords, a_circle_ends_where_it_begins, compound_curves_are_one_part,
          points_in_a_line_and_points_that_are_none, curves_that_are_none_are_refused,
          digits_make_steps_of_at_most_a_tenth_of_a_pixel, packed_vertices_that_are_no_numbers)
