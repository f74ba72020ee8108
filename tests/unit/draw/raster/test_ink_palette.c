/* Palettes of inks: what is painted on one is what is painted on pixels, nearly; what is flat exactly. */
#include "random_numbers.h"
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "draw/raster/canvas.h"

enum { WIDTH = 150, HEIGHT = 60 };

static const mc_color roads[] = {
    { 200, 60, 40, 255 }, { 230, 140, 50, 255 }, { 240, 200, 90, 255 }, { 150, 150, 150, 255 }, { 190, 190, 190, 255 },
};

static mc_inks
inks_of(const mc_color *colors, int count)
{
    mc_inks inks = { .count = 0 };
    for (int i = 0; i < count; i++)
        ck_assert(mc_inks_add(&inks, colors[i]));
    return inks;
}

static int
apart(const uint8_t a[4], const uint8_t b[4])
{
    int most = 0;
    for (int c = 0; c < 4; c++)
        most = abs(a[c] - b[c]) > most ? abs(a[c] - b[c]) : most;
    return most;
}

START_TEST(inks_are_opaque_and_few)
{
    mc_inks inks = { .count = 0 };
    ck_assert(!mc_inks_add(&inks, (mc_color){ 1, 2, 3, 254 }));
    for (int i = 0; i < MC_INKS_MAX; i++) {
        ck_assert(mc_inks_add(&inks, (mc_color){ (uint8_t)i, 0, 0, 255 }));
        ck_assert(mc_inks_add(&inks, (mc_color){ (uint8_t)i, 0, 0, 255 })); /* there already */
    }
    ck_assert_int_eq(inks.count, MC_INKS_MAX);
    ck_assert(!mc_inks_add(&inks, (mc_color){ 99, 0, 0, 255 }));
    const mc_inks none = { .count = 0 };
    ck_assert_ptr_null(mc_ink_palette_get(&none, pool));
}
END_TEST

/* Each entry of the table is as near as the error says, and what covers all or nothing is exact. */
START_TEST(tables_say_what_laying_makes)
{
    mc_inks inks = inks_of(roads, 5);
    const mc_ink_palette *palette = mc_ink_palette_get(&inks, pool);
    ck_assert_ptr_nonnull(palette);
    ck_assert_int_le(palette->count, 256);
    ck_assert_mem_eq(palette->colors[0], "\0\0\0\0", 4);
    int64_t sum = 0, count = 0;
    for (int ink = 0; ink < 5; ink++) {
        int number = mc_ink_palette_index(palette, roads[ink]);
        ck_assert_int_ge(number, 0);
        for (int entry = 0; entry < palette->count; entry++) {
            ck_assert_int_eq(palette->laid[number][entry][0], entry);
            for (int step = 1; step < MC_INK_STEPS; step++) {
                uint8_t wanted[4];
                memcpy(wanted, palette->colors[entry], 4);
                mc_brush_color(wanted, roads[ink], (uint8_t)(step * 17));
                int off = apart(wanted, palette->colors[palette->laid[number][entry][step]]);
                ck_assert_int_le(off, step == MC_INK_STEPS - 1 ? 0 : MC_INK_ERROR_MAX);
                sum += off;
                count++;
            }
        }
    }
    ck_assert_int_lt(sum / count, 8);
}
END_TEST

START_TEST(the_order_of_inks_does_not_matter)
{
    const mc_color turned[] = { roads[3], roads[1], roads[4], roads[0], roads[2] };
    mc_inks a = inks_of(roads, 5), b = inks_of(turned, 5);
    ck_assert_ptr_eq(mc_ink_palette_get(&a, pool), mc_ink_palette_get(&b, pool));
}
END_TEST

/* Many strong colours have more between them than 256. */
START_TEST(what_does_not_suit_is_refused)
{
    mc_inks inks = { .count = 0 };
    for (int i = 0; i < 8; i++)
        ck_assert(mc_inks_add(&inks, (mc_color){ i & 1 ? 255 : 0, i & 2 ? 255 : 0, i & 4 ? 255 : 0, 255 }));
    ck_assert_ptr_null(mc_ink_palette_get(&inks, pool));
    ck_assert_ptr_null(mc_ink_palette_get(&inks, pool)); /* remembered */
}
END_TEST

