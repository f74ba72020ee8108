/* Marks by name, and those that are characters of fonts. */
#include "unit.h"

#include <math.h>
#include <pthread.h>

#include "draw/symbol/mark.h"

static const mc_mark *
outline_of(const mc_mark *mark)
{
    const mc_mark *outline;
    ck_assert_ptr_nonnull(mark);
    ck_ok(mc_mark_outline(&outline, mark, pool));
    return outline;
}

typedef struct box {
    double left, top, right, bottom;
} box;

static box
box_of(const mc_mark *mark)
{
    box all = { INFINITY, INFINITY, -INFINITY, -INFINITY };
    for (int i = 0; i < mark->ends[mark->part_count - 1]; i++) {
        all.left = fmin(all.left, mark->points[2 * i]);
        all.right = fmax(all.right, mark->points[2 * i]);
        all.top = fmin(all.top, mark->points[2 * i + 1]);
        all.bottom = fmax(all.bottom, mark->points[2 * i + 1]);
    }
    return all;
}

/* GeoServer's geometries: y upwards, the height is the size, the origin the middle. */
START_TEST(geometries_in_text)
{
    const mc_mark *line = mc_mark_find("wkt://LINESTRING(0 0, 4 -2)", true, pool);
    box a = box_of(outline_of(line));
    ck_assert(line->open);
    ck_assert_double_eq_tol(a.right, 2, 1e-9);
    ck_assert_double_eq_tol(a.bottom, 1, 1e-9);
    ck_assert_double_eq_tol(line->reach, hypot(2, 1), 1e-9);
    const mc_mark *area = mc_mark_find(
        "WKT://MultiPolygon(((0 0 7, 1 0 7,0 1 7,0 0 7),(.1 .1,.2 .1,.1 .2)),((-1 0,0 0,-1 1)))", true, pool);
    ck_assert_int_eq(outline_of(area)->part_count, 3);
    ck_assert(!area->open);
    const mc_mark *flat = mc_mark_find("wkt://MULTILINESTRING((-1 0,-.5 0),(.5 0,1 0))", true, pool);
    ck_assert_int_eq(outline_of(flat)->part_count, 2);
    ck_assert_double_eq_tol(box_of(flat).right, 0.5, 1e-9);
    box arc = box_of(outline_of(mc_mark_find("wkt://CIRCULARSTRING(0 0, 1 1, 2 0)", true, pool)));
    ck_assert_double_eq_tol(arc.top, -1, 0.01);
    ck_assert_double_eq_tol(arc.right, 2, 0.01);
    const mc_mark *round =
        mc_mark_find("wkt://CURVEPOLYGON(COMPOUNDCURVE(CIRCULARSTRING(-1 0,0 1,1 0),(1 0,-1 0)))", true, pool);
    ck_assert_int_eq(outline_of(round)->part_count, 1);
    ck_assert(!round->open);
    box whole = box_of(outline_of(mc_mark_find("wkt://CIRCULARSTRING(-1 0, 1 0, -1 0)", true, pool)));
    ck_assert_double_eq_tol(whole.bottom, 0.5, 0.01);
    static const char *const bad[] = {
        "wkt://",
        "wkt://POINT(0 0)",
        "wkt://LINESTRING",
        "wkt://LINESTRING()",
        "wkt://LINESTRING(1 1)",
        "wkt://LINESTRING(0 0, 1)",
        "wkt://LINESTRING(0 0, 1 1",
        "wkt://LINESTRING(0 0, 1 1))",
        "wkt://LINESTRING(0 0, 1e300 1)",
        "wkt://LINESTRING(0 0, nan 1)",
        "wkt://LINESTRING(100 0, 100 1)",
        "wkt://POLYGON((((((((((0 0,1 1,1 0))))))))))",
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        ck_assert_msg(mc_mark_find(bad[i], true, pool) == NULL, "%s", bad[i]);
}
END_TEST

START_TEST(names_in_any_case)
{
    static const char *const known[][2] = { { "Circle", "circle" },
                                            { "SQUARE", "square" },
                                            { "Shape://Dot", "shape://dot" },
                                            { "TTF://DejaVu Sans#0x41", "DejaVu Sans#0x41" } };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        const mc_mark *mark = mc_mark_find(known[i][0], true, pool);
        ck_assert_ptr_nonnull(mark);
        ck_assert_str_eq(mark->name, known[i][1]);
    }
}
END_TEST

