/* Strokes that are painted in a small plane look as they do in one of the map's size, wherever they lie. */
#include "random_numbers.h"
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "draw/raster/bands.h"
#include "draw/raster/stroke_tile.h"

enum { WIDTH = 300, HEIGHT = 280 };

static const mc_color red = { 200, 60, 40, 255 }, grey = { 150, 150, 150, 255 }, glass = { 10, 20, 200, 100 };

/* Some lines, or some rings, around a place that may be beside the map. */
static void
random_shape(mc_shape *shape, mc_shape_kind kind, int step)
{
    mc_shape_clear(shape, kind);
    int32_t x = (int32_t)(next_random() % ((WIDTH + 40) * 256)) - 5000,
            y = (int32_t)(next_random() % ((HEIGHT + 40) * 256)) - 5000;
    for (int part = (int)(next_random() % 8) / 6; part >= 0; part--) {
        for (int i = (int)(next_random() % 6) + 2; i > 0; i--) {
            mc_shape_add(shape, x, y);
            x += (int32_t)(next_random() % (uint32_t)(2 * step)) - step;
            y += (int32_t)(next_random() % (uint32_t)(2 * step)) - step;
        }
        mc_shape_end_part(shape);
    }
}

static mc_canvas *
canvas_of(bool tinted)
{
    mc_inks inks = { 0 };
    mc_canvas *canvas = mc_canvas_create(WIDTH, HEIGHT, false, pool);
    mc_pixels *pixels;
    ck_assert(mc_inks_add(&inks, red) && mc_inks_add(&inks, grey));
    if (tinted)
        ck_ok(mc_canvas_create_with_palette(&canvas, WIDTH, HEIGHT, mc_ink_palette_get(&inks, pool), pool));
    else
        ck_ok(mc_canvas_pixels(&pixels, canvas));
    return canvas;
}

static void
ck_same(mc_canvas *one, mc_canvas *other)
{
    for (int y = 0; y < HEIGHT; y++)
        if (one->palette != NULL)
            ck_assert_mem_eq(mc_indexed_row(one->indexed, y), mc_indexed_row(other->indexed, y), WIDTH);
        else
            ck_assert_mem_eq(one->pixels->data + (size_t)y * one->pixels->stride,
                             other->pixels->data + (size_t)y * other->pixels->stride, WIDTH * 4);
}

static void
stroke_on_map(mc_canvas *canvas, mc_outline *outline, const mc_shape *shape, const mc_pen *pen, bool thin,
              mc_color color)
{
    outline->coarse = canvas->palette != NULL;
    if (thin)
        mc_outline_add(outline, shape, (float)pen->width);
    else
        mc_bands_add(outline, shape, pen);
    ck_ok(mc_canvas_outline(canvas, outline, color));
}

static void
compare(bool tinted)
{
    mc_canvas *small = canvas_of(tinted), *large = canvas_of(tinted);
    mc_stroke_tile *tile;
    mc_outline *outline;
    mc_shape shape = { 0 };
    int done_count = 0;
    ck_ok(mc_outline_create(&outline, WIDTH, HEIGHT, pool));
    ck_ok(mc_stroke_tile_create(&tile, pool));
    for (int round = 0; round < 4000; round++) {
        bool thin = round % 2 == 0;
        double width = thin ? 0.3 + round % 18 * 0.1 : 2.1 + round % 90 / 3.0;
        const mc_pen pen = { .width = width, .join = (mc_line_join)(round / 2 % 3), .cap = (mc_line_cap)(round % 3) };
        mc_color color = round % 5 == 0 ? grey : !tinted && round % 7 == 0 ? glass : red;
        random_shape(&shape, round % 11 == 0 ? MC_SHAPE_POLYGONS : MC_SHAPE_LINES,
                     round % 50 == 0 ? 30000 : 150 + round % 900);
        if (shape.part_count == 0)
            continue;
        if (!mc_stroke_tile_paint(tile, small, &shape, &pen, thin, color))
            continue;
        done_count++;
        stroke_on_map(large, outline, &shape, &pen, thin, color);
        if (round % 100 == 0)
            ck_same(small, large);
    }
    ck_same(small, large);
    ck_assert_int_gt(done_count, 3000);
    mc_shape_free(&shape);
}

START_TEST(small_planes_show_what_large_ones_do)
{
    compare(false);
    compare(true);
}
END_TEST

START_TEST(large_strokes_are_left_to_the_map)
{
    mc_canvas *canvas = canvas_of(false);
    mc_stroke_tile *tile;
    const mc_pen pen = { .width = 3 };
    mc_shape shape = { 0 };
    ck_ok(mc_stroke_tile_create(&tile, pool));
    mc_shape_clear(&shape, MC_SHAPE_LINES);
    mc_shape_add(&shape, 0, 0);
    mc_shape_add(&shape, 256 * 256, 256);
    mc_shape_end_part(&shape);
    ck_assert(!mc_stroke_tile_paint(tile, canvas, &shape, &pen, false, red));
    ck_same(canvas, canvas_of(false));
    mc_shape_free(&shape);
}
END_TEST

UNIT_MAIN("window", small_planes_show_what_large_ones_do, large_strokes_are_left_to_the_map)
