#include "unit.h"

#include <math.h>
#include <string.h>

#include "vector/geometry/geometry.h"

static const mc_pixel_grid pixel_grid = { .x0 = 0, .y0 = 100, .per_x = 1, .per_y = 1 };

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
            ck_ok(mc_wkb_read(&geometry, w.bytes, w.size, &pixel_grid, pool));
            const mc_shape *shape = &geometry.shapes[MC_SHAPE_POLYGONS];
            ck_assert_int_eq(shape->part_count, 1);
            ck_assert_int_eq(shape->point_count, 4);
            ck_assert_int_eq(geometry.srid, (forms[f].type & 0x20000000U) != 0 ? 21781 : 0);
            int32_t minx, miny, maxx, maxy;
            ck_assert(mc_geometry_bounds(&geometry, &minx, &miny, &maxx, &maxy));
            ck_assert_int_eq(minx, 2560);
            ck_assert_int_eq(maxy, 90 * 256);
            for (size_t cut = 0; cut < w.size; cut++) /* every beginning of it is refused */
                ck_fails(CORRUPT, mc_wkb_read(&geometry, w.bytes, cut, &pixel_grid, pool));
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
    ck_ok(mc_wkb_read(&geometry, w.bytes, w.size, &pixel_grid, pool));
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
    ck_fails(CORRUPT, mc_wkb_read(&geometry, w.bytes, w.size, &pixel_grid, pool));
    w.size = 0;
    for (int i = 0; i < 300; i++) {
        put_head(&w, 7);
        put_word(&w, 1);
    }
    ck_fails(CORRUPT, mc_wkb_read(&geometry, w.bytes, w.size, &pixel_grid, pool));
    w.size = 0;
    put_head(&w, 13);
    put_word(&w, 0);
    ck_fails(NOT_BUILT, mc_wkb_read(&geometry, w.bytes, w.size, &pixel_grid, pool));
    ck_fails(CORRUPT, mc_wkb_read(&geometry, "\x07\x01\0\0\0", 5, &pixel_grid, pool));
    w.size = 0;
    put_head(&w, 3);
    put_word(&w, 0); /* POLYGON EMPTY */
    ck_ok(mc_wkb_read(&geometry, w.bytes, w.size, &pixel_grid, pool));
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

