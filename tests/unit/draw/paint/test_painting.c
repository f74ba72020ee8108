#include "random_numbers.h"
#include "unit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "draw/raster/brush.h"

enum { SIDE = 96 };

static const mc_color red = { 255, 0, 0, 255 };

/* Rings with random corners, some of them far outside. */
static void
random_polygon(mc_shape *shape, int rings, int corners, int32_t reach)
{
    mc_shape_clear(shape, MC_SHAPE_POLYGONS);
    for (int r = 0; r < rings; r++) {
        for (int i = 0; i < corners; i++)
            mc_shape_add(shape, random_whole(-reach, SIDE * MC_SUBPIXELS + reach),
                         random_whole(-reach, SIDE * MC_SUBPIXELS + reach));
        mc_shape_end_part(shape);
    }
}

static bool
is_inside(const mc_shape *shape, double x, double y, mc_fill_rule rule)
{
    int winding = 0, crossings = 0, begin = 0;
    for (int part = 0; part < shape->part_count; part++) {
        int end = shape->ends[part];
        mc_shape_point a = shape->points[end - 1];
        for (int i = begin; i < end; i++) {
            mc_shape_point b = shape->points[i];
            if ((a.y <= y) != (b.y <= y) && a.x + (y - a.y) * (b.x - a.x) / (double)(b.y - a.y) > x) {
                crossings++;
                winding += a.y <= y ? 1 : -1;
            }
            a = b;
        }
        begin = end;
    }
    return rule == MC_NON_ZERO ? winding != 0 : crossings % 2 == 1;
}

/* Area by 16 x 16 samples. */
static double
sampled(const mc_shape *shape, int x, int y, mc_fill_rule rule)
{
    int inside = 0;
    for (int j = 0; j < 16; j++)
        for (int i = 0; i < 16; i++)
            inside += is_inside(shape, x * 256 + i * 16 + 8.03, y * 256 + j * 16 + 8.03, rule);
    return inside / 256.0;
}

static void
fill_plane(uint8_t *plane, mc_area *coverage, const mc_shape *shape, int32_t dx, int32_t dy, mc_fill_rule rule)
{
    uint8_t mask[SIDE + MC_MASK_MARGIN];
    memset(plane, 0, SIDE * SIDE);
    mc_area_add(coverage, shape, dx, dy);
    for (int y = 0; y < SIDE; y++) {
        int x, count;
        mc_area_take_row(coverage, y, rule, mask, &x, &count);
        if (count > 0)
            memcpy(plane + y * SIDE + x, mask, (size_t)count);
    }
    mc_area_done(coverage);
}

START_TEST(a_triangle_covers_its_area)
{
    mc_area *coverage;
    mc_shape shape = { 0 };
    uint8_t plane[SIDE * SIDE];
    ck_ok(mc_area_create(&coverage, SIDE, SIDE, pool));
    for (int round = 0; round < 40; round++) {
        random_polygon(&shape, 1, 3, round % 2 == 0 ? 0 : 60000);
        fill_plane(plane, coverage, &shape, 0, 0, MC_NON_ZERO);
        for (int y = 0; y < SIDE; y += 3)
            for (int x = 0; x < SIDE; x += 3)
                ck_assert_double_eq_tol(plane[y * SIDE + x] / 255.0, sampled(&shape, x, y, MC_NON_ZERO), 0.06);
    }
    mc_shape_free(&shape);
}
END_TEST

START_TEST(holes_by_both_rules)
{
    mc_area *coverage;
    mc_shape shape = { 0 };
    uint8_t plane[SIDE * SIDE];
    ck_ok(mc_area_create(&coverage, SIDE, SIDE, pool));
    mc_shape_clear(&shape, MC_SHAPE_POLYGONS);
    static const int32_t corners[2][4][2] = { { { 10, 10 }, { 80, 10 }, { 80, 80 }, { 10, 80 } },
                                              { { 30, 30 }, { 60, 30 }, { 60, 60 }, { 30, 60 } } };
    for (int r = 0; r < 2; r++) {
        for (int i = 0; i < 4; i++)
            mc_shape_add(&shape, corners[r][i][0] * 256, corners[r][i][1] * 256);
        mc_shape_end_part(&shape);
    }
    fill_plane(plane, coverage, &shape, 0, 0, MC_EVEN_ODD);
    ck_assert_int_eq(plane[20 * SIDE + 20], 255);
    ck_assert_int_eq(plane[45 * SIDE + 45], 0);
    ck_assert_int_eq(plane[5 * SIDE + 45], 0);
    ck_assert_int_eq(plane[45 * SIDE + 79], 255);
    fill_plane(plane, coverage, &shape, 0, 0, MC_NON_ZERO);
    ck_assert_int_eq(plane[45 * SIDE + 45], 255);
    mc_shape_free(&shape);
}
END_TEST

