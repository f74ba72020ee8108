/* JPEG in and out, and joined without decoding. */
#include "images.h"
#include "unit.h"

#include <unistd.h>

#include "base/workers.h"
#include "image/jpeg/jpeg.h"
#include "samples.h"

static mc_buf *
encode(mc_pixels *pixels, int quality, int photometric, int optimize)
{
    apr_hash_t *formats = apr_hash_make(pool);
    mc_format_builtins(formats, pool);
    mc_format format = *(mc_format *)apr_hash_get(formats, "JPEG", APR_HASH_KEY_STRING);
    format.quality = quality;
    format.photometric = photometric;
    format.optimize = optimize;
    mc_buf *bytes;
    ck_ok(mc_format_encode(&bytes, &format, pixels, MC_FOR_STORE, &ctx, pool));
    return bytes;
}

/* Decoded without smoothing chroma over block borders, where joined and single tiles are the same to the bit. */
static mc_pixels *
decode_plain(const mc_buf *bytes)
{
    struct jpeg_decompress_struct reader;
    struct jpeg_error_mgr errors;
    reader.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&reader);
    jpeg_mem_src(&reader, bytes->data, bytes->size);
    jpeg_read_header(&reader, TRUE);
    reader.do_fancy_upsampling = FALSE;
    reader.out_color_space = JCS_EXT_BGRA;
    jpeg_start_decompress(&reader);
    mc_pixels *pixels = clear_image((int)reader.output_width, (int)reader.output_height);
    while (reader.output_scanline < reader.output_height) {
        JSAMPROW row = pixels->data + reader.output_scanline * pixels->stride;
        jpeg_read_scanlines(&reader, &row, 1);
    }
    jpeg_finish_decompress(&reader);
    ck_assert_int_eq((int)errors.num_warnings, 0);
    jpeg_destroy_decompress(&reader);
    return pixels;
}

typedef struct foreign {
    J_COLOR_SPACE in, stored;
    int components, sampling; /* of the first component, across and down */
    bool progressive, arithmetic, optimized;
} foreign;

/* As other programs write it, from noise-free colours. */
static mc_buf *
make_foreign(const foreign *f, int width, int height, int shift)
{
    struct jpeg_compress_struct writer;
    struct jpeg_error_mgr errors;
    unsigned char *data = NULL;
    unsigned long size = 0;
    writer.err = jpeg_std_error(&errors);
    jpeg_create_compress(&writer);
    jpeg_mem_dest(&writer, &data, &size);
    writer.image_width = (JDIMENSION)width;
    writer.image_height = (JDIMENSION)height;
    writer.input_components = f->components;
    writer.in_color_space = f->in;
    jpeg_set_defaults(&writer);
    jpeg_set_colorspace(&writer, f->stored);
    jpeg_set_quality(&writer, 85, TRUE);
    writer.comp_info[0].h_samp_factor = writer.comp_info[0].v_samp_factor = f->sampling;
    writer.optimize_coding = f->optimized;
    writer.arith_code = f->arithmetic;
    if (f->progressive)
        jpeg_simple_progression(&writer);
    writer.density_unit = 1;
    writer.X_density = (UINT16)(90 + shift);
    jpeg_start_compress(&writer, TRUE);
    uint8_t *row = malloc((size_t)width * 4);
    while (writer.next_scanline < writer.image_height) {
        for (int x = 0; x < width * f->components; x++)
            row[x] = (uint8_t)(127 + 100 * sin((x / f->components + shift) / 19.0 + x % f->components) *
                                         cos(writer.next_scanline / 23.0));
        jpeg_write_scanlines(&writer, &row, 1);
    }
    jpeg_finish_compress(&writer);
    mc_buf *bytes = mc_buf_attach(mc_buf_copy(data, size), pool);
    free(row);
    free(data);
    jpeg_destroy_compress(&writer);
    return bytes;
}

