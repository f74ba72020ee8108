#include "unit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "feature/geometry.h"
#include "feature/hit.h"

static const mc_lattice lattice = { .x0 = 0, .y0 = 100, .per_x = 1, .per_y = 1 };

/* Bytes that grow, of either order. */
typedef struct writer {
    uint8_t bytes[4096];
    size_t size;
    bool big;
} writer;

static void
put(writer *w, const void *value, size_t size, bool big)
{
    for (size_t i = 0; i < size; i++)
        w->bytes[w->size++] = ((const uint8_t *)value)[big ? size - 1 - i : i];
}

static void
put_byte(writer *w, uint8_t value)
{
    put(w, &value, 1, false);
}

static void
put_word(writer *w, uint32_t value)
{
    put(w, &value, 4, w->big);
}

static void
put_double(writer *w, double value)
{
    put(w, &value, 8, w->big);
}

static void
put_head(writer *w, uint32_t type)
{
    put_byte(w, w->big ? 0 : 1);
    put_word(w, type);
}

static const double square[5][2] = { { 10, 10 }, { 20, 10 }, { 20, 20 }, { 10, 20 }, { 10, 10 } };

static void
put_square(writer *w, int values)
{
    put_word(w, 5);
    for (int i = 0; i < 5; i++) {
        put_double(w, square[i][0]);
        put_double(w, square[i][1]);
        for (int v = 2; v < values; v++)
            put_double(w, 7);
    }
}

static mc_geometry geometry;

START_TEST(polygons_of_all_forms)
{
    static const struct {
        uint32_t type;
        int values;
    } forms[] = { { 3, 2 },           { 1003, 3 },        { 2003, 3 },        { 3003, 4 },
                  { 0x80000003U, 3 }, { 0xC0000003U, 4 }, { 0x20000003U, 2 }, { 17, 2 } };
    for (size_t f = 0; f < sizeof(forms) / sizeof(forms[0]); f++)
        for (int big = 0; big < 2; big++) {
            writer w = { .big = big };
            put_head(&w, forms[f].type);
            if ((forms[f].type & 0x20000000U) != 0)
                put_word(&w, 21781);
            put_word(&w, 1);
            put_square(&w, forms[f].values);
            ck_ok(mc_wkb_read(&geometry, w.bytes, w.size, &lattice, pool));
            const mc_shape *shape = &geometry.shapes[MC_SHAPE_POLYGONS];
            ck_assert_int_eq(shape->part_count, 1);
            ck_assert_int_eq(shape->point_count, 4);
            ck_assert_int_eq(geometry.srid, (forms[f].type & 0x20000000U) != 0 ? 21781 : 0);
            int32_t minx, miny, maxx, maxy;
            ck_assert(mc_geometry_bounds(&geometry, &minx, &miny, &maxx, &maxy));
            ck_assert_int_eq(minx, 2560);
            ck_assert_int_eq(maxy, 90 * 256);
            for (size_t cut = 0; cut < w.size; cut++) /* every beginning of it is refused */
                ck_fails(CORRUPT, mc_wkb_read(&geometry, w.bytes, cut, &lattice, pool));
        }
    mc_geometry_free(&geometry);
}
END_TEST

START_TEST(collections_fill_all_kinds)
{
    writer w = { .size = 0 };
    put_head(&w, 7);
    put_word(&w, 4);
    put_head(&w, 1);
    put_double(&w, 3);
    put_double(&w, 4);
    put_head(&w, 5);
    put_word(&w, 1);
    put_head(&w, 2);
    put_square(&w, 2);
    put_head(&w, 3);
    put_word(&w, 2);
    put_square(&w, 2);
    put_square(&w, 2);
    put_head(&w, 1);
    put_double(&w, NAN);
    put_double(&w, NAN); /* an empty point */
    ck_ok(mc_wkb_read(&geometry, w.bytes, w.size, &lattice, pool));
    ck_assert_int_eq(geometry.shapes[MC_SHAPE_POINTS].part_count, 1);
    ck_assert_int_eq(geometry.shapes[MC_SHAPE_LINES].part_count, 1);
    ck_assert_int_eq(geometry.shapes[MC_SHAPE_LINES].point_count, 5);
    ck_assert_int_eq(geometry.shapes[MC_SHAPE_POLYGONS].part_count, 2);
    mc_geometry_free(&geometry);
}
END_TEST

