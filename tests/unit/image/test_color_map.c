/* Colour maps: what is read, what is refused with its line; palettes of PNGs exchanged without touching the rest. */
#include "images.h"
#include "unit.h"

#include <apr_strings.h>
#include <libdeflate.h>

#include "config_text.h"
#include "image/png/png.h"
#include "mapcache/color_map.h"
#include "mapcache/image.h"

static mc_color_map
read_table(const char *text)
{
    mc_color_map map = { .name = "m", .title = "m" };
    mc_color_map_problem problem;
    ck_assert_msg(mc_color_map_read_text(&map, text, &problem, pool), "%s", problem.text);
    return map;
}

static void
refuse_table(const char *text, int line)
{
    mc_color_map map = { .name = "m" };
    mc_color_map_problem problem;
    ck_assert(!mc_color_map_read_text(&map, text, &problem, pool));
    ck_assert_int_eq(problem.line, line);
    ck_assert_ptr_nonnull(problem.text);
}

START_TEST(test_tables)
{
    mc_color_map map = read_table("# sea\r\n0 1 2 3\r\n\n  2,4,5,6,7,deep water\nINTERPOLATION:EXACT\n3:7:8:9\tland\n");
    const uint8_t wanted[4][4] = { { 1, 2, 3, 255 }, { 0 }, { 4, 5, 6, 7 }, { 7, 8, 9, 255 } };
    ck_assert_int_eq(map.count, 4);
    ck_assert_mem_eq(map.rgba, wanted, sizeof(wanted));
    ck_assert(map.known[0] && !map.known[1] && map.known[2] && map.known[3] && !map.known[4]);
    ck_assert_str_eq(map.labels[2], "deep water");
    ck_assert_str_eq(map.labels[3], "land");
    ck_assert_ptr_null(map.labels[0]);
    map = read_table("255 1 2 3\ndefault 9 8 7 6");
    ck_assert_int_eq(map.count, 256);
    ck_assert(map.known[0] && !map.listed[0] && map.listed[255] && map.rgba[0][3] == 6 && map.rgba[255][3] == 255);
    ck_assert_uint_ne(map.tag, read_table("255 1 2 3\ndefault 9 8 7 5").tag);
    ck_assert_uint_eq(map.tag, read_table("default 9 8 7 6\n255 1 2 3 a label").tag);
}
END_TEST

START_TEST(test_wrong_tables)
{
    refuse_table("", 1);
    refuse_table("# nothing", 1);
    refuse_table("0 1 2", 1);
    refuse_table("0 1 2 3\n1 1 2 x", 2);
    refuse_table("\n\n0x1 1 2 3", 3);
    refuse_table("1.5 1 2 3", 1);
    refuse_table("1 1 2 3 256", 1);
    refuse_table("1 1 2 99999999999999999999", 1);
    refuse_table("99999999999999999999 1 2 3", 1);
    refuse_table("default 1 2 3", 1);
    refuse_table("INTERPOLATION:DISCRETE", 1);
    refuse_table("<ColorMap/>", 1);
}
END_TEST

START_TEST(test_gibs_xml)
{
    mc_color_map map = { .name = "m" };
    mc_color_map_problem problem;
    const mc_node *root = config_elements(
        "<ColorMaps><ColorMap><Entries><ColorMapEntry rgb='1,2,3' transparent='true'/><ColorMapEntry rgb='4, 5, 6' "
        "label='x'/></Entries></ColorMap></ColorMaps>");
    ck_assert(mc_color_map_read_xml(&map, root, &problem, pool));
    ck_assert_int_eq(map.count, 2);
    ck_assert(map.rgba[0][3] == 0 && map.rgba[1][2] == 6 && map.rgba[1][3] == 255);
    ck_assert_str_eq(map.labels[1], "x");
    const char *const wrong[] = { "<a/>", "<a><ColorMapEntry/></a>", "<a><ColorMapEntry rgb='1,2'/></a>",
                                  "<a><ColorMapEntry rgb='1,2,3,4'/></a>", "<a><ColorMapEntry rgb='1,2,256'/></a>" };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        ck_assert(!mc_color_map_read_xml(&map, config_elements(wrong[i]), &problem, pool));
    char *many = apr_pstrdup(pool, "<a>");
    for (int i = 0; i < 257; i++)
        many = apr_pstrcat(pool, many, "<ColorMapEntry rgb='1,2,3'/>", NULL);
    ck_assert(!mc_color_map_read_xml(&map, config_elements(apr_pstrcat(pool, many, "</a>", NULL)), &problem, pool));
}
END_TEST

