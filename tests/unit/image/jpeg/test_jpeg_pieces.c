/* Maps that are mostly of one colour: coded piece by piece, they decode to what the ordinary way decodes to. */
#include "images.h"
#include "unit.h"

#include "base/workers.h"
#include "image/jpeg/jpeg.h"
#include "samples.h"

static mc_format jpeg;

static mc_buf *
encode(mc_pixels *pixels, mc_purpose purpose)
{
    mc_buf *bytes;
    ck_ok(mc_format_encode(&bytes, &jpeg, pixels, purpose, &ctx, pool));
    return bytes;
}

static void
make_format(int quality)
{
    apr_hash_t *formats = apr_hash_make(pool);
    mc_format_builtins(formats, pool);
    jpeg = *(mc_format *)apr_hash_get(formats, "JPEG", APR_HASH_KEY_STRING);
    jpeg.quality = quality;
}

/* Two backgrounds and `count` spots of noise, some of them at the edges. */
static mc_pixels *
spotted(int width, int height, int count)
{
    mc_pixels *pixels = clear_image(width, height);
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++)
            sample_set(pixels, x, y, y < height / 2 ? 0 : 240, 20, 60, 255);
    for (int i = 0; i < count; i++) {
        int left = (int)sample_random() % width, top = (int)sample_random() % height;
        for (int y = top; y < top + 9 && y < height; y++)
            for (int x = left; x < left + 7 && x < width; x++)
                sample_set(pixels, x, y, sample_random() % 256, sample_random() % 256, sample_random() % 256, 255);
    }
    return pixels;
}

static int
interval_of(const mc_buf *bytes)
{
    mc_jpeg_parts parts;
    ck_assert(mc_jpeg_parse(&parts, bytes->data, bytes->size));
    return parts.restart_interval;
}

/* Bytes after the header: what is stored leaves out of its tables what it does not need. */
static size_t
count_coded_bytes(const mc_buf *bytes)
{
    mc_jpeg_parts parts;
    ck_assert(mc_jpeg_parse(&parts, bytes->data, bytes->size));
    return bytes->size - parts.scan;
}

START_TEST(test_same_pixels)
{
    static const int sizes[][2] = { { 256, 256 }, { 512, 331 }, { 1024, 1024 }, { 64, 2000 }, { 640, 481 } };
    for (int k = 0; k < 30; k++) {
        make_format(40 + k * 2);
        mc_pixels *map = spotted(sizes[k % 5][0], sizes[k % 5][1], k % 7);
        mc_buf *pieces = encode(map, MC_ON_THE_FLY), *whole = encode(map, MC_FOR_STORE);
        ck_assert_int_eq(interval_of(pieces), 4);
        ck_assert_int_eq(interval_of(whole), map->width / 16);
        ck_assert_int_eq(sample_difference(decoded_image(pieces), decoded_image(whole)), 0);
        /* A marker for each piece, and the alignment and the predictors that it starts anew. */
        size_t count = (size_t)map->width / 64 * (size_t)((map->height + 15) / 16);
        ck_assert_uint_lt(count_coded_bytes(pieces), count_coded_bytes(whole) + count * 8);
        apr_pool_clear(pool);
    }
}
END_TEST

START_TEST(test_workers_make_the_same_bytes)
{
    make_format(75);
    mc_pixels *map = spotted(1024, 1024, 250);
    mc_buf *alone = encode(map, MC_ON_THE_FLY);
    ck_assert_int_eq(interval_of(alone), 4);
    ck_ok(mc_workers_create(&process.workers, 3, pool));
    mc_buf *helped = encode(map, MC_ON_THE_FLY);
    mc_workers_destroy(process.workers);
    ck_assert_uint_eq(alone->size, helped->size);
    ck_assert_mem_eq(alone->data, helped->data, alone->size);
}
END_TEST

START_TEST(test_more_colors_than_remembered)
{
    make_format(75);
    mc_pixels *map = clear_image(256, 256);
    for (int y = 0; y < 256; y++)
        for (int x = 0; x < 256; x++)
            sample_set(map, x, y, (unsigned)(y / 16 < 10 ? 210 : y / 16 * 12), 0, 0, 255);
    mc_buf *pieces = encode(map, MC_ON_THE_FLY);
    ck_assert_int_eq(interval_of(pieces), 4);
    ck_assert_int_eq(sample_difference(decoded_image(pieces), decoded_image(encode(map, MC_FOR_STORE))), 0);
}
END_TEST

/* Dense maps, odd widths and other kinds of JPEG go the ordinary way. */
START_TEST(test_where_it_does_not_pay)
{
    make_format(75);
    mc_pixels *dense = clear_image(256, 256);
    sample_photo(dense);
    ck_assert_int_eq(interval_of(encode(dense, MC_ON_THE_FLY)), 16);
    ck_assert_int_eq(interval_of(encode(spotted(250, 256, 2), MC_ON_THE_FLY)), 16);
    ck_assert_int_eq(interval_of(encode(spotted(128, 32, 0), MC_ON_THE_FLY)), 8);
    jpeg.optimize = MC_JPEG_OPTIMIZED;
    ck_assert_int_eq(interval_of(encode(spotted(256, 256, 2), MC_ON_THE_FLY)), 0);
    jpeg.optimize = MC_JPEG_SPLICED;
    jpeg.photometric = 1;
    ck_assert_int_eq(interval_of(encode(spotted(256, 256, 2), MC_ON_THE_FLY)), 32);
}
END_TEST

UNIT_MAIN("jpeg_pieces", test_same_pixels, test_workers_make_the_same_bytes, test_more_colors_than_remembered,
          test_where_it_does_not_pay)
