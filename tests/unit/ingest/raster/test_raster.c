/* Reading georeferenced images: what is read, and what lies. The files are made here. */
#include <apr_file_io.h>
#include <apr_strings.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "mapcache/ingest.h"
#include "unit.h"

static char folder[] = "/tmp/mc-raster-XXXXXX";

static const char *
path_of(const char *name)
{
    return apr_pstrcat(pool, folder, "/", name, NULL);
}

static const char *
save(const char *name, const void *data, size_t size)
{
    const char *path = path_of(name);
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(data, 1, size, file), size);
    fclose(file);
    return path;
}

static const char *
save_text(const char *name, const char *text)
{
    return save(name, text, strlen(text));
}

/* B, G, R of a place, so that rows and columns cannot be mixed up. */
static void
color_at(uint8_t bgra[4], int x, int y)
{
    bgra[0] = (uint8_t)(x * 3);
    bgra[1] = (uint8_t)(y * 5);
    bgra[2] = (uint8_t)(x + y);
    bgra[3] = 255;
}

static mc_pixels *
picture(int width, int height)
{
    mc_pixels *pixels;
    ck_ok(mc_pixels_create(&pixels, width, height, false, pool));
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++)
            color_at(pixels->data + (size_t)y * pixels->stride + (size_t)x * 4, x, y);
    pixels->opacity = MC_OPAQUE;
    return mc_pixels_attach(pixels, pool);
}

static mc_buf *
encoded(const char *format, mc_pixels *pixels)
{
    apr_hash_t *formats = apr_hash_make(pool);
    mc_format_builtins(formats, pool);
    mc_buf *bytes;
    ck_ok(
        mc_format_encode(&bytes, apr_hash_get(formats, format, APR_HASH_KEY_STRING), pixels, MC_FOR_STORE, &ctx, pool));
    return bytes;
}

/* A plain RGB TIFF of two strips with GeoTIFF tags, little-endian. */
typedef struct tiff {
    uint8_t data[16384];
    size_t size;
    int entries;
    size_t directory;
} tiff;

static void
put16(tiff *t, size_t at, unsigned value)
{
    t->data[at] = (uint8_t)value;
    t->data[at + 1] = (uint8_t)(value >> 8);
}

static void
put32(tiff *t, size_t at, uint32_t value)
{
    put16(t, at, value & 0xffff);
    put16(t, at + 2, value >> 16);
}

static void
entry(tiff *t, unsigned tag, unsigned type, uint32_t count, uint32_t value)
{
    size_t at = t->directory + 2 + (size_t)t->entries++ * 12;
    put16(t, at, tag);
    put16(t, at + 2, type);
    put32(t, at + 4, count);
    put32(t, at + 8, value);
}

static uint32_t
append(tiff *t, const void *data, size_t size)
{
    size_t at = t->size;
    memcpy(t->data + at, data, size);
    t->size += size;
    return (uint32_t)at;
}

static void
make_tiff(tiff *t, int width, int height, int claimed_height)
{
    static const double scale[3] = { 2, 2, 0 }, tie[6] = { 0, 0, 0, 100, 200, 0 };
    static const uint16_t keys[12] = { 1, 1, 0, 2, 1024, 0, 1, 1, 3072, 0, 1, 3857 }, bits[3] = { 8, 8, 8 };
    *t = (tiff){ .size = 400, .directory = 8 };
    memcpy(t->data, "II\x2a\0\x08\0\0\0", 8);
    uint32_t pixels = (uint32_t)t->size;
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++) {
            uint8_t bgra[4];
            color_at(bgra, x, y);
            append(t, (uint8_t[3]){ bgra[2], bgra[1], bgra[0] }, 3);
        }
    uint32_t half = (uint32_t)(height / 2), strip = half * (uint32_t)width * 3;
    uint32_t offsets[2] = { pixels, pixels + strip }, counts[2] = { strip, strip };
    entry(t, 256, 3, 1, (uint32_t)width);
    entry(t, 257, 4, 1, (uint32_t)claimed_height);
    entry(t, 258, 3, 3, append(t, bits, sizeof(bits)));
    entry(t, 259, 3, 1, 1);
    entry(t, 262, 3, 1, 2);
    entry(t, 273, 4, 2, append(t, offsets, sizeof(offsets)));
    entry(t, 277, 3, 1, 3);
    entry(t, 278, 3, 1, half);
    entry(t, 279, 4, 2, append(t, counts, sizeof(counts)));
    entry(t, 33550, 12, 3, append(t, scale, sizeof(scale)));
    entry(t, 33922, 12, 6, append(t, tie, sizeof(tie)));
    entry(t, 34735, 3, 12, append(t, keys, sizeof(keys)));
    put16(t, t->directory, (unsigned)t->entries);
}

