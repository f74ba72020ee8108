/* Decoding into the box gives the pixels that decoding the whole gives, and nothing around them. */
#include "images.h"
#include "unit.h"

#include <png.h>

#include "image/box.h"
#include "samples.h"

static void
append(png_structp png, png_bytep bytes, size_t size)
{
    ck_ok(mc_buf_append(png_get_io_ptr(png), bytes, size, pool));
}

/* An RGBA file of straight colours, by libpng with these filters. */
static mc_buf *
write_png(const uint8_t *rgba, int width, int height, int filters)
{
    mc_buf *out = mc_buf_attach(mc_buf_create(0, 1 << 24), pool);
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(png);
    png_set_write_fn(png, out, append, NULL);
    png_set_filter(png, 0, filters);
    png_set_IHDR(png, info, (png_uint_32)width, (png_uint_32)height, 8, PNG_COLOR_TYPE_RGBA, 0, 0, 0);
    png_write_info(png, info);
    for (int y = 0; y < height; y++)
        png_write_row(png, rgba + (size_t)y * (size_t)width * 4);
    png_write_end(png, NULL);
    png_destroy_write_struct(&png, &info);
    return out;
}

typedef struct room {
    uint8_t *pixels;
    size_t size;
    int calls;
    bool none;
} room;

static uint8_t *
make_room(void *baton, const mc_box_image *image)
{
    room *r = baton;
    r->calls++;
    r->size = (size_t)image->box.width * (size_t)image->box.height * 4;
    /* Memory of its own, so that a sanitizer sees one byte too far. */
    r->pixels = r->none ? NULL : malloc(r->size);
    return r->pixels;
}

static void
check_file(const mc_buf *file)
{
    mc_pixels *whole;
    mc_box_image found;
    room r = { .pixels = NULL };
    ck_ok(mc_image_decode(&whole, file->data, file->size, &ctx, pool));
    ck_ok(mc_image_decode_box(&found, make_room, &r, file->data, file->size, &ctx, pool));
    whole->opacity = MC_OPACITY_UNKNOWN;
    mc_box expected = mc_pixels_box(whole);
    ck_assert_int_eq(found.width, whole->width);
    ck_assert_int_eq(found.height, whole->height);
    ck_assert_mem_eq(&found.box, &expected, sizeof(expected));
    ck_assert_int_eq(r.calls, expected.width > 0);
    for (int y = 0; y < expected.height; y++)
        ck_assert_mem_eq(r.pixels + (size_t)(y * expected.width) * 4,
                         whole->data + (size_t)(expected.top + y) * whole->stride + (size_t)expected.left * 4,
                         (size_t)expected.width * 4);
    free(r.pixels);
    mc_pixels_unref(whole);
}

/* A window of noise, some of it translucent, in nothing; `hidden`: colours under what cannot be seen. */
static void
fill_window(uint8_t *rgba, int width, int height, bool opaque, bool hidden)
{
    size_t total = (size_t)width * (size_t)height * 4;
    for (size_t i = 0; i < total; i++)
        rgba[i] = hidden && i % 4 != 3 ? (uint8_t)sample_random() : 0;
    int left = (int)sample_random() % width, top = (int)sample_random() % height;
    int right = left + (int)sample_random() % (width - left + 1),
        bottom = top + (int)sample_random() % (height - top + 1);
    for (int y = top; y < bottom; y++)
        for (int x = left; x < right; x++) {
            uint8_t *at = rgba + ((size_t)y * (size_t)width + (size_t)x) * 4;
            for (int c = 0; c < 3; c++)
                at[c] = (uint8_t)sample_random();
            at[3] = opaque || sample_random() % 3 == 0 ? 255 : sample_random() % 2 == 0 ? 0 : (uint8_t)sample_random();
        }
}

START_TEST(test_windows)
{
    static const int filters[] = { PNG_FILTER_NONE, PNG_FILTER_SUB,   PNG_FILTER_UP,
                                   PNG_FILTER_AVG,  PNG_FILTER_PAETH, PNG_ALL_FILTERS };
    for (int k = 0; k < 1200; k++) {
        int width = 1 + (int)(sample_random() % 70), height = 1 + (int)(sample_random() % 40);
        uint8_t *rgba = apr_palloc(pool, (size_t)width * (size_t)height * 4);
        fill_window(rgba, width, height, k % 2 == 0, k % 5 == 0);
        check_file(write_png(rgba, width, height, filters[k % 6]));
        apr_pool_clear(pool);
    }
}
END_TEST

