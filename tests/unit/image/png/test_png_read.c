/* Our reading of PNG against libpng's own, in every form, and what broken files do. */
#include "unit.h"

#include <png.h>

#include "image/png/png.h"
#include "samples.h"

static void
append(png_structp png, png_bytep bytes, size_t size)
{
    mc_error_ignore(mc_buf_append(png_get_io_ptr(png), bytes, size, pool));
}

typedef struct form {
    int color, depth, interlace, filters;
    bool transparency;
    int width, height;
} form;

static void
set_extras(png_structp png, png_infop info, const form *f)
{
    png_color colors[256];
    png_byte alphas[256];
    for (int i = 0; i < 256; i++) {
        colors[i] = (png_color){ (png_byte)(i * 7), (png_byte)(i * 13), (png_byte)(255 - i) };
        alphas[i] = (png_byte)(i * 31);
    }
    png_color_16 key = { 1, 0x1111, 0x2222, 0x3333, 1 };
    if (f->depth == 8)
        key = (png_color_16){ 1, 17, 34, 51, 17 };
    if (f->color == PNG_COLOR_TYPE_PALETTE)
        png_set_PLTE(png, info, colors, 1 << f->depth);
    if (f->transparency)
        png_set_tRNS(png, info, alphas, f->depth == 1 ? 1 : (1 << f->depth) - 1, &key);
}

/* A file of that form with noise in it, in small IDATs. */
static mc_buf *
make(const form *f)
{
    mc_buf *out = mc_buf_attach(mc_buf_create(0, 1 << 24), pool);
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(png);
    png_set_write_fn(png, out, append, NULL);
    png_set_filter(png, 0, f->filters);
    png_set_compression_buffer_size(png, 300);
    png_set_IHDR(png, info, (png_uint_32)f->width, (png_uint_32)f->height, f->depth, f->color, f->interlace, 0, 0);
    png_set_gAMA(png, info, 0.3);
    set_extras(png, info, f);
    png_write_info(png, info);
    size_t row_size = png_get_rowbytes(png, info);
    png_bytep *rows = apr_palloc(pool, sizeof(png_bytep) * (size_t)f->height);
    for (int y = 0; y < f->height; y++) {
        rows[y] = apr_palloc(pool, row_size);
        for (size_t i = 0; i < row_size; i++)
            rows[y][i] = sample_random() % 5 == 0 ? 17 : (png_byte)(sample_random() % 4 == 0 ? 255 : sample_random());
    }
    png_write_image(png, rows);
    png_write_end(png, NULL);
    png_destroy_write_struct(&png, &info);
    return out;
}

/* libpng's own expansion to R, G, B, A of eight bits, premultiplied here. */
static mc_pixels *
reference(const mc_buf *file)
{
    mc_pixels *pixels;
    png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(png);
    FILE *stream = fmemopen(file->data, file->size, "rb");
    png_init_io(png, stream);
    png_read_png(png, info, PNG_TRANSFORM_EXPAND | PNG_TRANSFORM_SCALE_16 | PNG_TRANSFORM_GRAY_TO_RGB, NULL);
    int channels = png_get_channels(png, info);
    ck_ok(mc_pixels_create(&pixels, (int)png_get_image_width(png, info), (int)png_get_image_height(png, info), false,
                           pool));
    png_bytepp rows = png_get_rows(png, info);
    for (int y = 0; y < pixels->height; y++)
        for (int x = 0; x < pixels->width; x++) {
            const png_byte *p = rows[y] + x * channels;
            sample_set(pixels, x, y, p[0], p[1], p[2], channels == 4 ? p[3] : 255);
        }
    png_destroy_read_struct(&png, &info, NULL);
    fclose(stream);
    return mc_pixels_attach(pixels, pool);
}