START_TEST(names)
{
    static const char *const good[] = { "ttf://DejaVu Sans#0x41", "ttf://DejaVu%20Sans#U+41",
                                        "ttf://DejaVu Sans#\\u0041", "ttf://DejaVu Sans#65", "ttf://DejaVu Sans##41" };
    static const char *const bad[] = {
        "ttf://",          "ttf://#0x41",   "ttf://A#",     "ttf://A#0x",       "ttf://A#0x0",
        "ttf://A#x41",     "ttf://A#0x41 ", "ttf://A#-5",   "ttf://A#0x110000", "ttf://A#99999999999999",
        "ttf://../A#0x41", "ttf:/A#0x41",   "font://A#0x41"
    };
    const mc_mark *first = outline_of(mc_mark_find(good[0], true, pool));
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        const mc_mark *outline = outline_of(mc_mark_find(good[i], true, pool));
        ck_assert_int_eq(outline->part_count, first->part_count);
        ck_assert_double_eq(outline->points[3], first->points[3]);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        ck_assert_msg(mc_mark_find(bad[i], true, pool) == NULL, "%s", bad[i]);
    ck_assert_ptr_null(mc_mark_of_character("ttf://DejaVu Sans", "", pool));
    ck_assert_ptr_null(mc_mark_of_character("a.svg", "65", pool));
}
END_TEST

/* An A is higher than wide, a dash is wider than high: the larger side is 1, the middle of both is at 0. */
START_TEST(the_larger_side_is_the_size)
{
    const mc_mark *letter = outline_of(mc_mark_find("ttf://DejaVu Sans#0x41", true, pool));
    box a = box_of(letter), dash = box_of(outline_of(mc_mark_find("ttf://DejaVu Sans#0x2014", true, pool)));
    ck_assert_int_eq(letter->part_count, 2);
    ck_assert(letter->by_direction && !letter->open);
    ck_assert_double_eq_tol(a.bottom - a.top, 1, 1e-6);
    ck_assert_double_eq_tol(a.bottom, 0.5, 1e-6);
    ck_assert_double_eq_tol(a.left, -a.right, 1e-6);
    ck_assert_double_lt(a.right, 0.5);
    ck_assert_double_eq_tol(dash.right - dash.left, 1, 1e-6);
    ck_assert_double_lt(dash.bottom, 0.1);
}
END_TEST

/* As QGIS draws it: 0.73 of the em are the height of a capital, above the middle of the ascent. */
START_TEST(the_em_is_the_size)
{
    box a = box_of(outline_of(mc_mark_of_character("ttf://DejaVu Sans", "65", pool)));
    ck_assert_double_eq_tol(a.bottom - a.top, 0.73, 0.01);
    ck_assert_double_eq_tol(a.left, -a.right, 0.01);
    ck_assert_double_eq_tol(a.bottom, 0.46, 0.01);
}
END_TEST

START_TEST(what_is_not_there_is_said_once)
{
    static const char *const names[] = { "ttf://No Such Font#0x41", "ttf://DejaVu Sans#0x10FFFF" };
    for (int i = 0; i < 2; i++) {
        const mc_mark *mark = mc_mark_find(names[i], true, pool), *outline;
        mc_error *error = mc_mark_outline(&outline, mark, pool);
        ck_assert_ptr_nonnull(error);
        ck_assert_int_eq(error->kind, MC_ERR_NOT_FOUND);
        ck_assert_int_eq(outline->part_count, 0);
        ck_assert_int_eq(outline_of(mark)->part_count, 0);
    }
    ck_assert_int_eq(outline_of(mc_mark_find("ttf://DejaVu Sans#0x20", true, pool))->part_count, 0);
}
END_TEST

static void *
look_up(void *data)
{
    const mc_mark *outline;
    apr_pool_t *own;
    apr_pool_create(&own, NULL);
    mc_error_ignore(mc_mark_outline(&outline, data, own));
    apr_pool_destroy(own);
    return (void *)(uintptr_t)outline;
}

START_TEST(threads_share_an_outline)
{
    enum { THREADS = 8 };
    for (int round = 0; round < 20; round++) {
        pthread_t threads[THREADS];
        const mc_mark *mark = mc_mark_find(round % 2 == 0 ? "ttf://DejaVu Sans#0x263A" : "ttf://None#0x41", true, pool);
        void *seen[THREADS];
        for (int i = 0; i < THREADS; i++)
            ck_assert_int_eq(pthread_create(&threads[i], NULL, look_up, (void *)(uintptr_t)mark), 0);
        for (int i = 0; i < THREADS; i++)
            pthread_join(threads[i], &seen[i]);
        for (int i = 1; i < THREADS; i++)
            ck_assert_ptr_eq(seen[i], seen[0]);
    }
}
END_TEST

/* As QGIS 3.22 draws them: its left half of a triangle stands to the right. */
START_TEST(halves_stand_where_qgis_has_them)
{
    box left = box_of(mc_mark_find("left_half_triangle", true, pool));
    box right = box_of(mc_mark_find("right_half_triangle", true, pool));
    ck_assert_double_eq(left.left, 0);
    ck_assert_double_eq(left.right, 0.5);
    ck_assert_double_eq(right.left, -0.5);
    ck_assert_double_eq(right.right, 0);
    box half = box_of(mc_mark_find("half_square", true, pool));
    ck_assert_double_eq(half.left, -0.5);
    ck_assert_double_eq(half.right, 0);
}
END_TEST

UNIT_MAIN("marks", names, geometries_in_text, names_in_any_case, the_larger_side_is_the_size, the_em_is_the_size,
          what_is_not_there_is_said_once, threads_share_an_outline, halves_stand_where_qgis_has_them)