START_TEST(test_round_trip)
{
    mc_pixels *map = clear_image(131, 77);
    sample_map(map, 0);
    for (int optimize = 0; optimize < 4; optimize++)
        for (int photometric = 0; photometric < 2; photometric++) {
            mc_buf *bytes = encode(map, 95, photometric, optimize);
            mc_pixels *back = decoded_image(bytes);
            int width, height;
            double sum = 0;
            for (size_t k = 0; k < map->capacity; k++)
                sum += abs(map->data[k] - back->data[k]);
            ck_assert_double_lt(sum / (double)map->capacity, photometric == 0 ? 6 : 2);
            ck_assert_int_eq(back->opacity, MC_OPAQUE);
            ck_assert_int_eq(back->data[3], 255);
            ck_ok(mc_image_size(&width, &height, bytes->data, bytes->size, pool));
            ck_assert_int_eq(width, 131);
            ck_assert_int_eq(height, 77);
        }
}
END_TEST

/* Drawing is decoding and mc_pixels_over, inside, across each edge and for views; also of a PNG. */
START_TEST(test_draw)
{
    static const int places[][2] = { { 0, 0 },  { 17, 9 }, { 36, 23 }, { -5, 3 },
                                     { 4, -6 }, { 37, 9 }, { 9, 24 },  { -200, 0 } };
    mc_pixels *tile = clear_image(64, 40), *base = clear_image(140, 90);
    sample_map(tile, 5);
    mc_buf *jpeg = encode(tile, 80, 0, MC_JPEG_SPLICED), *png;
    apr_hash_t *formats = apr_hash_make(pool);
    mc_format_builtins(formats, pool);
    sample_overlay(tile);
    ck_ok(mc_format_encode(&png, apr_hash_get(formats, "PNG", APR_HASH_KEY_STRING), tile, MC_ON_THE_FLY, &ctx, pool));
    for (int k = 0; k < 8 * 2; k++) {
        const mc_buf *file = k < 8 ? jpeg : png;
        sample_photo(base);
        mc_pixels *expected = clear_image(140, 90);
        mc_pixels_copy(expected, 0, 0, base);
        mc_pixels view = { .width = 100, .height = 63, .stride = base->stride, .data = base->data + 20 * 4 };
        mc_pixels other = { .width = 100, .height = 63, .stride = base->stride, .data = expected->data + 20 * 4 };
        mc_pixels_over(&other, places[k % 8][0], places[k % 8][1], decoded_image(file));
        ck_ok(mc_image_draw(&view, places[k % 8][0], places[k % 8][1], file->data, file->size, &ctx, pool));
        ck_assert_int_eq(sample_difference(base, expected), 0);
    }
    mc_pixels *whole = clear_image(64, 40), *larger = clear_image(65, 40);
    ck_ok(mc_image_draw(whole, 0, 0, jpeg->data, jpeg->size, &ctx, pool));
    ck_assert_int_eq(whole->opacity, MC_OPAQUE);
    ck_ok(mc_image_draw(larger, 0, 0, jpeg->data, jpeg->size, &ctx, pool));
    ck_assert_int_eq(mc_pixels_opacity(larger), MC_TRANSLUCENT);
    ck_fails(CORRUPT, mc_image_draw(whole, 0, 0, jpeg->data, jpeg->size / 2, &ctx, pool));
    ck_fails(CORRUPT, mc_image_draw(whole, 1, 0, jpeg->data, jpeg->size / 2, &ctx, pool));
}
END_TEST

/* Of a tile that lies across an edge only a part is decoded: the same pixels as of the whole. */
START_TEST(test_draw_parts)
{
    static const foreign forms[] = {
        { JCS_RGB, JCS_YCbCr, 3, 2, false, false, false }, { JCS_RGB, JCS_YCbCr, 3, 2, true, false, false },
        { JCS_RGB, JCS_YCbCr, 3, 1, false, true, false },  { JCS_GRAYSCALE, JCS_GRAYSCALE, 1, 1, false, false, true },
        { JCS_CMYK, JCS_YCCK, 4, 2, false, false, false },
    };
    mc_pixels *tile = clear_image(256, 256);
    sample_photo(tile);
    for (int k = 0; k < 240; k++) {
        mc_buf *file = k % 6 < 5 ? make_foreign(&forms[k % 6], 200, 120, k) : encode(tile, 80, 0, MC_JPEG_SPLICED);
        mc_pixels *base = clear_image(170, 150), *expected = clear_image(170, 150);
        int x = (int)(sample_random() % 440) - 270, y = (int)(sample_random() % 420) - 270;
        mc_pixels_over(expected, x, y, decoded_image(file));
        ck_ok(mc_image_draw(base, x, y, file->data, file->size, &ctx, pool));
        ck_assert_msg(sample_difference(base, expected) == 0, "form %d at %d, %d: %d", k % 6, x, y,
                      sample_difference(base, expected));
        ck_assert_int_eq(mc_pixels_opacity(base), mc_pixels_opacity(expected));
        apr_pool_clear(pool);
        tile = clear_image(256, 256);
        sample_photo(tile);
    }
}
END_TEST