static void
check_pixels(const uint8_t *bgra, size_t stride, int width, int first, int count, int tolerance)
{
    for (int y = 0; y < count; y++)
        for (int x = 0; x < width; x++) {
            uint8_t wanted[4];
            color_at(wanted, x, first + y);
            for (int c = 0; c < 4; c++)
                ck_assert_int_le(abs(bgra[(size_t)y * stride + (size_t)x * 4 + (size_t)c] - wanted[c]), tolerance);
        }
}

/* In pieces of three rows, and all at once. */
static void
check_both_ways(const char *path, int width, int height, int tolerance)
{
    mc_raster *raster;
    uint8_t rows[3 * 64 * 4];
    mc_pixels *pixels;
    ck_ok(mc_raster_open(&raster, path, NULL, pool));
    ck_assert_int_eq(mc_raster_about(raster)->width, width);
    ck_assert_int_eq(mc_raster_about(raster)->height, height);
    for (int y = 0; y < height; y += 3) {
        int count = height - y < 3 ? height - y : 3;
        ck_ok(mc_raster_rows(raster, rows, 64 * 4, count, pool));
        check_pixels(rows, 64 * 4, width, y, count, tolerance);
    }
    ck_assert_int_eq(mc_raster_row(raster), height);
    mc_raster_close(raster);
    ck_ok(mc_raster_open(&raster, path, NULL, pool));
    ck_ok(mc_raster_read(&pixels, raster, pool));
    check_pixels(pixels->data, pixels->stride, width, 0, height, tolerance);
    mc_pixels_unref(pixels);
    mc_raster_close(raster);
}

START_TEST(png_and_jpeg_with_world_files)
{
    mc_buf *png = encoded("PNG", picture(40, 31)), *jpeg = encoded("JPEG", picture(40, 32));
    save_text("a.pgw", "10\n0\n0\n-10\n105\n195\n");
    save_text("b.JPGW", "10\n0\n0\n-10\n105\n195\n");
    save_text("b.prj", "PROJCS[\"made up\"]\n");
    const char *a = save("a.png", png->data, png->size), *b = save("b.jpg", jpeg->data, jpeg->size);
    check_both_ways(a, 40, 31, 0);
    check_both_ways(b, 40, 32, 12);
    mc_raster *raster;
    mc_raster_options options = { .srs = "EPSG:3857" };
    ck_ok(mc_raster_open(&raster, a, &options, pool));
    const mc_raster_info *info = mc_raster_about(raster);
    ck_assert_str_eq(info->format, "PNG");
    ck_assert_str_eq(info->srs, "EPSG:3857");
    ck_assert(info->georeferenced && info->upright && info->opaque);
    ck_assert_double_eq(info->extent.minx, 100);
    ck_assert_double_eq(info->extent.maxx, 500);
    ck_assert_double_eq(info->extent.miny, 200 - 310);
    ck_assert_double_eq(info->extent.maxy, 200);
    ck_ok(mc_raster_open(&raster, b, &options, pool));
    ck_assert_str_eq(mc_raster_about(raster)->srs, "PROJCS[\"made up\"]");
}
END_TEST

START_TEST(tiff_with_tags)
{
    tiff t;
    make_tiff(&t, 20, 14, 14);
    const char *path = save("c.tif", t.data, t.size);
    check_both_ways(path, 20, 14, 0);
    mc_raster *raster;
    ck_ok(mc_raster_open(&raster, path, NULL, pool));
    const mc_raster_info *info = mc_raster_about(raster);
    ck_assert_str_eq(info->srs, "EPSG:3857");
    ck_assert_str_eq(info->origin, "GeoTIFF tags");
    ck_assert_double_eq(info->extent.maxx, 140);
    ck_assert_double_eq(info->extent.miny, 172);
}
END_TEST