START_TEST(colours_over_colours)
{
    mc_inks inks = inks_of(roads, 2);
    mc_ink_palette *palette = mc_ink_palette_get(&inks, pool);
    ck_assert_ptr_nonnull(palette);
    for (int upper = 0; upper < palette->count; upper++)
        for (int lower = 0; lower < palette->count; lower++) {
            uint8_t wanted[4], over = mc_ink_palette_over(palette, (uint8_t)upper, (uint8_t)lower);
            memcpy(wanted, palette->colors[lower], 4);
            mc_brush_pixel(wanted, palette->colors[upper], 255);
            ck_assert_int_le(apart(wanted, palette->colors[over]), MC_INK_ERROR_MAX);
            ck_assert_int_eq(mc_ink_palette_over(palette, (uint8_t)upper, (uint8_t)lower), over); /* the second time */
            if (upper == 0)
                ck_assert_int_eq(over, lower);
            if (palette->colors[upper][3] == 255)
                ck_assert_int_eq(over, upper);
        }
}
END_TEST

static void
lay_ring(mc_canvas *canvas, mc_area *area, mc_outline *outline, const mc_shape *shape, mc_color fill, mc_color line)
{
    mc_area_add(area, shape, 0, 0);
    ck_ok(mc_canvas_fill(canvas, area, MC_NON_ZERO, fill));
    mc_outline_add(outline, shape, 1.4F);
    ck_ok(mc_canvas_outline(canvas, outline, line));
}

START_TEST(canvases_show_nearly_what_pixels_do)
{
    mc_inks inks = inks_of(roads, 5);
    mc_area *area;
    mc_outline *outline;
    mc_shape shape = { 0 };
    int64_t sum = 0;
    int exact = 0;
    ck_ok(mc_area_create(&area, WIDTH, HEIGHT, pool));
    ck_ok(mc_outline_create(&outline, WIDTH, HEIGHT, pool));
    area->coarse = outline->coarse = true;
    for (int round = 0; round < 40; round++) {
        mc_canvas *lower, *upper, *plain = mc_canvas_create(WIDTH, HEIGHT, false, pool);
        mc_pixels *pixels, *wanted;
        ck_ok(mc_canvas_pixels(&wanted, plain));
        ck_ok(mc_canvas_create_with_palette(&lower, WIDTH, HEIGHT, mc_ink_palette_get(&inks, pool), pool));
        ck_ok(mc_canvas_create_with_palette(&upper, WIDTH, HEIGHT, mc_ink_palette_get(&inks, pool), pool));
        if (round % 2 == 1) {
            mc_canvas_set_ground(lower, roads[4]);
            mc_pixels_fill(wanted, (uint8_t[4]){ 190, 190, 190, 255 });
        }
        for (int ring = 0; ring < 6; ring++) {
            mc_color fill = roads[next_random() % 5], line = roads[next_random() % 5];
            mc_shape_clear(&shape, MC_SHAPE_POLYGONS);
            for (int i = 0; i < 5; i++)
                mc_shape_add(&shape, (int32_t)(next_random() % ((WIDTH + 40) * 256)) - 5000,
                             (int32_t)(next_random() % ((HEIGHT + 40) * 256)) - 5000);
            mc_shape_end_part(&shape);
            lay_ring(ring < 3 ? lower : upper, area, outline, &shape, fill, line);
            lay_ring(plain, area, outline, &shape, fill, line);
        }
        ck_ok(mc_canvas_over(lower, upper));
        ck_assert_ptr_nonnull(lower->palette);
        mc_indexed_trim(lower->indexed);
        ck_ok(mc_canvas_pixels(&pixels, lower));
        for (int y = 0; y < HEIGHT; y++)
            for (int x = 0; x < WIDTH; x++) {
                int off = apart(pixels->data + (size_t)y * pixels->stride + (size_t)x * 4,
                                wanted->data + (size_t)y * wanted->stride + (size_t)x * 4);
                ck_assert_int_le(off, 3 * MC_INK_ERROR_MAX);
                sum += off;
                exact += off == 0;
            }
    }
    ck_assert_int_gt(exact, 40 * WIDTH * HEIGHT * 3 / 4);
    ck_assert_int_lt(sum, 40 * WIDTH * HEIGHT * 2);
    mc_shape_free(&shape);
}
END_TEST

UNIT_MAIN("ink_palette", inks_are_opaque_and_few, tables_say_what_laying_makes, the_order_of_inks_does_not_matter,
          what_does_not_suit_is_refused, colours_over_colours, canvases_show_nearly_what_pixels_do)