START_TEST(test_transparent_becomes_black)
{
    mc_pixels *clear = clear_image(32, 32);
    mc_pixels *back = decoded_image(encode(clear, 90, 0, MC_JPEG_SPLICED));
    ck_assert_int_eq(back->data[0] | back->data[1] | back->data[2], 0);
    ck_assert_int_eq(back->data[3], 255);
}
END_TEST

START_TEST(test_fixed_tables)
{
    mc_pixels *map = clear_image(256, 256);
    sample_map(map, 0);
    mc_jpeg_parts parts;
    size_t offsets[17];
    mc_buf *bytes = encode(map, 90, 0, MC_JPEG_SPLICED);
    ck_assert(mc_jpeg_parse(&parts, bytes->data, bytes->size));
    ck_assert_int_eq(parts.restart_interval, 16);
    ck_assert(mc_jpeg_segments(offsets, 16, &parts));
    mc_buf *optimized = encode(map, 90, 0, MC_JPEG_OPTIMIZED);
    ck_assert(mc_jpeg_parse(&parts, optimized->data, optimized->size));
    ck_assert_int_eq(parts.restart_interval, 0);
    ck_assert_uint_lt(optimized->size, bytes->size);
}
END_TEST

/* Sure that the next encoding finds somebody to help. */
static void
wait_for_workers(int count)
{
    for (int i = 0; i < 30000 && mc_workers_idle(process.workers) < count; i++)
        usleep(1000);
    ck_assert_int_eq(mc_workers_idle(process.workers), count);
}

/* Strips make the same bytes as one encoder does. */
START_TEST(test_strips)
{
    static const int heights[] = { 511, 512, 640, 1029 };
    mc_workers *workers;
    ck_ok(mc_workers_create(&workers, 4, pool));
    for (int k = 0; k < 4 * 3; k++) {
        static const int optimize[] = { MC_JPEG_SPLICED, MC_JPEG_PLAIN, MC_JPEG_OPTIMIZED };
        mc_pixels *map = clear_image(150 + k, heights[k % 4]);
        sample_map(map, k);
        mc_buf *alone = encode(map, 85, k % 2, optimize[k / 4]);
        process.workers = workers;
        wait_for_workers(4);
        mc_buf *together = encode(map, 85, k % 2, optimize[k / 4]);
        process.workers = NULL;
        ck_assert_uint_eq(alone->size, together->size);
        ck_assert_mem_eq(alone->data, together->data, alone->size);
        ck_assert_int_eq(sample_difference(decoded_image(alone), decoded_image(together)), 0);
    }
    /* A part of a larger image. */
    mc_pixels *whole = clear_image(700, 900);
    sample_photo(whole);
    mc_pixels part = { .width = 300, .height = 600, .stride = whole->stride, .data = whole->data + 50 * 4 };
    mc_buf *alone = encode(&part, 75, 0, MC_JPEG_SPLICED);
    process.workers = workers;
    wait_for_workers(4);
    mc_buf *together = encode(&part, 75, 0, MC_JPEG_SPLICED);
    ck_assert_uint_eq(alone->size, together->size);
    ck_assert_mem_eq(alone->data, together->data, alone->size);
    process.workers = NULL;
    mc_workers_destroy(workers);
}
END_TEST