START_TEST(a_color_that_means_nothing)
{
    mc_buf *png = encoded("PNG", picture(8, 8));
    const char *path = save("n.png", png->data, png->size);
    uint8_t place[4];
    color_at(place, 2, 3);
    mc_raster_options options = { .has_no_data = true, .no_data = { place[2], place[1], place[0] } };
    mc_raster *raster;
    mc_pixels *pixels;
    ck_ok(mc_raster_open(&raster, path, &options, pool));
    ck_assert(!mc_raster_about(raster)->opaque && !mc_raster_about(raster)->georeferenced);
    ck_ok(mc_raster_read(&pixels, raster, pool));
    for (int y = 0; y < 8; y++)
        for (int x = 0; x < 8; x++)
            ck_assert_int_eq(pixels->data[(size_t)y * pixels->stride + (size_t)x * 4 + 3], x == 2 && y == 3 ? 0 : 255);
    mc_pixels_unref(pixels);
}
END_TEST

static void
fails_to_open(const char *path, const char *said)
{
    mc_raster *raster;
    mc_error *error = mc_raster_open(&raster, path, NULL, pool);
    ck_assert_msg(error != MC_OK, "%s is opened", path);
    ck_assert_msg(strncmp(error->message, path, strlen(path)) == 0 && strstr(error->message, said) != NULL, "%s",
                  error->message);
}

START_TEST(lies_are_told)
{
    mc_buf *png = encoded("PNG", picture(8, 8));
    tiff t;
    fails_to_open(path_of("none.png"), "No such file");
    fails_to_open(save_text("text.png", "hello"), "no PNG, JPEG or TIFF");
    fails_to_open(save("short.png", png->data, 20), "too early");
    save_text("w.pgw", "1\n2\nthree\n");
    fails_to_open(save("w.png", png->data, png->size), "line 3");
    make_tiff(&t, 20, 14, 0);
    fails_to_open(save("zero.tif", t.data, t.size), "TIFF");
    fails_to_open(save("head.tif", t.data, 8), "TIFF");
    /* 60,000 x 60,000 pixels in 100 bytes, with a checksum that fits */
    static const uint8_t liar[] = { 137, 'P',  'N',  'G', 13, 10,   26,   10, 0, 0, 0, 13, 'I',  'H',  'D',  'R', 0,
                                    0,   0xea, 0x60, 0,   0,  0xea, 0x60, 8,  2, 0, 0, 0,  0x5b, 0x1e, 0x86, 0x7a };
    uint8_t file[100] = { 0 };
    memcpy(file, liar, sizeof(liar));
    mc_raster *raster;
    ck_fails(CORRUPT, mc_raster_open(&raster, save("liar.png", file, sizeof(file)), NULL, pool));
}
END_TEST

START_TEST(a_file_that_is_replaced_meanwhile_is_refused)
{
    mc_buf *before = encoded("PNG", picture(4000, 3000)), *after = encoded("PNG", picture(6, 5));
    const char *path = save("changed.png", before->data, before->size);
    mc_raster *raster;
    mc_pixels *pixels = NULL;
    ck_ok(mc_raster_open(&raster, path, NULL, pool));
    save("changed.png", after->data, after->size); /* into the same file */
    ck_fails(CORRUPT, mc_raster_read(&pixels, raster, pool));
    ck_assert_ptr_null(pixels);
    mc_raster_close(raster);
}
END_TEST

START_TEST(truncated_data_fails_while_reading)
{
    mc_buf *png = encoded("PNG", picture(60, 60)), *jpeg = encoded("JPEG", picture(60, 60));
    tiff t;
    make_tiff(&t, 40, 40, 40);
    const char *paths[3] = { save("cut.png", png->data, png->size - 60), save("cut.jpg", jpeg->data, jpeg->size / 2),
                             NULL };
    /* Tags first, pixels cut: the second strip lies beyond the end. */
    put32(&t, 400 + 40 * 40 * 3 + 6 + 4, 16000);
    paths[2] = save("cut.tif", t.data, t.size);
    for (int i = 0; i < 3; i++) {
        mc_raster *raster;
        mc_pixels *pixels;
        ck_ok(mc_raster_open(&raster, paths[i], NULL, pool));
        ck_fails(CORRUPT, mc_raster_read(&pixels, raster, pool));
        mc_raster_close(raster);
    }
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = { png_and_jpeg_with_world_files,      tiff_with_tags,
                                   a_color_that_means_nothing,         lies_are_told,
                                   truncated_data_fails_while_reading, a_file_that_is_replaced_meanwhile_is_refused };
    if (mkdtemp(folder) == NULL)
        return 1;
    int status = unit_run("raster", tests, sizeof(tests) / sizeof(tests[0]));
    char command[128];
    snprintf(command, sizeof(command), "rm -r %s", folder);
    return system(command) == 0 ? status : 1;
}