START_TEST(lies_and_depths_are_refused)
{
    writer w = { .size = 0 };
    put_head(&w, 2);
    put_word(&w, 0xFFFFFFFFU);
    ck_fails(CORRUPT, mc_wkb_read(&geometry, w.bytes, w.size, &lattice, pool));
    w.size = 0;
    for (int i = 0; i < 300; i++) {
        put_head(&w, 7);
        put_word(&w, 1);
    }
    ck_fails(CORRUPT, mc_wkb_read(&geometry, w.bytes, w.size, &lattice, pool));
    w.size = 0;
    put_head(&w, 13);
    put_word(&w, 0);
    ck_fails(NOT_BUILT, mc_wkb_read(&geometry, w.bytes, w.size, &lattice, pool));
    ck_fails(CORRUPT, mc_wkb_read(&geometry, "\x07\x01\0\0\0", 5, &lattice, pool));
    w.size = 0;
    put_head(&w, 3);
    put_word(&w, 0); /* POLYGON EMPTY */
    ck_ok(mc_wkb_read(&geometry, w.bytes, w.size, &lattice, pool));
    ck_assert(mc_geometry_is_empty(&geometry));
    mc_geometry_free(&geometry);
}
END_TEST

/* Whether it ends where it does, and meets the box. */
static bool
measured(const writer *w, mc_extent box)
{
    bool meets;
    ck_assert_uint_eq(mc_wkb_measure(&meets, w->bytes, sizeof(w->bytes), &box), w->size);
    for (size_t cut = 0; cut < w->size; cut++) {
        bool any;
        ck_assert_uint_eq(mc_wkb_measure(&any, w->bytes, cut, &box), 0);
    }
    return meets;
}

START_TEST(ends_and_bounds_are_found)
{
    static const uint32_t types[] = { 3, 1003, 0x80000003U, 3003, 0xC0000003U, 0x20000003U };
    for (size_t t = 0; t < 2 * sizeof(types) / sizeof(types[0]); t++) {
        uint32_t type = types[t / 2];
        writer w = { .big = t % 2 == 1 };
        put_head(&w, type);
        if ((type & 0x20000000U) != 0)
            put_word(&w, 21781);
        put_word(&w, 2);
        for (int i = 0; i < 2; i++)
            put_square(&w, type == 3003 || type == 0xC0000003U ? 4 : type == 3 || type == 0x20000003U ? 2 : 3);
        ck_assert(measured(&w, (mc_extent){ 0, 0, 10, 10 }));
        ck_assert(measured(&w, (mc_extent){ 14, 14, 15, 15 })); /* inside of it */
        ck_assert(!measured(&w, (mc_extent){ 0, 0, 9.9, 100 }));
        ck_assert(!measured(&w, (mc_extent){ 0, 20.1, 100, 100 }));
    }
}
END_TEST

START_TEST(several_and_none_are_measured)
{
    writer w = { .size = 0 };
    put_head(&w, 4);
    put_word(&w, 2);
    put_head(&w, 1);
    put_double(&w, 3);
    put_double(&w, 4);
    put_head(&w, 1);
    put_double(&w, 30);
    put_double(&w, 40);
    ck_assert(measured(&w, (mc_extent){ 29, 39, 31, 41 }));
    ck_assert(!measured(&w, (mc_extent){ 31, 0, 32, 50 }));
    w.size = 0;
    put_head(&w, 1);
    put_double(&w, NAN);
    put_double(&w, NAN);
    ck_assert(!measured(&w, (mc_extent){ -1e300, -1e300, 1e300, 1e300 }));
    w.size = 0;
    put_head(&w, 5);
    put_word(&w, 0);
    ck_assert(!measured(&w, (mc_extent){ -1e300, -1e300, 1e300, 1e300 }));
}
END_TEST

