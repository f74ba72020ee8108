/* Halves and means of pixels, some of which hold no data. */
#include "ingest/pyramid/draw.h"

#include <math.h>
#include <string.h>

#include "unit.h"

static uint32_t state = 7;

static uint8_t
noise(void)
{
    state = state * 1664525u + 1013904223u;
    return (uint8_t)(state >> 24);
}

static mc_pixels *
noisy(int width, int height, bool holes)
{
    mc_pixels *pixels;
    ck_ok(mc_pixels_create(&pixels, width, height, true, pool));
    for (int i = 0; i < width * height; i++) {
        uint8_t *pixel = pixels->data + (size_t)i * 4;
        if (holes && noise() < 100)
            continue;
        for (int c = 0; c < 3; c++)
            pixel[c] = noise();
        pixel[3] = 255;
    }
    pixels->opacity = holes ? MC_OPACITY_UNKNOWN : MC_OPAQUE;
    return mc_pixels_attach(pixels, pool);
}

/* The mean of a block of pixels that hold data, by area; false where there is none. */
static bool
mean_of(double out[4], const mc_pixels *pixels, double left, double top, double right, double bottom)
{
    double weight = 0;
    memset(out, 0, sizeof(double) * 4);
    for (int y = 0; y < pixels->height; y++)
        for (int x = 0; x < pixels->width; x++) {
            const uint8_t *pixel = pixels->data + (size_t)y * pixels->stride + (size_t)x * 4;
            double area = fmax(0, fmin(right, x + 1) - fmax(left, x)) * fmax(0, fmin(bottom, y + 1) - fmax(top, y));
            if (pixel[3] == 0)
                continue;
            weight += area;
            for (int c = 0; c < 4; c++)
                out[c] += area * pixel[c];
        }
    for (int c = 0; c < 4; c++)
        out[c] /= weight > 0 ? weight : 1;
    return weight > 1e-5;
}

static void
check_pixel(const mc_pixels *tile, int x, int y, const double wanted[4], bool data)
{
    const uint8_t *found = tile->data + (size_t)y * tile->stride + (size_t)x * 4;
    for (int c = 0; c < 4; c++)
        ck_assert_double_le(fabs(found[c] - (data ? wanted[c] : 0)), data ? 0.51 : 0);
}

/* The first of the four at x, y and beside, below, that holds data. */
static bool
first_of(double out[4], const mc_pixels *below, int x, int y)
{
    for (int i = 0; i < 4; i++) {
        const uint8_t *pixel = below->data + (size_t)(y + i / 2) * below->stride + (size_t)(x + i % 2) * 4;
        for (int c = 0; c < 4; c++)
            out[c] = pixel[c];
        if (pixel[3] != 0)
            return true;
    }
    return false;
}

START_TEST(halves)
{
    for (int i = 0; i < 4; i++) {
        bool holes = i % 2 == 1, nearest = i > 1;
        mc_pixels *below = noisy(38, 34, holes), *tile;
        ck_ok(mc_pixels_create(&tile, 38, 34, true, pool));
        mc_draw_half(tile, 19, 17, below, nearest);
        for (int y = 0; y < 17; y++)
            for (int x = 0; x < 19; x++) {
                double wanted[4];
                bool data = nearest ? first_of(wanted, below, 2 * x, 2 * y)
                                    : mean_of(wanted, below, 2 * x, 2 * y, 2 * x + 2, 2 * y + 2);
                check_pixel(tile, 19 + x, 17 + y, wanted, data);
                ck_assert_int_eq(tile->data[(size_t)y * tile->stride + (size_t)x * 4 + 3], 0);
            }
        mc_pixels_unref(tile);
    }
}
END_TEST

START_TEST(means_by_area)
{
    static const mc_image_placement_scale scales[] = { { -3.3, 2.25, 2.5, 3.1 },
                                                       { 0, 0, 4, 4 },
                                                       { 10.7, -8, 1.3, 1.7 } };
    for (int holes = 0; holes < 2; holes++)
        for (size_t i = 0; i < sizeof(scales) / sizeof(scales[0]); i++) {
            mc_pixels *image = noisy(40, 50, holes == 1), *tile;
            const mc_image_placement_scale *s = &scales[i];
            bool changed = false;
            ck_ok(mc_pixels_create(&tile, 16, 16, true, pool));
            mc_draw_mean(&changed, tile, image, 0, image->height, s);
            ck_assert(changed);
            for (int y = 0; y < 16; y++)
                for (int x = 0; x < 16; x++) {
                    double wanted[4], left = s->x0 + x * s->scale_x, top = s->y0 + y * s->scale_y;
                    double cx = left + s->scale_x / 2, cy = top + s->scale_y / 2;
                    bool data = mean_of(wanted, image, left, top, left + s->scale_x, top + s->scale_y) && cx >= 0 &&
                                cx < 40 && cy >= 0 && cy < 50;
                    check_pixel(tile, x, y, wanted, data);
                }
            mc_pixels_unref(tile);
        }
}
END_TEST

START_TEST(fills_what_is_empty_only)
{
    mc_pixels *tile = noisy(20, 20, true), *stored = noisy(20, 20, true), *before;
    ck_ok(mc_pixels_create(&before, 20, 20, false, pool));
    memcpy(before->data, tile->data, 20 * 20 * 4);
    mc_draw_under(tile, stored);
    for (size_t i = 0; i < 20 * 20 * 4; i += 4)
        ck_assert_mem_eq(tile->data + i, (before->data[i + 3] != 0 ? before : stored)->data + i, 4);
    mc_pixels_unref(before);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = { halves, means_by_area, fills_what_is_empty_only };
    return unit_run("draw", tests, sizeof(tests) / sizeof(tests[0]));
}
