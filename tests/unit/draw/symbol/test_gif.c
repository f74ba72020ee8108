/* GIF files as pictures of graphics. */
#include "unit.h"

#include <string.h>

#include "draw/symbol/picture_private.h"

/* Three columns, two rows: red, green, blue; transparent, blue, green. */
static const uint8_t small[] = { 'G',  'I',  'F',  '8',  '9',  'a',  0x03, 0x00, 0x02, 0x00, 0x81, 0x00, 0x00, 0xff,
                                 0x00, 0x00, 0x00, 0xff, 0x00, 0x00, 0x00, 0xff, 0x09, 0x08, 0x07, 0x21, 0xf9, 0x04,
                                 0x01, 0x00, 0x00, 0x03, 0x00, 0x2c, 0x00, 0x00, 0x00, 0x00, 0x03, 0x00, 0x02, 0x00,
                                 0x00, 0x08, 0x09, 0x00, 0x01, 0x04, 0x10, 0x30, 0x40, 0x40, 0x80, 0x80, 0x00, 0x3b };

START_TEST(pixels_and_what_is_transparent)
{
    static const uint8_t wanted[2][12] = { { 0, 0, 255, 255, 0, 255, 0, 255, 255, 0, 0, 255 },
                                           { 0, 0, 0, 0, 255, 0, 0, 255, 0, 255, 0, 255 } };
    mc_pixels *pixels;
    int width, height;
    ck_ok(mc_picture_size(&width, &height, (const char *)small, sizeof(small), pool));
    ck_assert_int_eq(width, 3);
    ck_assert_int_eq(height, 2);
    ck_ok(mc_picture_decode(&pixels, (const char *)small, sizeof(small), &ctx, pool));
    for (int row = 0; row < 2; row++)
        ck_assert_mem_eq(pixels->data + (size_t)row * pixels->stride, wanted[row], 12);
    mc_pixels_unref(pixels);
}
END_TEST

/* Each byte changed, and each length: an error or pixels of the size that the head says, nothing else. */
START_TEST(broken_ones)
{
    int refused = 0;
    for (size_t i = 6; i < sizeof(small) * 4; i++) {
        static const uint8_t values[] = { 0, 1, 0x7F, 0xFF };
        uint8_t bytes[sizeof(small)];
        mc_pixels *pixels;
        int width, height;
        memcpy(bytes, small, sizeof(small));
        if (i / 4 >= 6)
            bytes[i / 4] = values[i % 4];
        size_t size = i < sizeof(small) ? i : sizeof(small);
        mc_error *error = mc_picture_size(&width, &height, (const char *)bytes, size, pool);
        if (error == MC_OK)
            error = mc_picture_decode(&pixels, (const char *)bytes, size, &ctx, pool);
        refused += error != MC_OK;
        if (error != MC_OK)
            continue;
        ck_assert_int_eq(pixels->width, width);
        ck_assert_int_eq(pixels->height, height);
        mc_pixels_unref(pixels);
    }
    ck_assert_int_gt(refused, 40);
}
END_TEST

UNIT_MAIN("gif", pixels_and_what_is_transparent, broken_ones)