START_TEST(what_is_nothing_plain_is_not_measured)
{
    const mc_extent box = { 0, 0, 1, 1 };
    static const uint32_t types[] = { 0, 7, 8, 9, 10, 11, 12, 15, 16, 17 };
    bool meets;
    for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); t++) {
        writer w = { .size = 0 };
        put_head(&w, types[t]);
        put_word(&w, 0);
        ck_assert_uint_eq(mc_wkb_measure(&meets, w.bytes, sizeof(w.bytes), &box), 0);
    }
    writer w = { .size = 0 };
    put_head(&w, 4);
    put_word(&w, 0xFFFFFFFFU);
    ck_assert_uint_eq(mc_wkb_measure(&meets, w.bytes, sizeof(w.bytes), &box), 0);
    w.size = 0;
    put_head(&w, 2);
    put_word(&w, 0xFFFFFFFFU);
    ck_assert_uint_eq(mc_wkb_measure(&meets, w.bytes, sizeof(w.bytes), &box), 0);
    ck_assert_uint_eq(mc_wkb_measure(&meets, "\x07\x01\0\0\0", 5, &box), 0);
}
END_TEST

/* Where the line of a geometry is at x = 0, in pixels. */
static double
height_in_the_middle(const mc_shape *line)
{
    for (int i = 1; i < line->point_count; i++) {
        mc_shape_point a = line->points[i - 1], b = line->points[i];
        if ((a.x <= 0) != (b.x <= 0) && a.x != b.x)
            return (a.y + (double)(b.y - (double)a.y) * (0 - (double)a.x) / ((double)b.x - a.x)) / MC_SUBPIXELS;
    }
    return NAN;
}

/* Ends that are farther away than shapes reach do not turn the edge between them. */
START_TEST(long_edges_keep_their_direction)
{
    static const double ends[][2] = { { 3e5, 7e5 }, { 3e6, 7e6 }, { 3e9, 7e9 }, { 3e12, 3e12 }, { 6e5, 1e3 } };
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
        for (int thinning = 0; thinning <= MC_SUBPIXELS; thinning += MC_SUBPIXELS / 4) {
            mc_lattice fine = lattice;
            writer w = { .size = 0 };
            fine.thinning = thinning;
            put_head(&w, 2);
            put_word(&w, 3);
            put_double(&w, -ends[i][0]); /* through (0, 50) */
            put_double(&w, 50 - ends[i][0] / 3);
            put_double(&w, ends[i][1]);
            put_double(&w, 50 + ends[i][1] / 3);
            put_double(&w, -ends[i][0]);
            put_double(&w, 50 - ends[i][0] / 3);
            ck_ok(mc_wkb_read(&geometry, w.bytes, w.size, &fine, pool));
            const mc_shape *line = &geometry.shapes[MC_SHAPE_LINES];
            ck_assert_double_eq_tol(height_in_the_middle(line), 50, 1);
            for (int k = 0; k < line->point_count; k++)
                ck_assert(abs(line->points[k].x) <= MC_SHAPE_REACH && abs(line->points[k].y) <= MC_SHAPE_REACH);
        }
}
END_TEST

/* An area around everything, whose edges are all beyond reach, and one that lies elsewhere. */
START_TEST(areas_beyond_reach_are_still_around_the_map)
{
    static const double corners[5][2] = { { -1, -1 }, { 1, -1 }, { 1, 1 }, { -1, 1 }, { -1, -1 } };
    for (int far = 0; far < 2; far++) {
        writer w = { .size = 0 };
        put_head(&w, 3);
        put_word(&w, 1);
        put_word(&w, 5);
        for (int i = 0; i < 5; i++) {
            put_double(&w, corners[i][0] * 1e7 + (far ? 1e8 : 0));
            put_double(&w, corners[i][1] * 1e7);
        }
        ck_ok(mc_wkb_read(&geometry, w.bytes, w.size, &lattice, pool));
        const mc_shape *area = &geometry.shapes[MC_SHAPE_POLYGONS];
        ck_assert(mc_shape_covers(area, (mc_shape_point){ 0, 0 }) == !far);
    }
}
END_TEST

UNIT_MAIN("geometry", long_edges_keep_their_direction, areas_beyond_reach_are_still_around_the_map,
          polygons_of_all_forms, collections_fill_all_kinds, lies_and_depths_are_refused, ends_and_bounds_are_found,
          several_and_none_are_measured, what_is_nothing_plain_is_not_measured)
