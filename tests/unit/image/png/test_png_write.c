/* What we write is read back by libpng as it was, in the form that was asked for. */
#include "images.h"
#include "unit.h"

#include <png.h>
#include <pthread.h>

#include "image/png/png.h"
#include "samples.h"

static apr_hash_t *
builtins(void)
{
    apr_hash_t *formats = apr_hash_make(pool);
    mc_format_builtins(formats, pool);
    return formats;
}

static mc_format
png_format(int compression, int colors)
{
    mc_format format = *(mc_format *)apr_hash_get(builtins(), "PNG", APR_HASH_KEY_STRING);
    format.compression = compression;
    format.colors = colors;
    return format;
}

/* libpng's reading, straight R, G, B, A, premultiplied here. */
static mc_pixels *
read_back(const mc_buf *file)
{
    png_image reader = { .version = PNG_IMAGE_VERSION };
    ck_assert(png_image_begin_read_from_memory(&reader, file->data, file->size));
    reader.format = PNG_FORMAT_RGBA;
    uint8_t *rgba = apr_palloc(pool, PNG_IMAGE_SIZE(reader));
    ck_assert_msg(png_image_finish_read(&reader, NULL, rgba, 0, NULL), "%s", reader.message);
    ck_assert_msg(reader.warning_or_error == 0, "%s", reader.message);
    mc_pixels *pixels = clear_image((int)reader.width, (int)reader.height);
    for (int y = 0; y < pixels->height; y++)
        for (int x = 0; x < pixels->width; x++) {
            const uint8_t *p = rgba + ((size_t)y * reader.width + (size_t)x) * 4;
            sample_set(pixels, x, y, p[0], p[1], p[2], p[3]);
        }
    return pixels;
}

static mc_buf *
encode(mc_pixels *pixels, int compression, int colors, mc_purpose purpose)
{
    mc_buf *bytes;
    mc_format format = png_format(compression, colors);
    ck_ok(mc_format_encode(&bytes, &format, pixels, purpose, &ctx, pool));
    return bytes;
}

static int
color_type(const mc_buf *png)
{
    return png->data[25];
}

START_TEST(test_lossless)
{
    static const int widths[] = { 1, 2, 3, 5, 64, 131 };
    for (int k = 0; k < 6 * 4 * 2 * 3; k++) {
        mc_pixels *pixels = clear_image(widths[k % 6], 37);
        if (k / 48 == 0)
            sample_overlay(pixels);
        else if (k / 48 == 1)
            sample_photo(pixels);
        else
            sample_map(pixels, k);
        mc_buf *png = encode(pixels, k / 6 % 4, 0, k / 24 % 2 == 0 ? MC_FOR_STORE : MC_ON_THE_FLY);
        ck_assert_int_eq(sample_difference(pixels, read_back(png)), 0);
        mc_pixels *again;
        ck_ok(mc_image_decode(&again, png->data, png->size, &ctx, pool));
        ck_assert_int_eq(sample_difference(pixels, again), 0);
        mc_pixels_unref(again);
        apr_pool_clear(pool);
    }
}
END_TEST

START_TEST(test_noise_fits)
{
    mc_pixels *pixels = clear_image(300, 300);
    for (size_t i = 0; i < 300 * 300 * 4; i++)
        pixels->data[i] = i % 4 == 3 ? 255 : (uint8_t)sample_random();
    pixels->opacity = MC_OPACITY_UNKNOWN;
    for (int compression = 0; compression < 4; compression++)
        ck_assert_int_eq(sample_difference(pixels, read_back(encode(pixels, compression, 0, MC_ON_THE_FLY))), 0);
}
END_TEST

START_TEST(test_color_type)
{
    mc_pixels *photo = clear_image(64, 64), *overlay = clear_image(64, 64), *few = clear_image(64, 64);
    sample_photo(photo);
    sample_overlay(overlay);
    mc_pixels_fill(few, (const uint8_t[]){ 10, 20, 30, 40 });
    ck_assert_int_eq(color_type(encode(photo, MC_PNG_FAST, 0, MC_FOR_STORE)), 2);
    ck_assert_int_eq(color_type(encode(overlay, MC_PNG_FAST, 0, MC_FOR_STORE)), 6);
    ck_assert_int_eq(color_type(encode(few, MC_PNG_FAST, 0, MC_ON_THE_FLY)), 3);
    ck_assert_int_eq(color_type(encode(few, MC_PNG_FAST, 0, MC_FOR_STORE)), 6);
    ck_assert_int_eq(color_type(encode(few, MC_PNG_FAST, 16, MC_FOR_STORE)), 3);
    mc_pixels_fill(few, (const uint8_t[]){ 10, 20, 30, 255 });
    ck_assert_int_eq(color_type(encode(few, MC_PNG_FAST, 0, MC_FOR_STORE)), 3);
}
END_TEST