START_TEST(test_color_spaces)
{
    static const foreign forms[] = {
        { JCS_GRAYSCALE, JCS_GRAYSCALE, 1, 1, false, false, false },
        { JCS_CMYK, JCS_CMYK, 4, 1, false, false, false },
        { JCS_CMYK, JCS_YCCK, 4, 2, false, false, false },
        { JCS_RGB, JCS_YCbCr, 3, 2, true, false, false },
        { JCS_RGB, JCS_RGB, 3, 1, false, true, false },
    };
    for (int i = 0; i < 5; i++) {
        mc_pixels *p = decoded_image(make_foreign(&forms[i], 50, 40, 0));
        /* The first pixel's channels, as make_foreign() computes them. */
        double c[4];
        for (int k = 0; k < 4; k++)
            c[k] = 127 + 100 * sin((double)(k % forms[i].components));
        double red = c[0], blue = c[2];
        if (forms[i].components == 1)
            blue = c[0];
        if (forms[i].components == 4) {
            red = c[0] * c[3] / 255; /* Adobe's files hold what is left of each colour */
            blue = c[2] * c[3] / 255;
        }
        ck_assert_msg(fabs(p->data[2] - red) < 14 && fabs(p->data[0] - blue) < 14, "form %d: %d %d, not %f %f", i,
                      p->data[2], p->data[0], red, blue);
        ck_assert_int_eq(p->data[3], 255);
    }
}
END_TEST

/* From here on `pool` is one that can be cleared each round, so that thousands of rounds need no more than one. */
static apr_pool_t *
enter_round(void)
{
    apr_pool_t *outer = pool;
    apr_pool_create(&pool, outer);
    ctx.pool = pool;
    return outer;
}

static void
leave_round(apr_pool_t *outer)
{
    apr_pool_destroy(pool);
    pool = ctx.pool = outer;
}

START_TEST(test_truncation)
{
    static const foreign forms[] = { { JCS_RGB, JCS_YCbCr, 3, 2, false, false, false },
                                     { JCS_RGB, JCS_YCbCr, 3, 2, true, false, false },
                                     { JCS_RGB, JCS_RGB, 3, 1, false, true, false } };
    for (int i = 0; i < 3; i++) {
        mc_buf *file = make_foreign(&forms[i], 40, 33, 0);
        apr_pool_t *outer = enter_round();
        for (size_t size = 0; size < file->size; size++) {
            mc_pixels *pixels;
            mc_buf *cut = mc_buf_copy(file->data, size);
            ck_fails(CORRUPT, mc_image_decode(&pixels, cut->data, cut->size, &ctx, pool));
            mc_buf_unref(cut);
            apr_pool_clear(pool);
        }
        for (size_t k = 0; k < file->size * 4; k++) {
            mc_pixels *pixels = NULL;
            size_t at = k % file->size;
            uint8_t kept = file->data[at];
            file->data[at] = (uint8_t)sample_random();
            mc_error_ignore(mc_image_decode(&pixels, file->data, file->size, &ctx, pool));
            mc_pixels_unref(pixels);
            file->data[at] = kept;
            apr_pool_clear(pool);
        }
        leave_round(outer);
    }
}
END_TEST

static void
check_mosaic(mc_buf *const *tiles, int columns, int rows, const mc_buf *joined, int width, int height)
{
    ck_assert_ptr_nonnull(joined);
    mc_pixels *whole = decode_plain(joined), *expected = clear_image(width * columns, height * rows);
    for (int i = 0; i < columns * rows; i++)
        mc_pixels_copy(expected, i % columns * width, i / columns * height, decode_plain(tiles[i]));
    ck_assert_int_eq(sample_difference(whole, expected), 0);
}

START_TEST(test_join_own)
{
    static const int sizes[] = { 256, 16, 64, 400 };
    for (int k = 0; k < 8; k++) {
        int size = sizes[k / 2];
        mc_buf *tiles[12], *joined;
        for (int i = 0; i < 12; i++) {
            mc_pixels *p = clear_image(size, size);
            sample_map(p, i * 37);
            tiles[i] = encode(p, 80, k % 2, i % 2 == 0 ? MC_JPEG_SPLICED : MC_JPEG_PLAIN);
        }
        ck_ok(mc_jpeg_join(&joined, tiles, 4, 3, (const uint8_t[]){ 1, 2, 3 }, &ctx, pool));
        check_mosaic(tiles, 4, 3, joined, size, size);
    }
}
END_TEST

