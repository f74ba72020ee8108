/* What is painted on indexed colours is what is painted on pixels, also once there are too many colours. */
#include "random_numbers.h"
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "draw/raster/canvas.h"

enum { WIDTH = 150, HEIGHT = 60 };

static void
random_ring(mc_shape *shape, int corners)
{
    mc_shape_clear(shape, MC_SHAPE_POLYGONS);
    for (int i = 0; i < corners; i++)
        mc_shape_add(shape, (int32_t)(next_random() % ((WIDTH + 40) * 256)) - 5000,
                     (int32_t)(next_random() % ((HEIGHT + 40) * 256)) - 5000);
    mc_shape_end_part(shape);
}

typedef struct planes {
    mc_area *area;
    mc_outline *outline;
} planes;

/* Lays a ring's fill and its outline on a canvas. */
static void
lay_ring(mc_canvas *canvas, const planes *p, const mc_shape *shape, mc_color fill, mc_color line)
{
    mc_area_add(p->area, shape, 0, 0);
    ck_ok(mc_canvas_fill(canvas, p->area, MC_NON_ZERO, fill));
    mc_outline_add(p->outline, shape, 1.4F);
    ck_ok(mc_canvas_outline(canvas, p->outline, line));
}

static void
ck_same(mc_canvas *indexed, mc_canvas *plain)
{
    mc_pixels *a, *b;
    ck_ok(mc_canvas_pixels(&a, indexed));
    ck_ok(mc_canvas_pixels(&b, plain));
    for (int y = 0; y < HEIGHT; y++)
        ck_assert_mem_eq(a->data + (size_t)y * a->stride, b->data + (size_t)y * b->stride, WIDTH * 4);
}

static planes
make_planes(void)
{
    planes p;
    ck_ok(mc_area_create(&p.area, WIDTH, HEIGHT, pool));
    ck_ok(mc_outline_create(&p.outline, WIDTH, HEIGHT, pool));
    p.area->coarse = p.outline->coarse = true;
    return p;
}

START_TEST(both_ways_give_the_same)
{
    planes p = make_planes();
    mc_shape shape = { 0 };
    int stayed = 0, overflown = 0;
    for (int round = 0; round < 40; round++) {
        mc_canvas *indexed = mc_canvas_create(WIDTH, HEIGHT, true, pool);
        mc_canvas *plain = mc_canvas_create(WIDTH, HEIGHT, false, pool);
        mc_color ground = { 10, 200, 30, (uint8_t)(round % 3 == 0 ? 0 : round % 3 == 1 ? 255 : 90) };
        mc_canvas_set_ground(indexed, ground);
        mc_canvas_set_ground(plain, ground);
        for (int ring = 0; ring <= round / 8; ring++) {
            mc_color fill = { (uint8_t)next_random(), 80, (uint8_t)next_random(), ring % 2 ? 255 : 120 };
            mc_color line = { 20, (uint8_t)next_random(), 0, 255 };
            random_ring(&shape, 3 + round % 5);
            lay_ring(indexed, &p, &shape, fill, line);
            lay_ring(plain, &p, &shape, fill, line);
        }
        stayed += indexed->indexed != NULL;
        overflown += indexed->indexed == NULL;
        ck_same(indexed, plain);
        if (ground.alpha == 255) {
            ck_assert_int_eq(plain->pixels->opacity, MC_OPAQUE);
            plain->pixels->opacity = MC_OPACITY_UNKNOWN;
            ck_assert_int_eq(mc_pixels_opacity(plain->pixels), MC_OPAQUE);
        }
    }
    ck_assert_int_gt(stayed, 5);
    ck_assert_int_gt(overflown, 5);
    mc_shape_free(&shape);
}
END_TEST

/* As a PNG, over a background and without: what a decoder makes of it. */
START_TEST(pngs_hold_the_pixels)
{
    planes p = make_planes();
    mc_shape shape = { 0 };
    mc_format format = { .type = MC_FORMAT_PNG };
    for (int round = 0; round < 12; round++) {
        const uint8_t background[4] = { 200, 230, 100, 255 };
        mc_canvas *indexed = mc_canvas_create(WIDTH, HEIGHT, true, pool);
        mc_canvas *plain = mc_canvas_create(WIDTH, HEIGHT, false, pool);
        mc_color fill = { 90, 80, 70, 255 }, line = { 0, 0, 0, 255 };
        random_ring(&shape, 5);
        if (round % 3 != 2) /* with few colours, pixels have fewer bits */
            lay_ring(indexed, &p, &shape, fill, line), lay_ring(plain, &p, &shape, fill, line);
        else {
            mc_area_add(p.area, &shape, 0, 0);
            ck_ok(mc_canvas_fill(indexed, p.area, MC_NON_ZERO, fill));
            mc_area_add(p.area, &shape, 0, 0);
            ck_ok(mc_canvas_fill(plain, p.area, MC_NON_ZERO, fill));
        }
        ck_assert_ptr_nonnull(indexed->indexed);
        mc_pixels *pixels, *wanted, *read;
        mc_buf *png;
        ck_ok(mc_canvas_pixels(&pixels, plain));
        ck_ok(mc_pixels_create(&wanted, WIDTH, HEIGHT, true, pool));
        if (round % 2 == 1) {
            mc_pixels_fill(wanted, background);
            mc_indexed_over(indexed->indexed, background);
        }
        mc_pixels_over(wanted, 0, 0, pixels);
        ck_ok(mc_indexed_encode(&png, &format, indexed->indexed, MC_ON_THE_FLY, &ctx, pool));
        ck_ok(mc_image_decode(&read, png->data, png->size, &ctx, pool));
        for (int i = 0; i < WIDTH * HEIGHT * 4; i++) /* un-premultiplied in the file */
            ck_assert_int_le(abs(read->data[i] - wanted->data[i]), round % 2 == 1 ? 0 : 1);
        mc_pixels_unref(wanted);
        mc_pixels_unref(read);
    }
    mc_shape_free(&shape);
}
END_TEST

UNIT_MAIN("canvas", both_ways_give_the_same, pngs_hold_the_pixels)