/* 4 x 1 pixels of the numbers 0 to 3, with the palette's entries and alphas as they are given. */
static mc_buf *
make_png(const char *rgb, size_t rgb_size, const char *alpha, size_t alpha_size)
{
    const uint8_t rows[] = { 0, 0, 1, 2, 3 };
    mc_png_header header = { .width = 4, .height = 1, .depth = 8, .color = MC_PNG_PALETTE };
    mc_buf *png = mc_buf_attach(mc_buf_create(0, INT32_MAX), pool);
    ck_ok(mc_png_begin(png, &header, pool));
    ck_ok(mc_png_chunk(png, "PLTE", rgb, rgb_size, pool));
    ck_ok(mc_png_chunk(png, "tEXt", "a\0b", 3, pool));
    if (alpha_size > 0)
        ck_ok(mc_png_chunk(png, "tRNS", alpha, alpha_size, pool));
    ck_ok(mc_png_image_data(png, rows, sizeof(rows), MC_DEFLATE_QUICK, pool));
    ck_ok(mc_png_end(png, pool));
    return png;
}

static const char *
colours_of(const mc_buf *png)
{
    mc_pixels *pixels;
    const char *text = "";
    ck_ok(mc_image_decode(&pixels, png->data, png->size, &ctx, pool));
    mc_pixels_attach(pixels, pool);
    for (int x = 0; x < 4; x++) {
        const uint8_t *bgra = pixels->data + x * 4;
        text = apr_psprintf(pool, "%s%d,%d,%d,%d ", text, bgra[2], bgra[1], bgra[0], bgra[3]);
    }
    return text;
}

START_TEST(test_by_place)
{
    mc_buf *made, *png = make_png("\1\1\1\2\2\2\3\3\3\4\4\4", 12, "\0\x80", 2);
    const mc_color_map map = read_table("0 10 0 0\n1 20 0 0\n2 30 0 0 0\n3 40 0 0"),
                       few = read_table("0 1 1 1\n2 2 2 2"), rest = read_table("0 10 0 0\ndefault 9 9 9");
    ck_ok(mc_color_map_apply(&made, png, &map, NULL, pool));
    ck_assert_str_eq(colours_of(made), "10,0,0,255 20,0,0,255 0,0,0,0 40,0,0,255 ");
    ck_ok(mc_color_map_apply(&made, png, &rest, NULL, pool));
    ck_assert_str_eq(colours_of(made), "10,0,0,255 9,9,9,255 9,9,9,255 9,9,9,255 ");
    ck_fails(CORRUPT, mc_color_map_apply(&made, png, &few, NULL, pool));
    ck_ok(mc_color_map_apply(&made, make_png("\1\1\1\2\2\2\3\3\3\4\4\4", 12, "", 0), &map, NULL, pool));
    ck_assert_str_eq(colours_of(made), "10,0,0,255 20,0,0,255 0,0,0,0 40,0,0,255 ");
}
END_TEST