/* Every value with every alpha, and each of them at each place of four pixels. */
START_TEST(test_straight_colors)
{
    for (int shift = 0; shift < 4; shift++) {
        mc_pixels *pixels = clear_image(256 + shift, 256);
        for (int y = 0; y < 256; y++)
            for (int x = 0; x < 256; x++) {
                const uint8_t premultiplied = (uint8_t)(x < y ? x : y);
                uint8_t *bgra = pixels->data + (size_t)y * pixels->stride + (size_t)(x + shift) * 4;
                memset(bgra, premultiplied, 3);
                bgra[1] = (uint8_t)(premultiplied / 2);
                bgra[3] = (uint8_t)y;
            }
        pixels->opacity = MC_OPACITY_UNKNOWN;
        mc_buf *png = encode(pixels, MC_PNG_FAST, 0, MC_FOR_STORE);
        png_image reader = { .version = PNG_IMAGE_VERSION };
        ck_assert(png_image_begin_read_from_memory(&reader, png->data, png->size));
        reader.format = PNG_FORMAT_RGBA;
        uint8_t *rgba = apr_palloc(pool, PNG_IMAGE_SIZE(reader));
        ck_assert(png_image_finish_read(&reader, NULL, rgba, 0, NULL));
        for (int y = 0; y < 256; y++)
            for (int x = 0; x < 256; x++) {
                const uint8_t *p = rgba + ((size_t)y * reader.width + (size_t)(x + shift)) * 4;
                int value = x < y ? x : y;
                ck_assert_int_eq(p[0], y == 0 ? 0 : (value * 255 + y / 2) / y);
                ck_assert_int_eq(p[1], y == 0 ? 0 : (value / 2 * 255 + y / 2) / y);
                ck_assert_int_eq(p[2], p[0]);
                ck_assert_int_eq(p[3], y);
            }
        apr_pool_clear(pool);
    }
}
END_TEST

START_TEST(test_exact_palette_bounds)
{
    mc_pixels *pixels = clear_image(20, 20);
    mc_palette palette;
    uint8_t indices[400];
    for (int colors = 1; colors <= 257; colors++) {
        for (int i = 0; i < 400; i++)
            sample_set(pixels, i % 20, i / 20, (unsigned)(i % colors) & 255, 5, (unsigned)(i % colors) >> 8, 255);
        pixels->opacity = MC_OPACITY_UNKNOWN;
        ck_assert_int_eq(mc_palette_exact(&palette, indices, pixels, 256), colors <= 256);
        if (colors > 256)
            break;
        ck_assert_int_eq(palette.count, colors);
        mc_buf *reduced = encode(pixels, MC_PNG_FAST, 256, MC_FOR_STORE);
        ck_assert_int_eq(sample_difference(pixels, read_back(reduced)), 0);
        mc_buf *png = encode(pixels, MC_PNG_FAST, 0, MC_ON_THE_FLY);
        ck_assert_int_eq(png->data[24], colors <= 2 ? 1 : colors <= 4 ? 2 : colors <= 16 ? 4 : 8);
        ck_assert_int_eq(sample_difference(pixels, read_back(png)), 0);
    }
}
END_TEST

static double
mean_square(const mc_pixels *a, const mc_pixels *b)
{
    double sum = 0;
    for (size_t i = 0; i < a->capacity; i++)
        sum += (a->data[i] - b->data[i]) * (a->data[i] - b->data[i]);
    return sum / (double)a->capacity;
}

START_TEST(test_quantizing_quality)
{
    mc_pixels *photo = clear_image(256, 256), *overlay = clear_image(256, 256), *map = clear_image(256, 256);
    sample_photo(photo);
    sample_overlay(overlay);
    sample_map(map, 0);
    /* Peak signal to noise above 36 dB for imagery, above 44 dB for maps. */
    ck_assert_double_lt(mean_square(photo, read_back(encode(photo, MC_PNG_FAST, 256, MC_FOR_STORE))), 16);
    ck_assert_double_lt(mean_square(map, read_back(encode(map, MC_PNG_FAST, 64, MC_FOR_STORE))), 2.6);
    mc_pixels *reduced = read_back(encode(overlay, MC_PNG_FAST, 256, MC_FOR_STORE));
    /* What is opaque stays so, what is not there stays away. */
    for (size_t i = 0; i < 256 * 256; i++) {
        ck_assert_int_eq(overlay->data[i * 4 + 3] == 255, reduced->data[i * 4 + 3] == 255);
        ck_assert_int_eq(overlay->data[i * 4 + 3] == 0, reduced->data[i * 4 + 3] == 0);
    }
    for (int colors = 2; colors <= 256; colors += 127) {
        mc_buf *png = encode(photo, MC_PNG_FAST, colors, MC_FOR_STORE);
        ck_assert_int_le((int)mc_big32(png->data + 33), colors * 3);
        ck_assert_mem_eq(png->data + 37, "PLTE", 4);
    }
}
END_TEST

