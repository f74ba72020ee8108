/* Buffers, opacity, blending: the fast ways against one channel at a time. */
#include "unit.h"

#include "image/blend.h"
#include "memory/scratch.h"
#include "samples.h"

static mc_pixels *
image(int width, int height, bool cleared)
{
    mc_pixels *pixels;
    ck_ok(mc_pixels_create(&pixels, width, height, cleared, pool));
    return mc_pixels_attach(pixels, pool);
}

START_TEST(test_limits)
{
    mc_pixels *pixels;
    ck_fails(LIMIT, mc_pixels_create(&pixels, 0, 5, true, pool));
    ck_fails(LIMIT, mc_pixels_create(&pixels, 5, -1, true, pool));
    ck_fails(LIMIT, mc_pixels_create(&pixels, mc_pixels_max + 1, 1, true, pool));
    ck_assert_ptr_null(mc_scratch_acquire(SIZE_MAX));
}
END_TEST

START_TEST(test_opacity_and_uniform)
{
    mc_pixels *p = image(37, 5, true);
    uint8_t bgra[4];
    ck_assert_int_eq(mc_pixels_opacity(p), MC_EMPTY);
    ck_assert(mc_pixels_uniform(p, bgra));
    ck_assert_int_eq(bgra[3], 0);
    mc_pixels_fill(p, (const uint8_t[]){ 1, 2, 3, 255 });
    ck_assert_int_eq(p->opacity, MC_OPAQUE);
    p->opacity = MC_OPACITY_UNKNOWN;
    ck_assert_int_eq(mc_pixels_opacity(p), MC_OPAQUE);
    ck_assert(mc_pixels_uniform(p, bgra));
    ck_assert_mem_eq(bgra, ((const uint8_t[]){ 1, 2, 3, 255 }), 4);
    /* Each pixel counts, also those beyond the last group of four. */
    for (int i = 0; i < 37 * 5; i++) {
        p->data[i * 4 + 3] = 254;
        p->opacity = MC_OPACITY_UNKNOWN;
        ck_assert_int_eq(mc_pixels_opacity(p), MC_TRANSLUCENT);
        ck_assert(!mc_pixels_uniform(p, bgra));
        p->data[i * 4 + 3] = 255;
    }
    mc_pixels *one = image(1, 1, true);
    ck_assert(mc_pixels_uniform(one, bgra));
}
END_TEST

START_TEST(test_blend_equals_reference)
{
    for (int count = 0; count < 70; count++) {
        uint8_t source[70 * 4], target[70 * 4], expected[70 * 4];
        for (int i = 0; i < 70; i++) {
            for (int k = 0; k < 2; k++) {
                uint8_t *at = (k == 0 ? source : target) + i * 4;
                unsigned alpha = sample_random() % 3 == 0 ? 255 : sample_random() % 4 == 0 ? 0 : sample_random() % 256;
                for (int c = 0; c < 3; c++)
                    at[c] = (uint8_t)(alpha == 0 ? 0 : sample_random() % (alpha + 1));
                at[3] = (uint8_t)alpha;
            }
        }
        memcpy(expected, target, sizeof(target));
        mc_blend_over_reference(expected, source, count);
        uint8_t result[70 * 4];
        memcpy(result, target, sizeof(target));
        mc_blend_over(result, source, count);
        ck_assert_mem_eq(result, expected, sizeof(expected));
        memcpy(expected, target, sizeof(target));
        memcpy(result, target, sizeof(target));
        bool all = mc_blend_under_reference(expected, source, count);
        ck_assert_int_eq(mc_blend_under(result, source, count), all);
        ck_assert_mem_eq(result, expected, sizeof(expected));
    }
}
END_TEST

START_TEST(test_blend_is_exact)
{
    for (int a = 0; a < 256; a++) {
        for (int v = 0; v < 256; v++) {
            uint8_t source[4] = { 0, 0, 0, (uint8_t)a }, target[4] = { (uint8_t)v, 0, 0, 255 };
            mc_blend_over(target, source, 1);
            ck_assert_int_eq(target[0], (int)lround(v * (255 - a) / 255.0));
            ck_assert_int_eq(target[3], 255);
        }
    }
}
END_TEST

/* The same scene from the back and from the front is the same image. */
START_TEST(test_front_to_back)
{
    mc_pixels *back = image(64, 48, true), *front = image(64, 48, true), *layers[3];
    for (int i = 0; i < 3; i++) {
        layers[i] = image(50, 40, false);
        sample_overlay(layers[i]);
    }
    for (int i = 0; i < 3; i++)
        mc_pixels_over(back, i * 11 - 9, 5 - i * 4, layers[i]);
    for (int i = 2; i >= 0; i--)
        ck_assert(!mc_pixels_under(front, i * 11 - 9, 5 - i * 4, layers[i]));
    ck_assert_int_le(sample_difference(back, front), 3);
    mc_pixels *ground = image(64, 48, false);
    mc_pixels_fill(ground, (const uint8_t[]){ 9, 8, 7, 255 });
    ck_assert(mc_pixels_under(front, 0, 0, ground));
    ck_assert_int_eq(front->opacity, MC_OPAQUE);
    front->opacity = MC_OPACITY_UNKNOWN;
    ck_assert_int_eq(mc_pixels_opacity(front), MC_OPAQUE);
}
END_TEST