START_TEST(test_join_foreign)
{
    static const foreign forms[] = {
        { JCS_RGB, JCS_YCbCr, 3, 2, false, false, false },          { JCS_RGB, JCS_YCbCr, 3, 2, false, false, true },
        { JCS_RGB, JCS_YCbCr, 3, 1, true, false, false },           { JCS_RGB, JCS_YCbCr, 3, 2, false, true, false },
        { JCS_GRAYSCALE, JCS_GRAYSCALE, 1, 1, false, false, true },
    };
    for (int k = 0; k < 5; k++) {
        mc_buf *tiles[6], *joined;
        for (int i = 0; i < 6; i++)
            tiles[i] = make_foreign(&forms[k], 64, 96, i);
        ck_ok(mc_jpeg_join(&joined, tiles, 3, 2, (const uint8_t[]){ 1, 2, 3 }, &ctx, pool));
        check_mosaic(tiles, 3, 2, joined, 64, 96);
    }
}
END_TEST

/* Ours and the same quality of others' side by side. */
START_TEST(test_join_mixed)
{
    mc_buf *tiles[4], *joined;
    mc_pixels *p = clear_image(64, 64);
    for (int i = 0; i < 4; i++) {
        sample_map(p, i * 9);
        tiles[i] = encode(p, 85, 0, i % 2 == 0 ? MC_JPEG_SPLICED : MC_JPEG_OPTIMIZED);
    }
    ck_ok(mc_jpeg_join(&joined, tiles, 2, 2, (const uint8_t[]){ 1, 2, 3 }, &ctx, pool));
    check_mosaic(tiles, 2, 2, joined, 64, 64);
}
END_TEST

START_TEST(test_join_missing)
{
    for (int optimize = 0; optimize < 4; optimize += 3) {
        mc_buf *tiles[6] = { 0 }, *joined;
        mc_pixels *p = clear_image(64, 64);
        sample_map(p, 0);
        tiles[1] = encode(p, 90, 0, optimize);
        tiles[5] = encode(p, 90, 0, optimize);
        ck_ok(mc_jpeg_join(&joined, tiles, 3, 2, (const uint8_t[]){ 200, 100, 50 }, &ctx, pool));
        ck_assert_ptr_nonnull(joined);
        mc_pixels *whole = decode_plain(joined), *tile = decode_plain(tiles[1]);
        const uint8_t *corner = whole->data, *last = whole->data + 127 * whole->stride + 4 * 127;
        ck_assert_int_le(abs(corner[2] - 200) + abs(corner[1] - 100) + abs(corner[0] - 50), 6);
        ck_assert_mem_eq(corner, last, 4);
        for (int y = 0; y < 64; y++)
            ck_assert_mem_eq(whole->data + (size_t)y * whole->stride + 64 * 4, tile->data + (size_t)y * tile->stride,
                             64 * 4);
    }
    mc_buf *none[2] = { 0 }, *joined;
    ck_ok(mc_jpeg_join(&joined, none, 2, 1, (const uint8_t[]){ 0, 0, 0 }, &ctx, pool));
    ck_assert_ptr_null(joined);
}
END_TEST

static mc_buf *
join_two(mc_buf *a, mc_buf *b)
{
    mc_buf *tiles[2] = { a, b }, *joined;
    ck_ok(mc_jpeg_join(&joined, tiles, 2, 1, (const uint8_t[]){ 0, 0, 0 }, &ctx, pool));
    return joined;
}