/* What a pixel gets does not depend on where the plane's border is. */
START_TEST(a_plane_that_is_moved_shows_the_same)
{
    mc_area *coverage;
    mc_outline *lines;
    mc_shape shape = { 0 };
    uint8_t here[SIDE * SIDE];
    uint8_t there[SIDE * SIDE];
    ck_ok(mc_area_create(&coverage, SIDE, SIDE, pool));
    ck_ok(mc_outline_create(&lines, SIDE, SIDE, pool));
    for (int round = 0; round < 200; round++) {
        random_polygon(&shape, 2, 5, 30000);
        int dx = random_whole(-SIDE + 1, SIDE), dy = random_whole(-SIDE + 1, SIDE);
        fill_plane(here, coverage, &shape, 0, 0, MC_EVEN_ODD);
        fill_plane(there, coverage, &shape, dx * 256, dy * 256, MC_EVEN_ODD);
        for (int y = 0; y < SIDE; y++)
            for (int x = 0; x < SIDE; x++)
                if (x + dx >= 0 && x + dx < SIDE && y + dy >= 0 && y + dy < SIDE)
                    ck_assert_int_eq(here[y * SIDE + x], there[(y + dy) * SIDE + x + dx]);
        memset(here, 0, sizeof(here));
        mc_outline_add(lines, &shape, 1);
        for (int y = 0; y < SIDE; y++)
            memcpy(here + y * SIDE, lines->plane + y * lines->stride, SIDE);
        for (int y = 0; y < SIDE; y++)
            mc_outline_clear_row(lines, y);
        for (int i = 0; i < shape.point_count; i++) {
            shape.points[i].x += dx * 256;
            shape.points[i].y += dy * 256;
        }
        mc_outline_add(lines, &shape, 1);
        for (int y = 0; y < SIDE; y++)
            for (int x = 0; x < SIDE; x++)
                if (x + dx >= 0 && x + dx < SIDE && y + dy >= 0 && y + dy < SIDE)
                    ck_assert_int_eq(here[y * SIDE + x], lines->plane[(y + dy) * lines->stride + x + dx]);
        for (int y = 0; y < SIDE; y++)
            mc_outline_clear_row(lines, y);
    }
    mc_shape_free(&shape);
}
END_TEST

static double
distance_to(const mc_shape *shape, double x, double y)
{
    double best = 1e9;
    for (int i = 1; i < shape->point_count; i++) {
        double ax = shape->points[i - 1].x / 256.0, ay = shape->points[i - 1].y / 256.0;
        double dx = shape->points[i].x / 256.0 - ax, dy = shape->points[i].y / 256.0 - ay;
        double length2 = dx * dx + dy * dy;
        double t = length2 > 0 ? fmin(1, fmax(0, ((x - ax) * dx + (y - ay) * dy) / length2)) : 0;
        best = fmin(best, hypot(x - ax - t * dx, y - ay - t * dy));
    }
    return best;
}

START_TEST(outlines_follow_the_distance)
{
    mc_outline *lines;
    mc_shape shape = { 0 };
    ck_ok(mc_outline_create(&lines, SIDE, SIDE, pool));
    for (int round = 0; round < 60; round++) {
        double pen = 1 + round % 3;
        mc_shape_clear(&shape, MC_SHAPE_LINES);
        for (int i = 0; i < 4; i++)
            mc_shape_add(&shape, random_whole(-9000, SIDE * 256 + 9000), random_whole(-9000, SIDE * 256 + 9000));
        mc_shape_end_part(&shape);
        mc_outline_add(lines, &shape, (float)pen);
        for (int y = 0; y < SIDE; y++)
            for (int x = 0; x < SIDE; x++) {
                double wanted = fmin(1, fmax(0, pen / 2 + 0.5 - distance_to(&shape, x + 0.5, y + 0.5)));
                ck_assert_double_eq_tol(lines->plane[y * lines->stride + x] / 255.0, wanted, 0.01);
            }
        for (int y = 0; y < SIDE; y++)
            mc_outline_clear_row(lines, y);
    }
    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < SIDE; x++)
            ck_assert_int_eq(lines->plane[y * lines->stride + x], 0);
    mc_shape_free(&shape);
}
END_TEST

