/* WebP: what is written is read back; broken files are errors. */
#include "images.h"
#include "unit.h"

#include <stdlib.h>

#include "image/codec.h"
#include "samples.h"

static mc_format
webp_format(bool lossless, int quality, int effort)
{
    apr_hash_t *formats = apr_hash_make(pool);
    mc_format_builtins(formats, pool);
    mc_format format = *(mc_format *)apr_hash_get(formats, "WEBP", APR_HASH_KEY_STRING);
    format.lossless = lossless;
    format.quality = quality;
    format.effort = effort;
    return format;
}

static mc_buf *
encode_webp_sample(mc_pixels *pixels, bool lossless, int quality, int effort, mc_purpose purpose)
{
    mc_buf *bytes;
    mc_format format = webp_format(lossless, quality, effort);
    pixels->opacity = MC_OPACITY_UNKNOWN;
    ck_ok(mc_format_encode(&bytes, &format, pixels, purpose, &ctx, pool));
    ck_assert_int_eq(mc_image_sniff(bytes->data, bytes->size), MC_CODING_WEBP);
    return bytes;
}

static mc_pixels *
decode_webp_sample(const mc_buf *bytes)
{
    mc_pixels *pixels;
    int width, height;
    ck_ok(mc_image_decode(&pixels, bytes->data, bytes->size, &ctx, pool));
    ck_ok(mc_image_size(&width, &height, bytes->data, bytes->size, pool));
    ck_assert_int_eq(width, pixels->width);
    ck_assert_int_eq(height, pixels->height);
    return mc_pixels_attach(pixels, pool);
}

START_TEST(lossless_is_lossless)
{
    static void (*const fill[])(mc_pixels *) = { sample_photo, sample_overlay };
    for (int k = 0; k < 8; k++) {
        mc_pixels *pixels = clear_image(k < 4 ? 61 : 256, 1 + k * 37);
        fill[k % 2](pixels);
        mc_buf *bytes = encode_webp_sample(pixels, true, 80, k % 3 - 1, k % 4 < 2 ? MC_FOR_STORE : MC_ON_THE_FLY);
        mc_pixels *again = decode_webp_sample(bytes);
        ck_assert_int_le(sample_difference(pixels, again), k % 2 == 0 ? 0 : 1); /* of straight and premultiplied */
        ck_assert_int_eq(mc_pixels_opacity(again), mc_pixels_opacity(pixels));
    }
}
END_TEST

START_TEST(quality_decides_size_and_loss)
{
    mc_pixels *map = clear_image(256, 256);
    sample_map(map, 3);
    mc_buf *small = encode_webp_sample(map, false, 20, -1, MC_FOR_STORE);
    mc_buf *good = encode_webp_sample(map, false, 90, -1, MC_FOR_STORE);
    mc_buf *quick = encode_webp_sample(map, false, 90, 0, MC_FOR_STORE);
    ck_assert_uint_lt(small->size, good->size);
    ck_assert_uint_ne(quick->size, good->size);
    ck_assert_int_lt(sample_difference(map, decode_webp_sample(good)), 100);
}
END_TEST

START_TEST(transparent_pixels_stay_so)
{
    mc_pixels *pixels = clear_image(100, 100);
    for (int y = 30; y < 70; y++)
        for (int x = 20; x < 50; x++)
            sample_set(pixels, x, y, 200, 40, 10, 255);
    mc_pixels *again = decode_webp_sample(encode_webp_sample(pixels, false, 80, -1, MC_ON_THE_FLY));
    ck_assert_int_eq(mc_pixels_opacity(again), MC_TRANSLUCENT);
    for (int y = 0; y < 100; y++)
        for (int x = 0; x < 100; x++)
            ck_assert_int_eq(again->data[(size_t)y * again->stride + (size_t)x * 4 + 3],
                             x >= 20 && x < 50 && y >= 30 && y < 70 ? 255 : 0);
}
END_TEST

START_TEST(broken_files_are_errors)
{
    mc_pixels *pixels = clear_image(64, 64), *again;
    int width, height;
    sample_photo(pixels);
    for (int lossless = 0; lossless < 2; lossless++) {
        mc_buf *bytes = encode_webp_sample(pixels, lossless, 80, -1, MC_FOR_STORE);
        for (size_t size = 0; size < bytes->size; size += size < 64 ? 1 : 97)
            ck_fails(CORRUPT, mc_image_decode(&again, bytes->data, size, &ctx, pool));
    }
    /* A head that claims more pixels than the limit, and one with a kind of chunk that is none. */
    uint8_t head[64] = "RIFF\x38\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0\xff\xff\x7f\xff\xff\x7f";
    ck_fails(CORRUPT, mc_image_size(&width, &height, head, sizeof(head), pool));
    ck_fails(CORRUPT, mc_image_decode(&again, head, sizeof(head), &ctx, pool));
    memcpy(head + 12, "ICCP", 4);
    ck_fails(CORRUPT, mc_image_size(&width, &height, head, sizeof(head), pool));
}
END_TEST

/* As libwebp writes it at its highest effort: 28 bytes. */
START_TEST(a_tile_of_one_colour_may_be_short)
{
    static const char bytes[] = "RIFF\x14\0\0\0WEBPVP8L\x08\0\0\0\x2f\xff\xc0\x3f\x10\x88\x88\x08";
    const size_t size = sizeof(bytes) - 1;
    mc_buf *data = mc_buf_attach(mc_buf_create(0, 64), pool);
    ck_ok(mc_buf_append(data, bytes, size, pool));
    mc_pixels *pixels = decode_webp_sample(data);
    ck_assert(pixels->width == 256 && pixels->height == 256 && mc_pixels_opacity(pixels) == MC_EMPTY);
    for (size_t cut = 0; cut < size; cut++) { /* each in memory of its own, for sanitizers */
        mc_pixels *broken;
        uint8_t *part = malloc(cut + 1);
        memcpy(part + 1, bytes, cut);
        ck_fails(CORRUPT, mc_image_decode(&broken, part + 1, cut, &ctx, pool));
        free(part);
    }
}
END_TEST

START_TEST(sides_beyond_the_format_are_refused)
{
    mc_pixels *wide = clear_image(16384, 1);
    mc_buf *bytes;
    mc_format format = webp_format(false, 80, -1);
    ck_fails(LIMIT, mc_format_encode(&bytes, &format, wide, MC_ON_THE_FLY, &ctx, pool));
}
END_TEST

UNIT_MAIN("webp", lossless_is_lossless, quality_decides_size_and_loss, transparent_pixels_stay_so,
          broken_files_are_errors, a_tile_of_one_colour_may_be_short, sides_beyond_the_format_are_refused)
