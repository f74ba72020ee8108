/* <format>: defaults, legal values, refusals; mixed and raw; the tag of a tile. */
#include "config_text.h"

#include <apr_strings.h>

#include "base/hash.h"
#include "mapcache/tile.h"
#include "mapcache/trace.h"
#include "samples.h"

static mc_build *
new_build(void)
{
    mc_build *build = apr_pcalloc(pool, sizeof(*build));
    build->pool = pool;
    build->diagnostics = mc_diagnostics_create(pool);
    build->formats = apr_hash_make(pool);
    mc_format_builtins(build->formats, pool);
    return build;
}

/* The format that `xml` declares, or NULL when it is refused. */
static const mc_format *
declare(const char *xml)
{
    mc_build *build = new_build();
    const mc_format *format = mc_format_from_config(config_elements(xml), build);
    ck_assert_int_eq(format == NULL, build->diagnostics->refused > 0);
    return format;
}

START_TEST(test_png)
{
    const mc_format *f = declare("<format name='a' type='PNG'/>");
    ck_assert_int_eq(f->compression, MC_PNG_DEFAULT);
    ck_assert_int_eq(f->colors, 0);
    ck_assert_str_eq(f->name, "a");
    ck_assert_str_eq(f->extension, "png");
    ck_assert_str_eq(f->mime, "image/png");
    f = declare("<format name='a' type='PNG'><compression>best</compression><colors>16</colors></format>");
    ck_assert_int_eq(f->compression, MC_PNG_BEST);
    ck_assert_int_eq(f->colors, 16);
    ck_assert_str_eq(f->mime, "image/png; mode=8bit");
    ck_assert_int_eq(declare("<format name='a' type='PNG'><compression>none</compression></format>")->compression,
                     MC_PNG_NONE);
    ck_assert_int_eq(declare("<format name='a' type='PNG'><compression>fast</compression></format>")->compression,
                     MC_PNG_FAST);
    ck_assert_ptr_null(declare("<format name='a' type='PNG'><compression>default</compression></format>"));
    ck_assert_ptr_null(declare("<format name='a' type='PNG'><colors>1</colors></format>"));
    ck_assert_ptr_null(declare("<format name='a' type='PNG'><colors>257</colors></format>"));
}
END_TEST

START_TEST(test_jpeg)
{
    const mc_format *f = declare("<format name='a' type='JPEG'/>");
    ck_assert_int_eq(f->quality, 95);
    ck_assert_int_eq(f->photometric, 0);
    ck_assert_int_eq(f->optimize, MC_JPEG_SPLICED);
    ck_assert_str_eq(f->extension, "jpg");
    ck_assert_str_eq(f->mime, "image/jpeg");
    f = declare("<format name='a' type='JPEG'><quality>7</quality><photometric>Rgb</photometric>"
                "<optimize>Arithmetic</optimize></format>");
    ck_assert_int_eq(f->quality, 7);
    ck_assert_int_eq(f->photometric, 1);
    ck_assert_int_eq(f->optimize, MC_JPEG_ARITHMETIC);
    ck_assert_int_eq(declare("<format name='a' type='JPEG'><optimize>true</optimize></format>")->optimize,
                     MC_JPEG_OPTIMIZED);
    ck_assert_int_eq(declare("<format name='a' type='JPEG'><optimize>FALSE</optimize></format>")->optimize,
                     MC_JPEG_PLAIN);
    ck_assert_ptr_null(declare("<format name='a' type='JPEG'><quality>0</quality></format>"));
    ck_assert_ptr_null(declare("<format name='a' type='JPEG'><quality>101</quality></format>"));
    ck_assert_ptr_null(declare("<format name='a' type='JPEG'><photometric>cmyk</photometric></format>"));
    ck_assert_ptr_null(declare("<format name='a' type='JPEG'><optimize>maybe</optimize></format>"));
}
END_TEST

START_TEST(test_types)
{
    ck_assert_ptr_null(declare("<format name='a' type='png'/>"));
    ck_assert_ptr_null(declare("<format name='a' type='Jpeg'/>"));
    ck_assert_ptr_null(declare("<format name='a'/>"));
    ck_assert_ptr_null(declare("<format type='PNG'/>"));
    const mc_format *raw = declare("<format name='a' type='raw'><extension>pbf</extension>"
                                   "<mime_type>application/x-protobuf</mime_type></format>");
    ck_assert_int_eq(raw->type, MC_FORMAT_RAW);
    ck_assert_str_eq(raw->extension, "pbf");
    ck_assert_str_eq(raw->mime, "application/x-protobuf");
    mc_pixels *pixels;
    mc_buf *bytes;
    ck_ok(mc_pixels_create(&pixels, 1, 1, true, pool));
    ck_fails(INVALID_FORMAT, mc_format_encode(&bytes, raw, pixels, MC_FOR_STORE, &ctx, pool));
    mc_pixels_unref(pixels);
}
END_TEST