static void
check_form(const form *f)
{
    mc_buf *file = make(f);
    mc_pixels *pixels;
    int width, height;
    ck_ok(mc_image_decode(&pixels, file->data, file->size, &ctx, pool));
    mc_pixels_attach(pixels, pool);
    ck_assert_msg(sample_difference(pixels, reference(file)) == 0, "color %d depth %d interlace %d filters %x tRNS %d",
                  f->color, f->depth, f->interlace, (unsigned)f->filters, f->transparency);
    mc_opacity known = pixels->opacity;
    pixels->opacity = MC_OPACITY_UNKNOWN;
    ck_assert_int_ne(known, MC_OPACITY_UNKNOWN);
    ck_assert_int_eq(known, mc_pixels_opacity(pixels));
    ck_ok(mc_image_size(&width, &height, file->data, file->size, pool));
    ck_assert_int_eq(width, f->width);
    ck_assert_int_eq(height, f->height);
}

START_TEST(test_every_form)
{
    static const int colors[] = { 0, 2, 3, 4, 6 }, depths[] = { 1, 2, 4, 8, 16 };
    static const int filters[] = { PNG_FILTER_NONE, PNG_FILTER_SUB,   PNG_FILTER_UP,
                                   PNG_FILTER_AVG,  PNG_FILTER_PAETH, PNG_ALL_FILTERS };
    static const int widths[] = { 1, 2, 3, 5, 16, 33 };
    int forms = 0;
    for (int k = 0; k < 5 * 5 * 2 * 2 * 6 * 6; k++) {
        form f = { .color = colors[k % 5],
                   .depth = depths[k / 5 % 5],
                   .interlace = k / 25 % 2,
                   .transparency = k / 50 % 2 == 1,
                   .filters = filters[k / 100 % 6],
                   .width = widths[k / 600],
                   .height = 9 };
        bool deep = f.color == 2 || f.color == 4 || f.color == 6;
        if ((deep && f.depth < 8) || (f.color == 3 && f.depth == 16) || (f.transparency && f.color >= 4))
            continue;
        check_form(&f);
        forms++;
        apr_pool_clear(pool);
    }
    ck_assert_int_gt(forms, 1000);
}
END_TEST

static const form small_forms[] = {
    { 6, 8, 0, PNG_ALL_FILTERS, false, 21, 13 }, { 2, 8, 0, PNG_ALL_FILTERS, false, 21, 13 },
    { 3, 4, 0, PNG_FILTER_NONE, true, 21, 13 },  { 0, 16, 1, PNG_ALL_FILTERS, true, 9, 7 },
    { 4, 8, 0, PNG_ALL_FILTERS, false, 9, 7 },
};

START_TEST(test_truncation)
{
    for (size_t k = 0; k < sizeof(small_forms) / sizeof(small_forms[0]); k++) {
        mc_buf *file = make(&small_forms[k]);
        for (size_t size = 0; size < file->size; size++) {
            mc_pixels *pixels;
            /* A copy of its own, so that a sanitizer sees one byte too far. */
            mc_buf *cut = mc_buf_copy(file->data, size);
            ck_fails(CORRUPT, mc_image_decode(&pixels, cut->data, cut->size, &ctx, pool));
            mc_buf_unref(cut);
        }
        apr_pool_clear(pool);
    }
}
END_TEST

/* Broken bytes fail cleanly or, in chunks that are ignored, do not matter. */
START_TEST(test_broken_bytes)
{
    for (size_t k = 0; k < sizeof(small_forms) / sizeof(small_forms[0]); k++) {
        mc_buf *file = make(&small_forms[k]);
        int refused = 0;
        for (size_t i = 0; i < file->size * 3; i++) {
            mc_pixels *pixels;
            size_t at = i % file->size;
            uint8_t kept = file->data[at];
            file->data[at] ^= (uint8_t)(1u << (sample_random() % 8));
            mc_error *error = mc_image_decode(&pixels, file->data, file->size, &ctx, pool);
            if (error == MC_OK)
                mc_pixels_unref(pixels);
            else
                ck_assert_int_eq(error->kind, MC_ERR_CORRUPT);
            refused += error != MC_OK;
            file->data[at] = kept;
        }
        ck_assert_int_gt(refused, (int)file->size * 2);
        apr_pool_clear(pool);
    }
}
END_TEST

