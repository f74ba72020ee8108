/* Strokes: what they cover, and that it does not depend on where the map ends. */
#include "random_numbers.h"
#include "unit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "draw/raster/bands.h"
#include "draw/raster/stroker.h"

enum { SIDE = 96 };

static void
random_line(mc_shape *shape, mc_shape_kind kind, int corners, int32_t reach, int32_t step)
{
    mc_shape_clear(shape, kind);
    mc_shape_point p = { random_whole(-reach, SIDE * MC_SUBPIXELS + reach),
                         random_whole(-reach, SIDE * MC_SUBPIXELS + reach) };
    for (int i = 0; i < corners; i++) {
        mc_shape_add(shape, p.x, p.y);
        if (next_random() % 8 != 0) /* now and then the same point again */
            p = (mc_shape_point){ p.x + random_whole(-step, step), p.y + random_whole(-step, step) };
    }
    mc_shape_end_part(shape);
}

static mc_pen
random_pen(const double *dashes)
{
    return (mc_pen){ .width = 0.5 + next_random() % 200 / 10.0,
                     .join = (mc_line_join)(next_random() % 3),
                     .cap = (mc_line_cap)(next_random() % 3),
                     .dashes = next_random() % 3 == 0 ? dashes : NULL,
                     .dash_count = 4,
                     .dash_offset = next_random() % 30,
                     .dash_unit = 1,
                     .offset = next_random() % 4 == 0 ? (double)(next_random() % 20) - 10 : 0 };
}

typedef struct planes {
    mc_area *area;
    mc_outline *outline;
} planes;

static planes
make_planes(void)
{
    planes p;
    ck_ok(mc_area_create(&p.area, SIDE, SIDE, pool));
    ck_ok(mc_outline_create(&p.outline, SIDE, SIDE, pool));
    return p;
}

/* The same by bands; false where that is not to be. */
static bool
stroke_bands(uint8_t *to, mc_outline *outline, const mc_shape *shape, const mc_pen *pen)
{
    memset(to, 0, SIDE * SIDE);
    if (!mc_bands_suit(shape, pen))
        return false;
    mc_bands_add(outline, shape, pen);
    for (int y = outline->top; y <= outline->bottom; y++) {
        int x, count;
        const uint8_t *mask = mc_outline_row(outline, y, &x, &count);
        if (count > 0)
            memcpy(to + y * SIDE + x, mask, (size_t)count);
        mc_outline_clear_row(outline, y);
    }
    mc_outline_done(outline);
    return true;
}

/* The coverage of the whole plane: `round` says by which way, where both are possible. */
static void
stroke(uint8_t *to, const planes *planes, const mc_shape *shape, const mc_pen *pen, int round)
{
    uint8_t mask[SIDE + MC_MASK_MARGIN];
    mc_area *area = planes->area;
    if (round / 3 % 2 == 0 && stroke_bands(to, planes->outline, shape, pen))
        return;
    mc_shape scratch = { 0 };
    memset(to, 0, SIDE * SIDE);
    mc_stroker_add(area, shape, pen, &scratch);
    for (int y = area->top; y <= area->bottom; y++) {
        int x, count;
        mc_area_take_row(area, y, MC_NON_ZERO, mask, &x, &count);
        if (count > 0)
            memcpy(to + y * SIDE + x, mask, (size_t)count);
    }
    mc_area_done(area);
    mc_shape_free(&scratch);
}

static void
move(mc_shape *shape, int dx, int dy)
{
    for (int i = 0; i < shape->point_count; i++) {
        shape->points[i].x += dx * MC_SUBPIXELS;
        shape->points[i].y += dy * MC_SUBPIXELS;
    }
}

START_TEST(a_plane_that_is_moved_shows_the_same)
{
    const double dashes[] = { 13, 4, 0, 4 };
    planes planes = make_planes();
    mc_shape shape = { 0 };
    static uint8_t here[SIDE * SIDE], there[SIDE * SIDE];
    for (int round = 0; round < 800; round++) {
        mc_pen pen = random_pen(dashes);
        random_line(&shape, round % 2 ? MC_SHAPE_LINES : MC_SHAPE_POLYGONS, 3 + round % 12, 30000,
                    round % 5 == 0   ? 300
                    : round % 5 == 1 ? 3
                                     : 20000);
        int dx = random_whole(-SIDE + 1, SIDE), dy = random_whole(-SIDE + 1, SIDE);
        stroke(here, &planes, &shape, &pen, round);
        move(&shape, dx, dy);
        stroke(there, &planes, &shape, &pen, round);
        for (int y = 0; y < SIDE; y++)
            for (int x = 0; x < SIDE; x++)
                if (x + dx >= 0 && x + dx < SIDE && y + dy >= 0 && y + dy < SIDE)
                    ck_assert_msg(here[y * SIDE + x] == there[(y + dy) * SIDE + x + dx],
                                  "round %d, moved by %d,%d: %d,%d is %d and %d", round, dx, dy, x, y,
                                  here[y * SIDE + x], there[(y + dy) * SIDE + x + dx]);
    }
    mc_shape_free(&shape);
}
END_TEST