START_TEST(test_join_refuses)
{
    mc_pixels *p = clear_image(64, 64), *wide = clear_image(128, 64), *odd = clear_image(60, 64);
    sample_map(p, 0);
    sample_map(wide, 0);
    sample_map(odd, 0);
    mc_buf *good = encode(p, 90, 0, MC_JPEG_SPLICED);
    ck_assert_ptr_nonnull(join_two(good, good));
    ck_assert_ptr_null(join_two(good, encode(p, 80, 0, MC_JPEG_SPLICED)));
    ck_assert_ptr_null(join_two(good, encode(wide, 90, 0, MC_JPEG_SPLICED)));
    ck_assert_ptr_null(join_two(good, encode(p, 90, 1, MC_JPEG_SPLICED)));
    mc_buf *uneven = encode(odd, 90, 0, MC_JPEG_SPLICED);
    ck_assert_ptr_null(join_two(uneven, uneven));
    mc_buf *text = mc_buf_attach(mc_buf_copy("no image at all", 15), pool);
    ck_assert_ptr_null(join_two(good, text));
    ck_assert_ptr_null(join_two(text, text));
    /* 300 tiles of 256 pixels are wider than a JPEG may be. */
    mc_pixels *large = clear_image(256, 16);
    mc_buf **row = apr_palloc(pool, 300 * sizeof(*row)), *joined;
    for (int i = 0; i < 300; i++)
        row[i] = i == 0 ? encode(large, 90, 0, MC_JPEG_SPLICED) : row[0];
    ck_ok(mc_jpeg_join(&joined, row, 300, 1, (const uint8_t[]){ 0, 0, 0 }, &ctx, pool));
    ck_assert_ptr_null(joined);
}
END_TEST

/* Whatever a broken tile says, what is joined has the size of its parts and the other tile's half is whole. */
START_TEST(test_join_hostile)
{
    mc_pixels *p = clear_image(32, 32);
    sample_map(p, 0);
    mc_buf *good = encode(p, 90, 0, MC_JPEG_SPLICED), *bad = encode(p, 90, 0, MC_JPEG_SPLICED);
    mc_jpeg_parts parts;
    ck_assert(mc_jpeg_parse(&parts, good->data, good->size));
    mc_pixels *half = decode_plain(good);
    apr_pool_t *outer = enter_round();
    for (size_t k = 0; k < bad->size * 6; k++) {
        size_t at = k % bad->size;
        uint8_t kept = bad->data[at];
        bad->data[at] = k < bad->size ? 0xff : (uint8_t)sample_random();
        mc_buf *joined = join_two(good, bad);
        if (joined != NULL) {
            int width, height;
            ck_ok(mc_image_size(&width, &height, joined->data, joined->size, pool));
            ck_assert_int_eq(width, 64);
            ck_assert_int_eq(height, 32);
            mc_pixels *pixels;
            if (mc_image_decode(&pixels, joined->data, joined->size, &ctx, pool) == MC_OK) {
                /* One assertion for all: Check writes each of them to a file. */
                int worst = 0;
                for (int y = 0; y < 32; y++)
                    for (int i = 0; i < 28 * 4; i++) {
                        int difference = abs(pixels->data[(size_t)y * pixels->stride + (size_t)i] -
                                             half->data[(size_t)y * half->stride + (size_t)i]);
                        worst = difference > worst ? difference : worst;
                    }
                ck_assert_int_le(worst, 60);
                mc_pixels_unref(pixels);
            }
        }
        bad->data[at] = kept;
        if (k % 100 == 0) {
            mc_buf *cut = mc_buf_copy(bad->data, at);
            ck_assert_ptr_null(join_two(good, cut));
            mc_buf_unref(cut);
        }
        apr_pool_clear(pool);
    }
    leave_round(outer);
    /* A quantisation table of zeros, by which nothing can be divided. */
    static const uint8_t tables[] = { 0xff, 0xdb };
    uint8_t *table = memmem(bad->data, bad->size, tables, 2);
    uint8_t kept[64];
    memcpy(kept, table + 5, 64);
    memset(table + 5, 0, 64);
    ck_assert_ptr_null(join_two(bad, NULL));
    memcpy(table + 5, kept, 64);
    /* Sizes beyond reason in header and frame. */
    memset(bad->data + parts.frame, 0xff, 4);
    ck_assert_ptr_null(join_two(bad, bad));
    ck_assert_ptr_null(join_two(good, bad));
    ck_assert_ptr_null(join_two(bad, NULL));
}
END_TEST

UNIT_MAIN("jpeg", test_round_trip, test_draw, test_draw_parts, test_transparent_becomes_black, test_fixed_tables,
          test_strips, test_color_spaces, test_truncation, test_join_own, test_join_foreign, test_join_mixed,
          test_join_missing, test_join_refuses, test_join_hostile)