static void
ck_bounds(const writer *w, mc_extent expected)
{
    mc_extent bounds;
    ck_assert(mc_wkb_bounds(&bounds, w->bytes, w->size) && !mc_wkb_bounds(&bounds, w->bytes, w->size - 1));
    ck_assert(bounds.minx == expected.minx && bounds.miny == expected.miny && bounds.maxx == expected.maxx &&
              bounds.maxy == expected.maxy);
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
        ck_bounds(&w, (mc_extent){ 10, 10, 20, 20 });
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
    ck_bounds(&w, (mc_extent){ 3, 4, 30, 40 });
    w.size = 0;
    put_head(&w, 1);
    put_double(&w, NAN);
    put_double(&w, NAN);
    ck_assert(!measured(&w, (mc_extent){ -1e300, -1e300, 1e300, 1e300 }));
    mc_extent none;
    ck_assert(!mc_wkb_bounds(&none, w.bytes, w.size));
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
    mc_extent none;
    for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); t++) {
        writer w = { .size = 0 };
        put_head(&w, types[t]);
        put_word(&w, 0);
        ck_assert_uint_eq(mc_wkb_measure(&meets, w.bytes, sizeof(w.bytes), &box), 0);
        ck_assert(!mc_wkb_bounds(&none, w.bytes, sizeof(w.bytes)));
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

/* ---- Far away ---- */

static double
random_between(unsigned *state, double low, double high)
{
    *state = *state * 1664525U + 1013904223U;
    return low + (high - low) * ((*state >> 8) / 16777216.0);
}

/* The distance of a point from a line, in 1/256 pixel. */
static double
distance_from(const mc_shape *line, double x, double y)
{
    double least = HUGE_VAL;
    for (int i = 1; i < line->point_count; i++) {
        mc_shape_point a = line->points[i - 1], b = line->points[i];
        double dx = (double)b.x - a.x, dy = (double)b.y - a.y, square = dx * dx + dy * dy;
        double t = square > 0 ? fmin(1, fmax(0, ((x - a.x) * dx + (y - a.y) * dy) / square)) : 0;
        least = fmin(least, hypot(x - a.x - t * dx, y - a.y - t * dy));
    }
    return least;
}

/* Vertices by themselves or as bytes, both of which have ways of their own. */
static void
add_all(mc_shape *shape, const mc_pixel_grid *at, const double (*xy)[2], int count, bool together)
{
    mc_shape_clear(shape, shape->kind);
    if (together)
        ck_assert(mc_shape_add_vertices(shape, at, (const uint8_t *)xy, sizeof(*xy), (size_t)count, false));
    for (int i = 0; i < count && !together; i++)
        ck_assert(mc_shape_add_vertex(shape, at, xy[i][0], xy[i][1]));
}

START_TEST(far_ends_do_not_move_a_line)
{
    unsigned state = 7;
    mc_shape line = { .kind = MC_SHAPE_LINES };
    for (int i = 0; i < 400; i++) {
        const mc_pixel_grid at = { .per_x = 1, .per_y = 1, .left = i * 1111, .top = -i * 77, .thinning = i % 2 * 64 };
        double far = pow(10, random_between(&state, 4, 11)), angle = random_between(&state, 0, 7);
        double x = (double)at.left + 100, y = -(double)at.top - 100, part = random_between(&state, 0.2, 5);
        const double xy[3][2] = { { x - far * cos(angle), y - far * sin(angle) },
                                  { x + far * part * cos(angle), y + far * part * sin(angle) },
                                  { x + random_between(&state, -far, far), y + far } };
        add_all(&line, &at, xy, 3, i % 4 < 2);
        mc_shape_end_part(&line);
        ck_assert_msg(distance_from(&line, 25600, 25600) <= 1.5, "%d: %g", i, distance_from(&line, 25600, 25600));
        for (int p = 0; p < line.point_count; p++)
            ck_assert(abs(line.points[p].x) <= MC_SHAPE_REACH && abs(line.points[p].y) <= MC_SHAPE_REACH);
    }
    mc_shape_free(&line);
}
END_TEST

/* How often a ring runs around a point, given as differences of its vertices. */
static int
winding(const double (*ring)[2], int count, double x, double y)
{
    int times = 0;
    for (int i = 0; i < count; i++) {
        const double *a = ring[i], *b = ring[(i + 1) % count];
        double side = (b[0] - a[0]) * (y - a[1]) - (x - a[0]) * (b[1] - a[1]);
        if (a[1] <= y && b[1] > y)
            times += side > 0;
        else if (a[1] > y && b[1] <= y)
            times -= side < 0;
    }
    return times;
}

START_TEST(far_corners_do_not_move_an_area)
{
    enum { CORNERS = 7 };
    unsigned state = 11;
    int inside = 0;
    mc_shape ring = { .kind = MC_SHAPE_POLYGONS };
    const mc_pixel_grid at = { .per_x = 1, .per_y = 1, .left = 5000, .top = 300000 };
    for (int i = 0; i < 400; i++) {
        double far = pow(10, random_between(&state, 4, 9)), xy[CORNERS + 1][2], made[64][2], pixels[CORNERS][2];
        for (int c = 0; c < CORNERS; c++) {
            pixels[c][0] = rint(random_between(&state, -far, far));
            pixels[c][1] = rint(random_between(&state, -far, far));
            xy[c][0] = (double)at.left + pixels[c][0];
            xy[c][1] = -(double)at.top - pixels[c][1];
        }
        memcpy(xy[CORNERS], xy[0], sizeof(xy[0]));
        add_all(&ring, &at, (const double(*)[2])xy, CORNERS + 1, i % 2 == 0);
        ck_assert_int_le(ring.point_count, 64);
        for (int p = 0; p < ring.point_count; p++) {
            made[p][0] = ring.points[p].x;
            made[p][1] = ring.points[p].y;
        }
        for (int k = 0; k < 20; k++) {
            double x = rint(random_between(&state, 0, 1000)) + 0.3, y = rint(random_between(&state, 0, 1000)) + 0.3;
            int wanted = winding((const double(*)[2])pixels, CORNERS, x, y);
            ck_assert_int_eq(winding((const double(*)[2])made, ring.point_count, x * 256, y * 256), wanted);
            inside += wanted != 0;
        }
    }
    ck_assert_int_gt(inside, 1000);
    mc_shape_free(&ring);
}
END_TEST

/* To the last bit, in tiles side by side. */
START_TEST(far_ends_are_the_same_in_every_tile)
{
    unsigned state = 3;
    mc_shape one = { .kind = MC_SHAPE_LINES }, other = { .kind = MC_SHAPE_LINES };
    for (int i = 0; i < 200; i++) {
        double xy[6][2];
        for (int p = 0; p < 6; p++)
            for (int axis = 0; axis < 2; axis++)
                xy[p][axis] = random_between(&state, -3e6, 3e6);
        const mc_pixel_grid here = { .per_x = 1, .per_y = 1, .left = 300000, .top = -20000, .thinning = 64 };
        mc_pixel_grid beside = here;
        beside.left += 256;
        beside.top -= 512;
        add_all(&one, &here, (const double(*)[2])xy, 6, i % 2 == 0);
        add_all(&other, &beside, (const double(*)[2])xy, 6, i % 2 == 0);
        mc_shape_end_part(&one);
        mc_shape_end_part(&other);
        ck_assert_int_eq(one.point_count, other.point_count);
        for (int p = 0; p < one.point_count; p++)
            ck_assert(one.points[p].x == other.points[p].x + 65536 && one.points[p].y == other.points[p].y - 131072);
    }
    mc_shape_free(&one);
    mc_shape_free(&other);
}
END_TEST

UNIT_MAIN("geometry", polygons_of_all_forms, collections_fill_all_kinds, lies_and_depths_are_refused,
          ends_and_bounds_are_found, several_and_none_are_measured, what_is_nothing_plain_is_not_measured,
          far_ends_do_not_move_a_line, far_corners_do_not_move_an_area, far_ends_are_the_same_in_every_tile)
