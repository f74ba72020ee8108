/* Resampling against its definition, computed in floating point. */
#include "images.h"
#include "unit.h"

#include "samples.h"

static double
sample_at(const mc_pixels *source, double x, double y, int channel)
{
    double left = floor(x - 0.5), top = floor(y - 0.5), value = 0;
    double fx = x - 0.5 - left, fy = y - 0.5 - top;
    for (int k = 0; k < 4; k++) {
        int column = (int)left + (k & 1), row = (int)top + (k >> 1);
        column = column < 0 ? 0 : column >= source->width ? source->width - 1 : column;
        row = row < 0 ? 0 : row >= source->height ? source->height - 1 : row;
        double weight = (k & 1 ? fx : 1 - fx) * (k >> 1 ? fy : 1 - fy);
        value += weight * source->data[(size_t)row * source->stride + (size_t)(column * 4 + channel)];
    }
    return value;
}

static void
check(const mc_pixels *source, double x0, double y0, double sx, double sy, mc_resample mode)
{
    mc_pixels *target = clear_image(61, 43);
    mc_pixels_resample(target, source, x0, y0, sx, sy, mode);
    for (int j = 0; j < 43; j++) {
        for (int i = 0; i < 61; i++) {
            double x = x0 + (i + 0.5) * sx, y = y0 + (j + 0.5) * sy;
            bool inside = x >= 0 && y >= 0 && x < source->width && y < source->height;
            const uint8_t *at = target->data + (size_t)j * target->stride + (size_t)i * 4;
            for (int c = 0; c < 4; c++) {
                double wanted = 0;
                if (inside && mode == MC_NEAREST)
                    wanted = source->data[(size_t)y * source->stride + (size_t)x * 4 + (size_t)c];
                else if (inside)
                    wanted = sample_at(source, x, y, c);
                double allowed = mode == MC_NEAREST ? 0 : 2.6; /* seven bits of two weights */
                ck_assert_msg(fabs(at[c] - wanted) <= allowed, "%d %d channel %d: %d, not %f", i, j, c, at[c], wanted);
            }
        }
    }
}

START_TEST(test_definition)
{
    mc_pixels *source = clear_image(40, 30);
    sample_overlay(source);
    for (int mode = 0; mode < 2; mode++) {
        check(source, 3.3, 2.7, 0.37, 0.41, mode);
        check(source, -6.2, -9.1, 1.7, 1.2, mode);
        check(source, 0, 0, 0.5, 0.5, mode);
        check(source, 0.25, 0.75, 1, 1, mode);
        check(source, 7, -4, 1, 1, mode);
        /* Weights that round up to a whole pixel, edges inside the target, one axis on the pixels only. */
        check(source, 0.4999, -3.5001, 1, 1, mode);
        check(source, -5.3, -7.6, 1, 1, mode);
        check(source, 0.4, 3, 1, 0.5, mode);
        check(source, 1000, 0, 1, 1.5, mode);
    }
}
END_TEST

/* A white disc on nothing: no channel may fall below its alpha, that is, edges stay white. */
START_TEST(test_edges_do_not_darken)
{
    mc_pixels *source = clear_image(20, 20), *target = clear_image(90, 90);
    for (int y = 0; y < 20; y++)
        for (int x = 0; x < 20; x++)
            sample_set(source, x, y, 255, 255, 255, hypot(x - 9.5, y - 9.5) < 7 ? 255 : 0);
    source->opacity = MC_OPACITY_UNKNOWN;
    mc_pixels_resample(target, source, 0, 0, 0.22, 0.22, MC_BILINEAR);
    bool soft = false;
    for (size_t i = 0; i < 90 * 90; i++) {
        const uint8_t *at = target->data + i * 4;
        ck_assert_int_eq(at[0], at[3]);
        soft |= at[3] > 50 && at[3] < 200;
    }
    ck_assert(soft);
}
END_TEST

START_TEST(test_shift_copies)
{
    mc_pixels *source = clear_image(64, 64), *target = clear_image(64, 64);
    sample_photo(source);
    mc_pixels_resample(target, source, 1e-7, -0.001, 1 + 1e-6, 1 - 1e-6, MC_BILINEAR);
    ck_assert_int_eq(sample_difference(source, target), 0);
    ck_assert_int_eq(mc_pixels_opacity(target), MC_OPAQUE);
}
END_TEST

START_TEST(test_draws_over)
{
    mc_pixels *source = clear_image(8, 8), *target = clear_image(16, 16);
    mc_pixels_fill(source, (const uint8_t[]){ 50, 50, 50, 100 });
    mc_pixels_fill(target, (const uint8_t[]){ 200, 200, 200, 255 });
    mc_pixels_resample(target, source, 0, 0, 0.5, 0.5, MC_BILINEAR);
    for (size_t i = 0; i < 256; i++)
        ck_assert_int_eq(target->data[i * 4], 50 + (int)lround(200 * 155 / 255.0));
}
END_TEST

UNIT_MAIN("resample", test_definition, test_edges_do_not_darken, test_shift_copies, test_draws_over)