/* A tile of a metatile becomes what it would be alone, whatever its size and however many its colours. */
START_TEST(test_parts)
{
    static void (*const fill[])(mc_pixels *) = { sample_photo, sample_overlay };
    static const int widths[] = { 1, 15, 16, 17, 200 };
    mc_pixels *whole = clear_image(260, 220);
    for (int k = 0; k < 2 * 5; k++) {
        fill[k / 5](whole);
        int width = widths[k % 5];
        mc_pixels part = { .width = width, .height = 201, .stride = whole->stride };
        part.data = whole->data + 19 * whole->stride + (size_t)(260 - width) * 4;
        mc_pixels *alone = clear_image(width, 201);
        mc_pixels_copy(alone, 0, 0, &part);
        alone->opacity = MC_OPACITY_UNKNOWN;
        mc_buf *from_part = encode(&part, MC_PNG_FAST, 100, MC_FOR_STORE);
        mc_buf *from_alone = encode(alone, MC_PNG_FAST, 100, MC_FOR_STORE);
        ck_assert_uint_eq(from_part->size, from_alone->size);
        ck_assert_mem_eq(from_part->data, from_alone->data, from_alone->size);
        apr_pool_clear(pool);
        whole = clear_image(260, 220);
    }
}
END_TEST

/* A flat area keeps its exact colour, so that neighbouring tiles match. */
START_TEST(test_flat_color_stays)
{
    mc_pixels *map = clear_image(256, 256);
    sample_photo(map);
    for (int y = 0; y < 128; y++)
        for (int x = 0; x < 256; x++)
            sample_set(map, x, y, 171, 211, 223, 255);
    mc_pixels *reduced = read_back(encode(map, MC_PNG_FAST, 32, MC_FOR_STORE));
    ck_assert_mem_eq(map->data, reduced->data, 128 * map->stride);
}
END_TEST

START_TEST(test_blank)
{
    mc_buf *png, *again;
    ck_ok(mc_image_blank(&png, 256, 256, (const uint8_t[]){ 0, 0, 0, 0 }, pool));
    ck_assert_uint_eq(png->size, 116);
    ck_ok(mc_image_blank(&again, 256, 256, (const uint8_t[]){ 0, 0, 0, 0 }, pool));
    ck_assert_mem_eq(png->data, again->data, 116);
    /* 0x332211 at alpha 0x80, premultiplied, comes out un-premultiplied. */
    ck_ok(mc_image_blank(&png, 300, 7, (const uint8_t[]){ 9, 17, 26, 128 }, pool));
    ck_assert_int_eq(png->data[24], 1);
    ck_assert_int_eq(png->data[25], 3);
    ck_assert_mem_eq(png->data + 41, ((const uint8_t[]){ 52, 34, 18 }), 3);
    ck_assert_mem_eq(png->data + 52, "tRNS\x80", 5);
    mc_pixels *pixels = read_back(png);
    uint8_t bgra[4];
    ck_assert(mc_pixels_uniform(pixels, bgra));
    ck_assert_mem_eq(bgra, ((const uint8_t[]){ 9, 17, 26, 128 }), 4);
    ck_assert_int_eq(pixels->width, 300);
    ck_fails(LIMIT, mc_image_blank(&png, 0, 256, bgra, pool));
    ck_fails(LIMIT, mc_image_blank(&png, 256, 100000, bgra, pool));
}
END_TEST

static void *
many_blanks(void *baton)
{
    apr_pool_t *own;
    apr_pool_create_unmanaged_ex(&own, NULL, NULL);
    for (int i = 0; i < 400; i++) {
        mc_buf *png;
        mc_pixels *pixels = NULL;
        uint8_t bgra[4] = { (uint8_t)(i % 90), (uint8_t)(uintptr_t)baton, 3, 255 };
        mc_error *error = mc_image_blank(&png, 16, 16, bgra, own);
        if (error == MC_OK)
            error = mc_image_decode(&pixels, png->data, png->size, &ctx, own);
        bool right = error == MC_OK && memcmp(pixels->data, bgra, 4) == 0;
        mc_pixels_unref(pixels);
        if (!right)
            return baton;
        if (i % 10 == 0)
            apr_pool_clear(own);
    }
    apr_pool_destroy(own);
    return NULL;
}

START_TEST(test_threads)
{
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, many_blanks, (void *)(uintptr_t)(i / 2 + 1)), 0);
    for (int i = 0; i < 4; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        ck_assert_ptr_null(failed);
    }
}
END_TEST

UNIT_MAIN("png_write", test_lossless, test_noise_fits, test_color_type, test_straight_colors, test_exact_palette_bounds,
          test_quantizing_quality, test_parts, test_flat_color_stays, test_blank, test_threads)