/* Whatever is remembered of the opacity after each operation agrees with the pixels. */
START_TEST(test_opacity_is_tracked)
{
    static const int shifts[] = { -40, -32, -3, 0, 5, 31, 40 };
    for (unsigned round = 0; round < 3000; round++) {
        mc_pixels *target = image(32, 16, false), *source = image(32, 16, false);
        mc_pixels *both[2] = { target, source };
        for (int k = 0; k < 2; k++) {
            unsigned kind = sample_random() % 4;
            uint8_t value = kind == 0 ? 0 : kind == 1 ? 255 : 100;
            mc_pixels_fill(both[k], (const uint8_t[]){ value, value, value, value });
            if (kind == 3)
                sample_overlay(both[k]);
            if (sample_random() % 2 == 0)
                mc_pixels_opacity(both[k]);
        }
        int x = shifts[sample_random() % 7], y = shifts[sample_random() % 7];
        bool full = false;
        unsigned what = round % 4;
        if (what == 0)
            mc_pixels_over(target, x, y, source);
        else if (what == 1)
            mc_pixels_copy(target, x, y, source);
        else if (what == 2)
            full = mc_pixels_under(target, x, y, source);
        else
            mc_pixels_resample(target, source, x, y, 0.7, 1.3, MC_BILINEAR);
        mc_opacity remembered = target->opacity;
        target->opacity = MC_OPACITY_UNKNOWN;
        mc_opacity found = mc_pixels_opacity(target);
        ck_assert(remembered == MC_OPACITY_UNKNOWN || remembered == found);
        ck_assert(what != 2 || full == (found == MC_OPAQUE));
        apr_pool_clear(pool);
    }
}
END_TEST

START_TEST(test_copy_clips)
{
    mc_pixels *target = image(10, 10, true), *source = image(6, 6, false);
    sample_photo(source);
    mc_pixels_copy(target, -2, 7, source);
    for (int y = 0; y < 10; y++)
        for (int x = 0; x < 10; x++) {
            const uint8_t *at = target->data + y * 40 + x * 4;
            if (x < 4 && y >= 7)
                ck_assert_mem_eq(at, source->data + (y - 7) * 24 + (x + 2) * 4, 4);
            else
                ck_assert_int_eq(at[3], 0);
        }
    mc_pixels_copy(target, INT32_MAX, INT32_MAX, source);
    mc_pixels_over(target, INT32_MIN, 3, source);
}
END_TEST

START_TEST(test_over_saturates)
{
    mc_pixels *target = image(8, 1, false), *source = image(8, 1, false);
    mc_pixels_fill(target, (const uint8_t[]){ 250, 250, 250, 255 });
    mc_pixels_fill(source, (const uint8_t[]){ 255, 255, 255, 10 }); /* not premultiplied: from outside */
    mc_pixels_over(target, 0, 0, source);
    ck_assert_int_eq(target->data[0], 255);
}
END_TEST

START_TEST(test_part_is_a_window)
{
    mc_pixels *source = image(10, 8, false), *copy = image(4, 3, false), part;
    sample_photo(source);
    source->opacity = MC_OPACITY_UNKNOWN;
    ck_assert(mc_pixels_part(&part, source, 6, 5, 4, 3));
    mc_pixels_copy(copy, -6, -5, source);
    for (int y = 0; y < 3; y++)
        ck_assert_mem_eq(part.data + (size_t)y * part.stride, copy->data + (size_t)y * copy->stride, 16);
    ck_assert_int_eq(mc_pixels_opacity(&part), mc_pixels_opacity(copy));
    uint8_t bgra[4];
    mc_pixels_fill(source, (const uint8_t[]){ 1, 2, 3, 255 });
    ck_assert(mc_pixels_uniform(&part, bgra) && bgra[1] == 2);
    source->data[9 * 4] = 9; /* beside the part */
    ck_assert(mc_pixels_uniform(&part, bgra));
    const int outside[][4] = { { -1, 0, 4, 3 }, { 0, -1, 4, 3 }, { 7, 0, 4, 3 },        { 0, 6, 4, 3 },
                               { 0, 0, 0, 3 },  { 0, 0, 4, 0 },  { INT32_MAX, 0, 4, 3 } };
    for (size_t i = 0; i < sizeof(outside) / sizeof(outside[0]); i++)
        ck_assert(!mc_pixels_part(&part, source, outside[i][0], outside[i][1], outside[i][2], outside[i][3]));
}
END_TEST

/* Blocks of a large map stay, also where many small ones are kept. */
START_TEST(test_memory_stays_where_it_may)
{
    enum { SMALL = 80, LARGE = 30 << 20 };
    void *small[SMALL], *large[2];
    mc_scratch_keep((size_t)100 << 20);
    mc_scratch_keep(1);
    if (mc_scratch_kept_most() == 0) /* a sanitizer wants to see each block's own life */
        return;
    ck_assert_uint_eq(mc_scratch_kept_most(), (size_t)100 << 20);
    for (int i = 0; i < SMALL; i++)
        small[i] = mc_scratch_acquire((size_t)(i + 1) * 4096);
    for (int i = 0; i < 2; i++)
        memset(large[i] = mc_scratch_acquire(LARGE), 1, LARGE);
    for (int i = 0; i < SMALL; i++)
        mc_scratch_release(small[i]);
    for (int i = 0; i < 2; i++)
        mc_scratch_release(large[i]);
    for (int i = 0; i < 2; i++) {
        void *again = mc_scratch_acquire(LARGE);
        ck_assert(again == large[0] || again == large[1]);
    }
    void *fresh = mc_scratch_acquire(LARGE);
    ck_assert(fresh != large[0] && fresh != large[1]);
}
END_TEST

UNIT_MAIN("pixels", test_limits, test_opacity_and_uniform, test_blend_equals_reference, test_blend_is_exact,
          test_front_to_back, test_opacity_is_tracked, test_copy_clips, test_over_saturates, test_part_is_a_window,
          test_memory_stays_where_it_may)