typedef struct point {
    double x, y;
} point;

/* Whether p is in the triangle of a, b and c. */
static bool
in_triangle(point p, point a, point b, point c)
{
    double u = (b.x - a.x) * (p.y - a.y) - (b.y - a.y) * (p.x - a.x);
    double v = (c.x - b.x) * (p.y - b.y) - (c.y - b.y) * (p.x - b.x);
    double w = (a.x - c.x) * (p.y - c.y) - (a.y - c.y) * (p.x - c.x);
    return (u >= 0 && v >= 0 && w >= 0) || (u <= 0 && v <= 0 && w <= 0);
}

static point
at(const mc_shape *shape, int i)
{
    return (point){ shape->points[i].x / 256.0, shape->points[i].y / 256.0 };
}

static point
unit_of(point a, point b)
{
    double length = hypot(b.x - a.x, b.y - a.y);
    return (point){ (b.x - a.x) / length, (b.y - a.y) / length };
}

static bool
in_join(const mc_pen *pen, point p, point u, point corner, point v)
{
    double half = pen->width / 2, cross = u.x * v.y - u.y * v.x, dot = u.x * v.x + u.y * v.y;
    if (pen->join == MC_JOIN_ROUND)
        return hypot(p.x - corner.x, p.y - corner.y) <= half;
    double side = cross > 0 ? -half : half;
    point a = { corner.x - u.y * side, corner.y + u.x * side }, b = { corner.x - v.y * side, corner.y + v.x * side };
    if (in_triangle(p, corner, a, b))
        return true;
    double scale = side / (1 + dot);
    point tip = { corner.x - (u.y + v.y) * scale, corner.y + (u.x + v.x) * scale };
    return pen->join == MC_JOIN_MITRE && (1 + dot) / 2 * 16 > 1 && in_triangle(p, a, tip, b);
}

/* By the definition of SVG 2 (13.5), for a line without dashes. */
static bool
in_stroke(const mc_shape *line, const mc_pen *pen, point p)
{
    double half = pen->width / 2;
    int last = line->point_count - 1;
    for (int i = 0; i < last; i++) {
        point a = at(line, i), b = at(line, i + 1), u = unit_of(a, b);
        double along = (p.x - a.x) * u.x + (p.y - a.y) * u.y, beside = (p.y - a.y) * u.x - (p.x - a.x) * u.y;
        double before = i == 0 && pen->cap == MC_CAP_SQUARE ? half : 0;
        double behind = i == last - 1 && pen->cap == MC_CAP_SQUARE ? half : 0;
        if (along >= -before && along <= hypot(b.x - a.x, b.y - a.y) + behind && fabs(beside) <= half)
            return true;
        if (i > 0 && in_join(pen, p, unit_of(at(line, i - 1), a), a, u))
            return true;
    }
    return pen->cap == MC_CAP_ROUND && (hypot(p.x - at(line, 0).x, p.y - at(line, 0).y) <= half ||
                                        hypot(p.x - at(line, last).x, p.y - at(line, last).y) <= half);
}

START_TEST(strokes_cover_what_they_should)
{
    planes planes = make_planes();
    mc_shape shape = { 0 };
    static uint8_t here[SIDE * SIDE];
    int off = 0, seen = 0;
    for (int round = 0; round < 54; round++) {
        mc_pen pen = { .width = 1 + round % 7 * 3.0,
                       .join = (mc_line_join)(round % 3),
                       .cap = (mc_line_cap)(round / 6 % 3) };
        mc_shape_clear(&shape, MC_SHAPE_LINES);
        for (int i = 0; i < 5; i++) /* to the right, so that it does not cross itself */
            mc_shape_add(&shape, (12 + i * 18) * 256 + random_whole(-500, 500), random_whole(20 * 256, 76 * 256));
        mc_shape_end_part(&shape);
        stroke(here, &planes, &shape, &pen, round);
        for (int i = 0; i < SIDE * SIDE; i++) {
            int inside = 0;
            for (int k = 0; k < 64; k++)
                inside +=
                    in_stroke(&shape, &pen, (point){ i % SIDE + (k % 8 + 0.5) / 8, i / SIDE + (k / 8 + 0.5) / 8 });
            off += abs(here[i] - inside * 255 / 64) > 32;
            seen += inside > 0;
        }
    }
    ck_assert_int_gt(seen, 40000);
    ck_assert_msg(off < seen / 500, "%d of %d pixels are off", off, seen);
    mc_shape_free(&shape);
}
END_TEST