START_TEST(test_by_color)
{
    const mc_color_map stored = read_table("0 1 1 1 0\n1 2 2 2\n2 3 3 3\n3 4 4 4\n4 4 4 4\n5 6 6 6 128"),
                       map = read_table("0 0 0 0 0\n1 20 0 0\n2 30 0 0\n3 40 0 0\n4 40 0 0\n5 60 0 0"),
                       other = read_table("0 0 0 0 0\n1 20 0 0\n2 30 0 0\n3 40 0 0\n4 50 0 0\n5 60 0 0");
    mc_buf *made;
    /* what is wholly transparent is one colour, whatever stands beside its alpha */
    mc_buf *shuffled = make_png("\3\3\3\6\6\6\2\2\2\x9\x9\x9", 12, "\xff\x80\xff\0", 4);
    ck_ok(mc_color_map_apply(&made, shuffled, &map, &stored, pool));
    ck_assert_str_eq(colours_of(made), "30,0,0,255 60,0,0,255 20,0,0,255 0,0,0,0 ");
    mc_buf *twice = make_png("\4\4\4\2\2\2", 6, "", 0);
    ck_ok(mc_color_map_apply(&made, twice, &map, &stored, pool)); /* both numbers have one colour there */
    ck_fails(CORRUPT, mc_color_map_apply(&made, twice, &other, &stored, pool));
    ck_fails(CORRUPT, mc_color_map_apply(&made, make_png("\7\7\7\2\2\2", 6, "", 0), &map, &stored, pool));
    ck_fails(CORRUPT, mc_color_map_apply(&made, make_png("\2\2\2\3\3\3", 6, "\x80", 1), &map, &stored, pool));
    /* the stored palette itself, filled up: places count, so that colours may occur twice */
    mc_buf *whole = make_png("\1\1\1\2\2\2\3\3\3\4\4\4\4\4\4\6\6\6", 18, "\0\xff\xff\xff\xff\x80", 6);
    ck_ok(mc_color_map_apply(&made, whole, &other, &stored, pool));
    ck_assert_str_eq(colours_of(made), "0,0,0,0 20,0,0,255 30,0,0,255 40,0,0,255 ");
}
END_TEST

START_TEST(test_broken_pngs)
{
    const mc_color_map map = read_table("default 9 9 9\n0 1 1 1");
    mc_buf *made, *png = make_png("\1\1\1\2\2\2\3\3\3\4\4\4", 12, "\0\x80", 2);
    const uint8_t *idat = memmem(png->data, png->size, "IDAT", 4);
    for (size_t size = 0; size < (size_t)(idat - png->data) + 8; size++) {
        mc_buf *cut = mc_buf_attach(mc_buf_copy(png->data, size), pool);
        ck_fails(CORRUPT, mc_color_map_apply(&made, cut, &map, NULL, pool));
    }
    for (size_t at = 8; at < (size_t)(idat - png->data) - 4; at++) {
        mc_buf *bent = mc_buf_attach(mc_buf_copy(png->data, png->size), pool);
        bent->data[at] ^= 0x10;
        mc_error *error = mc_color_map_apply(&made, bent, &map, NULL, pool);
        ck_assert(error == MC_OK || error->kind == MC_ERR_CORRUPT);
    }
    const struct {
        const char *rgb;
        size_t rgb_size, alpha_size;
    } wrong[] = { { "\1\1", 2, 0 }, { "", 0, 0 }, { "\1\1\1\1", 4, 0 }, { "\1\1\1", 3, 2 } };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        ck_fails(CORRUPT,
                 mc_color_map_apply(&made, make_png(wrong[i].rgb, wrong[i].rgb_size, "\0\0", wrong[i].alpha_size), &map,
                                    NULL, pool));
    mc_png_header grey = { .width = 1, .height = 1, .depth = 8, .color = MC_PNG_GRAY };
    mc_buf *plain = mc_buf_attach(mc_buf_create(0, INT32_MAX), pool);
    ck_ok(mc_png_begin(plain, &grey, pool));
    ck_ok(mc_png_image_data(plain, (const uint8_t[]){ 0, 0 }, 2, MC_DEFLATE_QUICK, pool));
    ck_ok(mc_png_end(plain, pool));
    ck_fails(CORRUPT, mc_color_map_apply(&made, plain, &map, NULL, pool));
}
END_TEST

UNIT_MAIN("color_map", test_tables, test_wrong_tables, test_gibs_xml, test_by_place, test_by_color, test_broken_pngs)