/* The code for newer processors gives the same to the last bit. */
START_TEST(outlines_two_rows_at_a_time)
{
    mc_outline *lines;
    mc_shape shape = { 0 };
    static uint8_t seen[2][SIDE * SIDE];
    ck_ok(mc_outline_create(&lines, SIDE, SIDE, pool));
    bool can = lines->pairs;
    for (int round = 0; round < 100; round++) {
        mc_shape_clear(&shape, MC_SHAPE_LINES);
        for (int i = 0; i < 6; i++)
            mc_shape_add(&shape, random_whole(-900, SIDE * 256 + 900), random_whole(-900, SIDE * 256 + 900));
        mc_shape_end_part(&shape);
        lines->coarse = round % 2 == 0;
        for (int way = 0; way < 2; way++) {
            lines->pairs = can && way == 1;
            mc_outline_add(lines, &shape, 0.5F + (float)(round % 4) * 0.5F);
            memset(seen[way], 0, sizeof(seen[way]));
            for (int y = 0; y < SIDE; y++) {
                int x, count;
                const uint8_t *row = mc_outline_row(lines, y, &x, &count);
                memcpy(seen[way] + y * SIDE + x, row, (size_t)count);
                mc_outline_clear_row(lines, y);
            }
        }
        ck_assert_mem_eq(seen[0], seen[1], sizeof(seen[0]));
    }
    mc_shape_free(&shape);
}
END_TEST

/* The vector code against the definition. */
START_TEST(colours_are_laid_over)
{
    mc_pixels *pixels;
    uint8_t mask[67];
    ck_ok(mc_pixels_create(&pixels, 70, 1, true, pool));
    mc_pixels_attach(pixels, pool);
    for (int round = 0; round < 200; round++) {
        mc_color color = { (uint8_t)next_random(), (uint8_t)next_random(), (uint8_t)next_random(),
                           round % 3 == 0 ? 255 : (uint8_t)next_random() };
        uint8_t before[280];
        for (int i = 0; i < 67; i++)
            mask[i] = next_random() % 3 == 0 ? 255 : next_random() % 2 == 0 ? 0 : (uint8_t)next_random();
        memcpy(before, pixels->data, sizeof(before));
        mc_brush_row(pixels, 2, 0, mask, 67, color);
        const uint8_t channels[4] = { color.blue, color.green, color.red, 255 };
        for (int i = 0; i < 70; i++)
            for (int c = 0; c < 4; c++) {
                double part = i < 2 || i >= 69 ? 0 : mask[i - 2] / 255.0 * color.alpha / 255.0;
                double wanted = channels[c] * part + before[i * 4 + c] * (1 - part);
                ck_assert_double_eq_tol(pixels->data[i * 4 + c], wanted, 2);
            }
    }
    mc_brush_row(pixels, 0, 0, (const uint8_t[]){ 255 }, 1, red);
    ck_assert_mem_eq(pixels->data, ((const uint8_t[]){ 0, 0, 255, 255 }), 4);
}
END_TEST