START_TEST(test_mixed_config)
{
    const mc_format *f = declare("<format name='a' type='mixed'><transparent>PNG8</transparent><opaque>JPEG</opaque>"
                                 "<alpha_cutoff>100</alpha_cutoff></format>");
    ck_assert_str_eq(f->transparent->name, "PNG8");
    ck_assert_str_eq(f->opaque->name, "JPEG");
    ck_assert_int_eq(f->alpha_cutoff, 100);
    ck_assert_str_eq(f->extension, "xxx");
    ck_assert_ptr_null(f->mime);
    ck_assert_ptr_null(declare("<format name='a' type='MIXED'><transparent>PNG</transparent></format>"));
    ck_assert_ptr_null(declare("<format name='a' type='MIXED'><opaque>PNG</opaque></format>"));
    ck_assert_ptr_null(
        declare("<format name='a' type='MIXED'><transparent>x</transparent><opaque>JPEG</opaque></format>"));
}
END_TEST

static mc_coding
mixed_coding(unsigned alpha, int cutoff)
{
    mc_format mixed = *(mc_format *)apr_hash_get(new_build()->formats, "mixed", APR_HASH_KEY_STRING);
    mixed.alpha_cutoff = cutoff;
    mc_pixels *pixels;
    mc_buf *bytes;
    ck_ok(mc_pixels_create(&pixels, 20, 20, false, pool));
    sample_photo(pixels);
    sample_set(pixels, 19, 19, 5, 5, 5, alpha);
    ck_ok(mc_format_encode(&bytes, &mixed, pixels, MC_FOR_STORE, &ctx, pool));
    mc_pixels_unref(pixels);
    return mc_image_sniff(bytes->data, bytes->size);
}

START_TEST(test_mixed)
{
    ck_assert_int_eq(mixed_coding(255, 255), MC_CODING_JPEG);
    ck_assert_int_eq(mixed_coding(254, 255), MC_CODING_PNG);
    ck_assert_int_eq(mixed_coding(100, 100), MC_CODING_JPEG);
    ck_assert_int_eq(mixed_coding(99, 100), MC_CODING_PNG);
    ck_assert_int_eq(mixed_coding(0, 0), MC_CODING_JPEG);
    ck_assert_int_eq(mixed_coding(255, 300), MC_CODING_PNG);
}
END_TEST

START_TEST(test_builtins)
{
    apr_hash_t *formats = new_build()->formats;
    const mc_format *png8 = apr_hash_get(formats, "PNG8", APR_HASH_KEY_STRING);
    const mc_format *jpeg = apr_hash_get(formats, "JPEG", APR_HASH_KEY_STRING);
    ck_assert_uint_eq(apr_hash_count(formats), 5);
    ck_assert_int_eq(png8->colors, 256);
    ck_assert_str_eq(png8->mime, "image/png; mode=8bit");
    ck_assert_int_eq(jpeg->quality, 90);
}
END_TEST

START_TEST(test_tag)
{
    mc_tile tile = { .data = mc_buf_copy("abc", 3) };
    ck_assert_uint_ne(mc_tile_tag(&tile), 0);
    ck_assert_uint_eq(tile.tag, mc_hash64("abc", 3, 0));
    tile.data->data[0] = 'x';
    ck_assert_uint_eq(mc_tile_tag(&tile), mc_hash64("abc", 3, 0)); /* computed once */
    mc_buf_unref(tile.data);
}
END_TEST

static void
gather_lines(void *baton, const char *lines, size_t size)
{
    mc_buf *text = baton;
    ck_ok(mc_buf_append(text, lines, size, pool));
}

/* Each coding and decoding leaves its own pair of lines. */
START_TEST(test_spans)
{
    static const char *const names[] = { "PNG", "JPEG" };
    static const char *const expected[] = {
        "MOCKUP BEGIN _mapcache_imageio_png_encode\n",  "MOCKUP END _mapcache_imageio_png_encode\n",
        "MOCKUP BEGIN _mapcache_imageio_png_decode\n",  "MOCKUP END _mapcache_imageio_png_decode\n",
        "MOCKUP BEGIN _mapcache_imageio_jpeg_encode\n", "MOCKUP END _mapcache_imageio_jpeg_encode\n",
        "MOCKUP BEGIN _mapcache_imageio_jpeg_decode\n", "MOCKUP END _mapcache_imageio_jpeg_decode\n",
    };
    mc_buf *text = mc_buf_attach(mc_buf_create(0, 1 << 20), pool);
    apr_hash_t *formats = apr_hash_make(pool);
    mc_format_builtins(formats, pool);
    ctx.trace = mc_trace_create(gather_lines, text, NULL, "mod_mapcache.c(346)", pool);
    for (int i = 0; i < 2; i++) {
        mc_pixels *pixels;
        mc_buf *bytes;
        ck_ok(mc_pixels_create(&pixels, 16, 16, true, pool));
        ck_ok(mc_format_encode(&bytes, apr_hash_get(formats, names[i], APR_HASH_KEY_STRING), pixels, MC_ON_THE_FLY,
                               &ctx, pool));
        mc_pixels_unref(pixels);
        ck_ok(mc_image_decode(&pixels, bytes->data, bytes->size, &ctx, pool));
        mc_pixels_unref(pixels);
    }
    mc_trace_flush(ctx.trace);
    ctx.trace = NULL;
    ck_ok(mc_buf_append(text, "", 1, pool));
    const char *at = (const char *)text->data;
    for (int i = 0; i < 8; i++) {
        at = strstr(at, expected[i]);
        ck_assert_msg(at != NULL, "%s is missing in %s", expected[i], (const char *)text->data);
    }
}
END_TEST

UNIT_MAIN("format", test_spans, test_png, test_jpeg, test_types, test_mixed_config, test_mixed, test_builtins, test_tag)