/* A file around `rows`, however many the header claims. */
static mc_buf *
claim(uint32_t width, uint32_t height, int color, int depth, size_t rows_size)
{
    mc_buf *png = mc_buf_attach(mc_buf_create(0, 1 << 24), pool);
    uint8_t *rows = calloc(1, rows_size);
    mc_png_header header = { .width = width, .height = height, .depth = depth, .color = color };
    ck_ok(mc_png_begin(png, &header, pool));
    if (color == 3)
        ck_ok(mc_png_chunk(png, "PLTE", "abcdef", 6, pool));
    ck_ok(mc_png_image_data(png, rows, rows_size, MC_DEFLATE_GOOD, pool));
    ck_ok(mc_png_end(png, pool));
    free(rows);
    return png;
}

START_TEST(test_bombs)
{
    mc_pixels *pixels;
    static const int forms[][2] = { { 6, 8 }, { 2, 8 }, { 3, 8 }, { 3, 1 }, { 0, 8 }, { 4, 16 } };
    for (size_t k = 0; k < sizeof(forms) / sizeof(forms[0]); k++) {
        int color = forms[k][0], depth = forms[k][1];
        int channels = color == 6 ? 4 : color == 2 ? 3 : color == 4 ? 2 : 1;
        size_t right = ((size_t)(16 * depth * channels) / 8 + 1) * 16;
        mc_buf *fit = claim(16, 16, color, depth, right);
        ck_ok(mc_image_decode(&pixels, fit->data, fit->size, &ctx, pool));
        mc_pixels_unref(pixels);
        mc_buf *bomb = claim(16, 16, color, depth, right + 5000000);
        ck_fails(CORRUPT, mc_image_decode(&pixels, bomb->data, bomb->size, &ctx, pool));
        mc_buf *more = claim(16, 16, color, depth, right + 1);
        ck_fails(CORRUPT, mc_image_decode(&pixels, more->data, more->size, &ctx, pool));
        mc_buf *less = claim(16, 16, color, depth, right - 1);
        ck_fails(CORRUPT, mc_image_decode(&pixels, less->data, less->size, &ctx, pool));
        mc_buf *huge = claim(8192, 8192, color, depth, right);
        ck_fails(CORRUPT, mc_image_decode(&pixels, huge->data, huge->size, &ctx, pool));
    }
    mc_buf *wide = claim(16385, 1, 0, 8, 16386);
    ck_fails(CORRUPT, mc_image_decode(&pixels, wide->data, wide->size, &ctx, pool));
    mc_buf *many = claim(16384, 16384, 6, 8, 100);
    ck_fails(CORRUPT, mc_image_decode(&pixels, many->data, many->size, &ctx, pool));
    mc_buf *none = claim(0, 5, 6, 8, 100);
    ck_fails(CORRUPT, mc_image_decode(&pixels, none->data, none->size, &ctx, pool));
}
END_TEST

START_TEST(test_sniff)
{
    mc_pixels *pixels;
    ck_assert_int_eq(mc_image_sniff("\x89PNG\r\n\x1a\n", 8), MC_CODING_PNG);
    ck_assert_int_eq(mc_image_sniff("\x89PNG\r\n\x1a\n", 7), MC_CODING_UNKNOWN);
    ck_assert_int_eq(mc_image_sniff("\xff\xd8\xff", 3), MC_CODING_JPEG);
    ck_assert_int_eq(mc_image_sniff("#abcd", 5), MC_CODING_BLANK);
    ck_assert_int_eq(mc_image_sniff("#abcde", 6), MC_CODING_UNKNOWN);
    ck_assert_int_eq(mc_image_sniff("", 0), MC_CODING_UNKNOWN);
    ck_assert_str_eq(mc_coding_mime(MC_CODING_JPEG), "image/jpeg");
    ck_assert_ptr_null(mc_coding_mime(MC_CODING_UNKNOWN));
    ck_fails(CORRUPT, mc_image_decode(&pixels, "<html>", 6, &ctx, pool));
}
END_TEST

UNIT_MAIN("png_read", test_every_form, test_truncation, test_broken_bytes, test_bombs, test_sniff)