START_TEST(vertices_are_snapped_and_thinned_on_the_lattice)
{
    mc_shape shape = { 0 };
    mc_pixel_grid pixel_grid = {
        .x0 = -180, .y0 = 90, .per_x = 10, .per_y = 10, .left = 100, .top = 50, .thinning = 64
    };
    mc_shape_clear(&shape, MC_SHAPE_LINES);
    ck_assert(mc_shape_add_vertex(&shape, &pixel_grid, -170, 85));
    ck_assert(mc_shape_add_vertex(&shape, &pixel_grid, -169.99, 85)); /* a tenth of a pixel on */
    ck_assert(mc_shape_add_vertex(&shape, &pixel_grid, -169, 84));
    ck_assert(!mc_shape_add_vertex(&shape, &pixel_grid, NAN, 84));
    ck_assert(mc_shape_add_vertex(&shape, &pixel_grid, 1e300, 84));
    mc_shape_end_part(&shape);
    ck_assert_int_eq(shape.part_count, 1);
    ck_assert_int_eq(shape.point_count, 3);
    ck_assert_int_eq(shape.points[0].x, 0);
    ck_assert_int_eq(shape.points[0].y, 0);
    ck_assert_int_eq(shape.points[1].x, 2560);
    ck_assert_int_eq(shape.points[1].y, 2560);
    ck_assert(shape.points[2].x > MC_SHAPE_REACH / 2 && shape.points[2].x <= MC_SHAPE_REACH);
    mc_shape_clear(&shape, MC_SHAPE_POLYGONS);
    mc_shape_add(&shape, 1, 1);
    mc_shape_add(&shape, 5, 1);
    mc_shape_add(&shape, 1, 1);
    mc_shape_end_part(&shape); /* two corners are no ring */
    ck_assert_int_eq(shape.part_count, 0);
    ck_assert_int_eq(shape.point_count, 0);
    mc_shape_free(&shape);
}
END_TEST

/* What runs through a cell of the pixel grid becomes one point, alike from both sides, and nothing moves further than
 * the diagonal of a cell. */
START_TEST(neighbours_keep_their_border)
{
    mc_shape there = { 0 }, back = { 0 };
    const mc_pixel_grid pixel_grid = { .per_x = 1, .per_y = 1, .thinning = 64, .left = -3, .top = 7 };
    for (int round = 0; round < 100; round++) {
        double border[200][2];
        double x = 0, y = 0;
        for (int i = 0; i < 200; i++) {
            border[i][0] = x += (random_whole(0, 100) - 30) / 500.0;
            border[i][1] = y += (random_whole(0, 100) - 50) / 500.0;
        }
        mc_shape_clear(&there, MC_SHAPE_POLYGONS);
        mc_shape_clear(&back, MC_SHAPE_POLYGONS);
        for (int i = 0; i < 200; i++) {
            ck_assert(mc_shape_add_vertex(&there, &pixel_grid, border[i][0], border[i][1]));
            ck_assert(mc_shape_add_vertices(&back, &pixel_grid, (const uint8_t *)border[199 - i], 16, 1, false));
        }
        mc_shape_end_part(&there);
        mc_shape_end_part(&back);
        ck_assert_int_eq(there.point_count, back.point_count);
        for (int i = 0; i < there.point_count; i++)
            ck_assert_mem_eq(&there.points[i], &back.points[back.point_count - 1 - i], sizeof(mc_shape_point));
        ck_assert_int_lt(there.point_count, 190);
        for (int i = 0; i < 200; i++) {
            double nearest = 1e9;
            for (int p = 0; p < there.point_count; p++)
                nearest = fmin(nearest, hypot(there.points[p].x / 256.0 - 3 - border[i][0],
                                              there.points[p].y / 256.0 + 7 + border[i][1]));
            ck_assert_double_le(nearest, 0.36);
        }
    }
    mc_shape_free(&there);
    mc_shape_free(&back);
}
END_TEST

START_TEST(small_rings_stay_as_specks)
{
    mc_shape shape = { 0 };
    mc_pixel_grid pixel_grid = { .per_x = 1, .per_y = 1, .thinning = 64 };
    static const double ring[5][2] = {
        { 5.01, -5.01 }, { 5.02, -5.01 }, { 5.02, -5.02 }, { 5.01, -5.02 }, { 5.01, -5.01 }
    };
    for (int keep = 0; keep < 2; keep++) {
        pixel_grid.keep_small = keep == 1;
        mc_shape_clear(&shape, MC_SHAPE_POLYGONS);
        ck_assert(mc_shape_add_vertices(&shape, &pixel_grid, (const uint8_t *)ring, 16, 5, false));
        mc_shape_end_ring(&shape, false);
        ck_assert_int_eq(shape.part_count, keep);
        ck_assert_int_eq(shape.point_count, keep ? 3 : 0);
    }
    mc_shape_free(&shape);
}
END_TEST

UNIT_MAIN("painting", a_triangle_covers_its_area, holes_by_both_rules, a_plane_that_is_moved_shows_the_same,
          outlines_follow_the_distance, outlines_two_rows_at_a_time, colours_are_laid_over,
          vertices_are_snapped_and_thinned_on_the_lattice, neighbours_keep_their_border, small_rings_stay_as_specks)
