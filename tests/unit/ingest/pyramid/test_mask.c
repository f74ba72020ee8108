/* Which pixels of a JPEG hold data: written into it and read again. */
#include "ingest/pyramid/mask.h"

#include <apr_hash.h>
#include <string.h>

#include "unit.h"

static mc_pixels *
grey(int width, int height)
{
    static const uint8_t color[4] = { 90, 90, 90, 255 };
    mc_pixels *pixels;
    ck_ok(mc_pixels_create(&pixels, width, height, false, pool));
    mc_pixels_fill(pixels, color);
    return mc_pixels_attach(pixels, pool);
}

static uint8_t *
pixel(mc_pixels *pixels, int x, int y)
{
    return pixels->data + (size_t)y * pixels->stride + (size_t)x * 4;
}

static mc_buf *
jpeg_of(mc_pixels *pixels)
{
    apr_hash_t *formats = apr_hash_make(pool);
    mc_buf *jpeg;
    mc_format_builtins(formats, pool);
    ck_ok(
        mc_format_encode(&jpeg, apr_hash_get(formats, "JPEG", APR_HASH_KEY_STRING), pixels, MC_FOR_STORE, &ctx, pool));
    return jpeg;
}

/* Pixel x, y holds data where data(x, y). */
static void
check(int width, int height, bool (*data)(int x, int y))
{
    mc_pixels *pixels = grey(width, height), *read;
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++)
            if (!data(x, y))
                memset(pixel(pixels, x, y), 0, 4);
    mc_mask *mask = mc_mask_create(pixels, pool);
    ck_assert_ptr_nonnull(mask);
    mc_buf *masked;
    ck_ok(mc_mask_insert(&masked, jpeg_of(grey(width, height)), mask, pool));
    ck_ok(mc_image_decode(&read, masked->data, masked->size, &ctx, pool));
    ck_assert(mc_mask_apply(read, masked->data, masked->size));
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++)
            ck_assert_int_eq(pixel(read, x, y)[3], data(x, y) ? 255 : 0);
    mc_pixels_unref(read);
}

static bool
left_half(int x, int y)
{
    (void)y;
    return x < 100;
}

static bool
checkers(int x, int y)
{
    return ((x + y) & 1) != 0;
}

static bool
nothing(int x, int y)
{
    (void)x, (void)y;
    return false;
}

START_TEST(comes_back)
{
    check(256, 256, left_half);
    check(256, 256, nothing);
    check(512, 512, checkers); /* in several comments: none may have more than 64 KB */
    check(1, 1, nothing);
}
END_TEST

START_TEST(none_where_all_is_data)
{
    ck_assert_ptr_null(mc_mask_create(grey(16, 16), pool));
    mc_pixels *pixels = grey(16, 16);
    mc_buf *jpeg = jpeg_of(pixels);
    ck_assert(mc_mask_apply(pixels, jpeg->data, jpeg->size));
    ck_assert_int_eq(pixel(pixels, 3, 3)[3], 255);
    ck_assert(mc_mask_apply(pixels, (const uint8_t *)"\x89PNG", 4));
}
END_TEST

START_TEST(lies_are_refused)
{
    mc_pixels *pixels = grey(16, 16);
    memset(pixel(pixels, 3, 3), 0, 4);
    mc_mask *mask = mc_mask_create(pixels, pool);
    mc_buf *masked;
    ck_ok(mc_mask_insert(&masked, jpeg_of(grey(16, 16)), mask, pool));
    mc_pixels *other = grey(8, 8);
    ck_assert(!mc_mask_apply(other, masked->data, masked->size)); /* of a larger image */
    other = grey(32, 32);
    ck_assert(!mc_mask_apply(other, masked->data, masked->size)); /* of a smaller one */
    for (size_t i = 2; i < masked->size; i++) {                   /* no byte, and no end, makes it reach beyond */
        mc_pixels *again = grey(16, 16);
        uint8_t kept = masked->data[i];
        masked->data[i] = (uint8_t)(kept ^ 0xff);
        (void)mc_mask_apply(again, masked->data, masked->size);
        (void)mc_mask_apply(again, masked->data, i);
        masked->data[i] = kept;
    }
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = { comes_back, none_where_all_is_data, lies_are_refused };
    return unit_run("mask", tests, sizeof(tests) / sizeof(tests[0]));
}