/* There and back again: as there only, and the turn. */
START_TEST(lines_that_turn_back)
{
    planes planes = make_planes();
    mc_shape shape = { 0 };
    static uint8_t here[SIDE * SIDE];
    for (int round = 0; round < 12; round++) {
        const mc_pen pen = { .width = 9, .join = (mc_line_join)(round % 3) };
        mc_shape_clear(&shape, MC_SHAPE_LINES);
        mc_shape_add(&shape, 20 * 256, 40 * 256);
        mc_shape_add(&shape, 60 * 256, 40 * 256);
        mc_shape_add(&shape, (round < 6 ? 20 : 40) * 256, 40 * 256 + (round < 9 ? 0 : 1));
        mc_shape_end_part(&shape);
        stroke(here, &planes, &shape, &pen, round);
        for (int i = 0; i < SIDE * SIDE; i++) {
            double dx = i % SIDE + 0.5 - 60, dy = i / SIDE + 0.5 - 40;
            bool turn = pen.join == MC_JOIN_ROUND && dx > 0 && hypot(dx, dy) < 4;
            bool inside = turn || (dx > -40 && dx < 0 && fabs(dy) < 4.5);
            bool outside = dx < -40 || fabs(dy) > 5 || (dx > 0 && (pen.join != MC_JOIN_ROUND || hypot(dx, dy) > 5.5));
            ck_assert_msg((!inside || here[i] > 110) && (!outside || here[i] < 20), "round %d: %g,%g is %d", round, dx,
                          dy, here[i]);
        }
    }
    mc_shape_free(&shape);
}
END_TEST

/* Whatever comes: it ends, and the sums of all rows are closed again. */
START_TEST(odd_lines_and_pens)
{
    static const double sizes[] = { 0, 1e-9, 0.01, 1, 30, 1024 };
    static const double lengths[][4] = { { 0, 0, 0, 0 },    { 1e-12, 1e-12, 1e-12, 1e-12 }, { 1e-3, 1e9, 0, 1e9 },
                                         { 0.26, 0, 0, 0 }, { 1e300, 1e300, 1, 1 },         { 5, 1e-300, 0, 3 } };
    static const int32_t far[] = { 0, 1, 300, 1 << 20, MC_SHAPE_REACH, -MC_SHAPE_REACH };
    planes planes = make_planes();
    mc_shape shape = { 0 };
    static uint8_t here[SIDE * SIDE];
    for (int round = 0; round < 1500; round++) {
        const double *dashes = lengths[next_random() % 6];
        mc_pen pen = { .width = sizes[next_random() % 6],
                       .join = (mc_line_join)(next_random() % 3),
                       .cap = (mc_line_cap)(next_random() % 3),
                       .dashes = next_random() % 2 ? dashes : NULL,
                       .dash_count = 4,
                       .dash_offset = (next_random() % 3 - 1.0) * (next_random() % 2 ? 1e9 : 7),
                       .dash_unit = next_random() % 2 ? 1 : 1e-6,
                       .offset = (next_random() % 3 - 1.0) * sizes[next_random() % 6] };
        mc_shape_clear(&shape, round % 2 ? MC_SHAPE_LINES : MC_SHAPE_POLYGONS);
        for (int i = 0; i < 2 + round % 9; i++)
            mc_shape_add(&shape, far[next_random() % 6], far[next_random() % 6]);
        mc_shape_end_part(&shape);
        stroke(here, &planes, &shape, &pen, round);
        int32_t left = 0;
        for (int i = 0; i < planes.area->stride * SIDE; i++)
            left |= planes.area->cells[i];
        for (int i = 0; i < planes.outline->stride * SIDE; i++)
            left |= planes.outline->plane[i];
        ck_assert_int_eq(left, 0);
    }
    mc_shape_free(&shape);
}
END_TEST

UNIT_MAIN("stroker", a_plane_that_is_moved_shows_the_same, strokes_cover_what_they_should, lines_that_turn_back,
          odd_lines_and_pens)