/* What libpng writes is held against the pixels themselves. */
START_TEST(test_pixels_are_those_of_the_file)
{
    uint8_t *rgba = apr_pcalloc(pool, 256 * 256 * 4);
    for (int i = 0; i < 12; i++)
        memcpy(rgba + ((size_t)(130 + i / 4) * 256 + 77 + (size_t)(i % 4)) * 4, "\x80\x40\x20\xff", 4);
    mc_box_image found;
    room r = { .pixels = NULL };
    const mc_buf *file = write_png(rgba, 256, 256, PNG_ALL_FILTERS);
    ck_ok(mc_image_decode_box(&found, make_room, &r, file->data, file->size, &ctx, pool));
    mc_box expected = { 77, 130, 4, 3, MC_OPAQUE };
    ck_assert_mem_eq(&found.box, &expected, sizeof(expected));
    for (int i = 0; i < 12; i++)
        ck_assert_mem_eq(r.pixels + i * 4, "\x20\x40\x80\xff", 4);
    free(r.pixels);
}
END_TEST

/* Blocks of one colour, many of which reach the right edge: there a filter goes on without a byte that says so. */
START_TEST(test_flat_blocks)
{
    static const int filters[] = { PNG_FILTER_NONE, PNG_FILTER_SUB,   PNG_FILTER_UP,
                                   PNG_FILTER_AVG,  PNG_FILTER_PAETH, PNG_ALL_FILTERS };
    for (int k = 0; k < 600; k++) {
        size_t width = 40 + sample_random() % 200, height = 40 + sample_random() % 40;
        uint8_t *rgba = apr_pcalloc(pool, width * height * 4);
        for (unsigned blocks = 1 + sample_random() % 3; blocks > 0; blocks--) {
            size_t left = sample_random() % width, top = 2 + sample_random() % (height - 2);
            size_t right = sample_random() % 2 == 0 ? width : left + sample_random() % (width - left);
            size_t bottom = top + sample_random() % (height - top);
            uint8_t color[4] = { (uint8_t)sample_random(), (uint8_t)sample_random(), 7, 255 };
            for (size_t y = top; y < bottom; y++)
                for (size_t x = left; x < right; x++)
                    memcpy(rgba + (y * width + x) * 4, color, 4);
        }
        const mc_buf *file = write_png(rgba, (int)width, (int)height, filters[k % 6]);
        mc_pixels *whole;
        ck_ok(mc_image_decode(&whole, file->data, file->size, &ctx, pool));
        for (size_t i = 0; i < width * height; i++) {
            const uint8_t expected[] = { rgba[i * 4 + 2], rgba[i * 4 + 1], rgba[i * 4], rgba[i * 4 + 3] };
            ck_assert_msg(memcmp(whole->data + i * 4, expected, 4) == 0, "round %d: pixel %d", k, (int)i);
        }
        mc_pixels_unref(whole);
        check_file(file);
        apr_pool_clear(pool);
    }
}
END_TEST

START_TEST(test_other_forms)
{
    apr_hash_t *formats = apr_hash_make(pool);
    mc_format_builtins(formats, pool);
    static const char *const names[] = { "PNG", "PNG8", "JPEG" };
    for (int k = 0; k < 9; k++) {
        mc_pixels *pixels = clear_image(61, 33);
        mc_buf *file;
        if (k >= 6)
            sample_photo(pixels);
        else if (k >= 3)
            sample_overlay(pixels);
        mc_format *format = apr_hash_get(formats, names[k % 3], APR_HASH_KEY_STRING);
        pixels->opacity = MC_OPACITY_UNKNOWN;
        ck_ok(mc_format_encode(&file, format, pixels, MC_ON_THE_FLY, &ctx, pool));
        check_file(file);
    }
}
END_TEST

START_TEST(test_failures)
{
    uint8_t *rgba = apr_pcalloc(pool, 20 * 20 * 4);
    memset(rgba + 400, 255, 100);
    const mc_buf *file = write_png(rgba, 20, 20, PNG_FILTER_PAETH);
    mc_box_image found;
    room r = { .none = true };
    ck_fails(NO_MEMORY, mc_image_decode_box(&found, make_room, &r, file->data, file->size, &ctx, pool));
    for (size_t size = 0; size < file->size; size++) {
        mc_buf *cut = mc_buf_copy(file->data, size);
        ck_fails(CORRUPT, mc_image_decode_box(&found, make_room, &r, cut->data, cut->size, &ctx, pool));
        mc_buf_unref(cut);
    }
    ck_fails(CORRUPT, mc_image_decode_box(&found, make_room, &r, "<html>", 6, &ctx, pool));
}
END_TEST

UNIT_MAIN("box_decode", test_windows, test_pixels_are_those_of_the_file, test_flat_blocks, test_other_forms,
          test_failures)
