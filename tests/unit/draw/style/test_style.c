#include "styles.h"

#include <apr_hash.h>
#include <apr_strings.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "draw/paint/painter.h"
#include "draw/style/expression.h"

/* Whether a feature with the values of attributes A and B fits a condition that names both. */
static bool
matches(const char *condition, const char *a, const char *b)
{
    const mc_style *style =
        style_of(apr_pstrcat(pool,
                             "<Rule><Filter><And><Not><PropertyIsEqualTo><PropertyName>A</PropertyName>"
                             "<Literal>?</Literal></PropertyIsEqualTo></Not><Not><PropertyIsEqualTo>"
                             "<PropertyName>B</PropertyName><Literal>?</Literal></PropertyIsEqualTo>"
                             "</Not>",
                             condition, "</And></Filter></Rule>", NULL));
    ck_assert_ptr_nonnull(style);
    ck_assert_int_eq(style->attribute_count, 2);
    ck_assert_int_eq(style->passes[0].rule_count, 1);
    const char *const values[] = { a, b };
    const mc_feature feature = { .id = 1, .values = values };
    return mc_filter_matches(style->passes[0].rules[0].filter, &feature, pool);
}

#define A "<ogc:PropertyName>A</ogc:PropertyName>"
#define B "<ogc:PropertyName>B</ogc:PropertyName>"
#define LITERAL(text) "<ogc:Literal>" text "</ogc:Literal>"

START_TEST(comparisons)
{
    ck_assert(matches("<PropertyIsEqualTo>" A LITERAL("x") "</PropertyIsEqualTo>", "x", ""));
    ck_assert(!matches("<PropertyIsEqualTo>" A LITERAL("x") "</PropertyIsEqualTo>", "X", ""));
    ck_assert(matches("<PropertyIsEqualTo matchCase='false'>" A LITERAL("x") "</PropertyIsEqualTo>", "X", ""));
    ck_assert(
        matches("<PropertyIsEqualTo matchCase='false'>" A LITERAL("\xC3\xBC") "</PropertyIsEqualTo>", "\xC3\x9C", ""));
    ck_assert(!matches("<PropertyIsEqualTo>" A LITERAL("x") "</PropertyIsEqualTo>", NULL, ""));
    ck_assert(matches("<PropertyIsEqualTo>" A LITERAL("1.0") "</PropertyIsEqualTo>", "1", ""));
    ck_assert(matches("<PropertyIsLessThan>" A B "</PropertyIsLessThan>", "9", "10"));
    ck_assert(!matches("<PropertyIsLessThan>" A B "</PropertyIsLessThan>", "9a", "10a"));
    ck_assert(matches("<PropertyIsGreaterThanOrEqualTo>" A B "</PropertyIsGreaterThanOrEqualTo>", "-1e3", "-1000"));
    ck_assert(matches("<PropertyIsNotEqualTo>" A B "</PropertyIsNotEqualTo>", "1", "2"));
    /* moments, as styles and as PostgreSQL write them */
    const char *since =
        "<PropertyIsGreaterThanOrEqualTo>" A LITERAL("2026-11-22T00:00:00Z") "</PropertyIsGreaterThanOrEqualTo>";
    ck_assert(matches(since, "2026-11-22 08:30:00+00", ""));
    ck_assert(matches(since, "2026-11-22 01:00:00+01", ""));
    ck_assert(!matches(since, "2026-11-22 00:59:59.9+01:00", ""));
    ck_assert(matches(since, "2026-11-21 20:30:00-0330", "") && matches(since, "2026-11-22", ""));
    ck_assert(!matches(since, "2026-11-21", "") && !matches(since, "2026-11-22 25:00", ""));
    ck_assert(matches("<PropertyIsEqualTo>" A LITERAL("2026-11-22T00:30:00Z") "</PropertyIsEqualTo>",
                      "2026-11-22 00:30:00+00", ""));
    const char *between = "<PropertyIsBetween>" A "<LowerBoundary>" LITERAL("1") "</LowerBoundary><UpperBoundary>" B
                                                                                 "</UpperBoundary></PropertyIsBetween>";
    ck_assert(matches(between, "1", "3"));
    ck_assert(matches(between, "3", "3"));
    ck_assert(!matches(between, "3.1", "3"));
    ck_assert(matches("<PropertyIsNull>" A "</PropertyIsNull>", NULL, "b"));
    ck_assert(!matches("<PropertyIsNull>" A "</PropertyIsNull>", "", "b"));
    ck_assert(
        matches("<Or><PropertyIsNull>" A "</PropertyIsNull><PropertyIsNull>" B "</PropertyIsNull></Or>", "", NULL));
}
END_TEST

START_TEST(likes)
{
    static const struct {
        const char *pattern, *text;
        bool fits;
    } cases[] = { { "a*", "abc", true },
                  { "*c", "abc", true },
                  { "a?c", "abc", true },
                  { "a?c", "ac", false },
                  { "*", "", true },
                  { "", "", true },
                  { "", "a", false },
                  { "a\\*", "a*", true },
                  { "a\\*", "ab", false },
                  { "*b*", "abc", true },
                  { "*a*b", "aab", true },
                  { "abc", "abcd", false },
                  { "**c", "abc", true },
                  { "a*d", "abc", false },
                  { "a?c",
                    "a\xC3\xBC"
                    "c",
                    true },
                  { "??", "\xC3\xBC", false },
                  { "*?", "\xE2\x82\xAC", true },
                  { "*??", "\xE2\x82\xAC", false } };
    mc_filter how = { .wildcard = '*', .single = '?', .escape = '\\' };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        ck_assert_msg(mc_like(cases[i].text, cases[i].pattern, &how) == cases[i].fits, "%s, %s", cases[i].pattern,
                      cases[i].text);
    ck_assert(matches("<PropertyIsLike wildCard='%' singleChar='_' escape='!'>" A LITERAL("St. %") "</PropertyIsLike>",
                      "St. Gallen", ""));
    ck_assert(matches("<PropertyIsLike wildCard='X' singleChar='?' escape='!' matchCase='false'>" A LITERAL(
                          "X\xC3\x9C"
                          "RI?H") "</PropertyIsLike>",
                      "z\xC3\xBCrich", ""));
}
END_TEST

/* A prefix is one where the document says so: attributes may have colons of their own. */
START_TEST(names_with_colons)
{
    const mc_style *style = style_of("<Rule><Filter><Or><PropertyIsNull><PropertyName>addr:street</PropertyName>"
                                     "</PropertyIsNull><PropertyIsNull><PropertyName>gml:name:de</PropertyName>"
                                     "</PropertyIsNull></Or></Filter></Rule>");
    ck_assert_int_eq(style->attribute_count, 2);
    ck_assert_str_eq(style->attributes[0], "addr:street");
    ck_assert_str_eq(style->attributes[1], "name:de");
}
END_TEST

/* The text of an expression over attribute A. */
static const char *
value_of(const char *expression, const char *a)
{
    const mc_style *style =
        style_of(apr_pstrcat(pool, "<Rule><PolygonSymbolizer><Fill><CssParameter name='fill'>", expression,
                             "</CssParameter></Fill></PolygonSymbolizer></Rule>", NULL));
    ck_assert_ptr_nonnull(style);
    ck_assert_int_eq(count_complaints(MC_NOT_BUILT), 0);
    const char *const values[] = { a };
    const mc_feature feature = { .id = 1, .values = values };
    return mc_expression_text(style->passes[0].rules[0].symbolizers[0].fill.color_value, &feature, pool);
}

START_TEST(values)
{
    ck_assert_str_eq(value_of(A, "#010203"), "#010203");
    ck_assert_str_eq(value_of("#" A, "010203"), "#010203");
    ck_assert_str_eq(value_of("<Add>" A LITERAL("1") "</Add>", "2"), "3");
    ck_assert_str_eq(value_of("<Div>" A LITERAL("4") "</Div>", "1"), "0.25");
    ck_assert_ptr_null(value_of("<Div>" A LITERAL("0") "</Div>", "1"));
    ck_assert_ptr_null(value_of("<Mul>" A LITERAL("2") "</Mul>", "text"));
    ck_assert_str_eq(value_of("<Function name='strToUpperCase'>" A "</Function>", "abc"), "ABC");
    ck_assert_str_eq(value_of("<Function name='Recode'>" A LITERAL("a") LITERAL("#f00") LITERAL("b")
                                  LITERAL("#0f0") "</Function>",
                              "b"),
                     "#0f0");
    const char *classes = "<se:Categorize><LookupValue>" A "</LookupValue><Value>#000</Value><Threshold>10</Threshold>"
                          "<Value>#111</Value><Threshold>20</Threshold><Value>#222</Value></se:Categorize>";
    ck_assert_str_eq(value_of(classes, "9"), "#000");
    ck_assert_str_eq(value_of(classes, "10"), "#111");
    ck_assert_str_eq(value_of(classes, "99"), "#222");
    const char *ramp =
        "<se:Interpolate><LookupValue>" A "</LookupValue><InterpolationPoint><Data>0</Data><Value>#000000"
        "</Value></InterpolationPoint><InterpolationPoint><Data>10</Data><Value>#ff0064</Value>"
        "</InterpolationPoint></se:Interpolate>";
    ck_assert_str_eq(value_of(ramp, "-5"), "#000000");
    ck_assert_str_eq(value_of(ramp, "5"), "#800032");
    ck_assert_str_eq(value_of(ramp, "50"), "#ff0064");
}
END_TEST

START_TEST(what_is_lacking_is_named)
{
    ck_assert_ptr_nonnull(style_of("<Rule><RasterSymbolizer/></Rule>"));
    ck_assert_int_eq(count_complaints(MC_NOT_BUILT), 1);
    ck_assert_ptr_nonnull(style_of("<Rule><PolygonSymbolizer><Fill><CssParameter name='fill'>red</CssParameter></Fill>"
                                   "<Stroke><CssParameter name='stroke-glow'>1</CssParameter></Stroke><Glow/>"
                                   "</PolygonSymbolizer></Rule>"));
    ck_assert_int_eq(count_complaints(MC_NOT_BUILT), 3);
    const mc_style *style =
        style_of("<Rule><Filter><Within/></Filter><LineSymbolizer/></Rule><Rule><LineSymbolizer/></Rule>");
    ck_assert_int_eq(count_complaints(MC_NOT_BUILT), 1);
    ck_assert_int_eq(style->passes[0].rule_count, 1);
    ck_assert_ptr_null(style_of("<Rule><MinScaleDenominator>many</MinScaleDenominator></Rule>"));
    ck_assert_int_eq(count_complaints(MC_REFUSED), 1);
}
END_TEST

static mc_geometry geometry;

static mc_pixels *
painted(const mc_style *style, int count, const char *const *values, bool by_feature)
{
    mc_pixels *pixels;
    mc_painter *painter;
    ck_ok(mc_pixels_create(&pixels, 64, 64, true, pool));
    mc_pixels_attach(pixels, pool);
    const mc_feature_query map = { .scale = 10000 };
    ck_ok(mc_painter_create(&painter, style, pixels, &map, by_feature, pool));
    for (int i = 0; i < count; i++) {
        static const int corners[4][2] = { { 0, 0 }, { 1, 0 }, { 1, 1 }, { 0, 1 } };
        mc_geometry_clear(&geometry);
        for (int c = 0; c < 4; c++)
            mc_shape_add(&geometry.shapes[MC_SHAPE_POLYGONS], (8 + i * 12 + corners[c][0] * 24) * MC_SUBPIXELS,
                         (8 + corners[c][1] * 24) * MC_SUBPIXELS);
        mc_shape_end_ring(&geometry.shapes[MC_SHAPE_POLYGONS], false);
        const mc_feature feature = { .id = i, .geometry = &geometry, .values = values + i };
        ck_ok(mc_painter_visit(painter, &feature, &ctx));
    }
    ck_ok(mc_painter_finish(painter, &ctx));
    mc_geometry_free(&geometry);
    return pixels;
}

static uint32_t
pixel(const mc_pixels *pixels, int x, int y)
{
    const uint8_t *p = pixels->data + (size_t)y * pixels->stride + (size_t)x * 4;
    return (uint32_t)p[3] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[1] << 8 | p[0];
}

START_TEST(rules_in_the_order_of_features)
{
    const char *rules = "<Rule><Filter><PropertyIsEqualTo>" A LITERAL(
        "r") "</PropertyIsEqualTo></Filter><PolygonSymbolizer>"
             "<Fill><CssParameter name='fill'>#ff0000</CssParameter></Fill></PolygonSymbolizer></Rule>"
             "<Rule><ElseFilter/><MaxScaleDenominator>20000</MaxScaleDenominator><PolygonSymbolizer><Fill>"
             "<CssParameter name='fill'>#0000ff</CssParameter><CssParameter name='fill-opacity'>0.5"
             "</CssParameter></Fill></PolygonSymbolizer></Rule><Rule><MinScaleDenominator>20000"
             "</MinScaleDenominator><PolygonSymbolizer><Fill/></PolygonSymbolizer></Rule>";
    const char *const values[] = { "r", "b" };
    const mc_pixels *pixels = painted(style_of(rules), 2, values, false);
    ck_assert_uint_eq(pixel(pixels, 10, 20), 0xFFFF0000U);
    ck_assert_uint_eq(pixel(pixels, 40, 20), 0x80000080U);
    ck_assert_uint_eq(pixel(pixels, 25, 20), 0xFF7F0080U); /* the second feature lies over the first */
    ck_assert_uint_eq(pixel(pixels, 2, 2), 0);
}
END_TEST

/* Also where each rule alone could be painted whole: the later feature is on top, whichever rule is its own. */
START_TEST(opaque_rules_in_the_order_of_features)
{
    static const char rules[] = "<Rule><Filter><PropertyIsEqualTo>" A LITERAL(
        "%s") "</PropertyIsEqualTo></Filter><PolygonSymbolizer><Fill>"
              "<CssParameter name='fill'>#ff0000</CssParameter></Fill></PolygonSymbolizer></Rule>"
              "<Rule><ElseFilter/><PolygonSymbolizer><Fill><CssParameter name='fill'>#0000ff</CssParameter></Fill>"
              "</PolygonSymbolizer></Rule>";
    const char *const values[] = { "r", "b" };
    for (int last = 0; last < 2; last++) {
        const mc_style *style = style_of(apr_psprintf(pool, rules, last ? "b" : "r"));
        const mc_pixels *pixels = painted(style, 2, values, false), *single = painted(style, 2, values, true);
        ck_assert_uint_eq(pixel(pixels, 25, 20), last ? 0xFFFF0000U : 0xFF0000FFU);
        ck_assert_int_eq(memcmp(pixels->data, single->data, pixels->stride * 64), 0);
    }
}
END_TEST

/* A casing under all of the net, then its lines: the second feature's casing does not cover the first one's line. */
START_TEST(passes_lie_over_each_other)
{
    static const char rule[] =
        "<Rule><LineSymbolizer><Stroke><CssParameter name='stroke'>%s</CssParameter>"
        "<CssParameter name='stroke-opacity'>%s</CssParameter><CssParameter name='stroke-width'>%s</CssParameter>"
        "</Stroke></LineSymbolizer></Rule>";
    const char *const values[] = { "", "" };
    for (int opaque = 0; opaque < 2; opaque++) {
        const char *under = apr_psprintf(pool, rule, "#0000ff", opaque ? "1" : "0.5", "8");
        const char *over = apr_psprintf(pool, rule, "#ff0000", opaque ? "1" : "0.999", "2");
        const mc_pixels *pixels =
            painted(style_of(apr_pstrcat(pool, under, "</sld:FeatureTypeStyle><sld:FeatureTypeStyle>", over, NULL)), 2,
                    values, false);
        ck_assert_uint_eq(pixel(pixels, 32, 20), 0xFFFF0000U); /* the right side of the first, near the second's */
        ck_assert_uint_eq(pixel(pixels, 20, 20), 0xFFFF0000U);
        ck_assert_uint_eq(pixel(pixels, 22, 20), opaque ? 0xFF0000FFU : 0x80000080U);
        ck_assert_uint_eq(pixel(pixels, 26, 20), 0);
    }
}
END_TEST

/* Where shapes do not lie over each other, a layer that is painted whole looks as one that is painted by feature. */
START_TEST(whole_layers_are_painted_alike)
{
    static const char rules[] =
        "<Rule><PolygonSymbolizer><Fill><CssParameter name='fill'>#ff8800</CssParameter></Fill><Stroke>"
        "<CssParameter name='stroke'>#000000</CssParameter><CssParameter name='stroke-width'>%s"
        "</CssParameter></Stroke></PolygonSymbolizer></Rule>";
    const char *const values[] = { "" };
    for (int wide = 0; wide < 2; wide++) {
        const mc_style *style = style_of(apr_psprintf(pool, rules, wide ? "5" : "1"));
        const mc_pixels *whole = painted(style, 1, values, false), *single = painted(style, 1, values, true);
        for (int y = 0; y < 64; y++)
            for (int i = 0; i < 256; i++) /* in 16 steps of coverage */
                ck_assert_int_le(abs(whole->data[(size_t)y * whole->stride + (size_t)i] -
                                     single->data[(size_t)y * single->stride + (size_t)i]),
                                 9);
        ck_assert_uint_eq(pixel(whole, 20, 20), 0xFFFF8800U);
        if (wide) {
            ck_assert_uint_eq(pixel(whole, 8, 20), 0xFF000000U);
            ck_assert_uint_eq(pixel(whole, 6, 20), 0xFF000000U);
            ck_assert_uint_eq(pixel(whole, 5, 5), 0x44000000U); /* a quarter of the mitre's corner pixel */
            ck_assert_uint_eq(pixel(whole, 4, 20), 0);
        }
    }
    ck_assert(mc_painter_margin(style_of(apr_psprintf(pool, rules, "7")), 1000) >= 3.5);
    ck_assert(mc_painter_margin(style_of(apr_psprintf(pool, rules, A)), 1000) >= 64); /* as wide as features say */
}
END_TEST

START_TEST(lines_dashed_and_beside)
{
    const char *rules = "<Rule><LineSymbolizer><Stroke><CssParameter name='stroke'>#000000</CssParameter><CssParameter "
                        "name='stroke-width'>4</CssParameter><CssParameter name='stroke-dasharray'>8 4</CssParameter>"
                        "</Stroke></LineSymbolizer></Rule>";
    const char *const values[] = { "" };
    const mc_pixels *pixels = painted(style_of(rules), 1, values, false);
    int dark = 0;
    for (int x = 8; x < 32; x++)
        dark += pixel(pixels, x, 8) == 0xFF000000U;
    ck_assert(dark >= 14 && dark <= 18); /* of 24, two in three */
    ck_assert_uint_eq(pixel(pixels, 20, 20), 0);
}
END_TEST

/* Where each of many small marks lies, by the centre of what it covers: a sixteenth of a pixel off at most. */
START_TEST(marks_lie_at_their_points)
{
    const mc_style *style = style_of("<Rule><PointSymbolizer><Graphic><Mark><WellKnownName>circle</WellKnownName><Fill>"
                                     "<CssParameter name='fill'>#ff0000</CssParameter></Fill></Mark><Size>7</Size>"
                                     "</Graphic></PointSymbolizer></Rule>");
    const mc_feature_query map = { .scale = 10000 };
    for (int round = 0; round < 200; round++) {
        mc_pixels *pixels;
        mc_painter *painter;
        int32_t at[2] = { 20 * 256 + round * 37 % 256, 30 * 256 + round * 101 % 256 };
        ck_ok(mc_pixels_create(&pixels, 64, 64, true, pool));
        mc_pixels_attach(pixels, pool);
        ck_ok(mc_painter_create(&painter, style, pixels, &map, false, pool));
        for (int i = 0; i < 2; i++) { /* the second one is a copy of the first, 16 pixels on */
            mc_geometry_clear(&geometry);
            mc_shape_add(&geometry.shapes[MC_SHAPE_POINTS], at[0] + i * 16 * MC_SUBPIXELS, at[1]);
            mc_shape_end_part(&geometry.shapes[MC_SHAPE_POINTS]);
            const mc_feature feature = { .id = i, .geometry = &geometry };
            ck_ok(mc_painter_visit(painter, &feature, &ctx));
        }
        ck_ok(mc_painter_finish(painter, &ctx));
        double x = 0, y = 0, sum = 0;
        for (int row = 0; row < 64; row++)
            for (int column = 12; column < 28; column++) {
                uint32_t alpha = pixel(pixels, column, row) >> 24;
                ck_assert_uint_eq(alpha, pixel(pixels, column + 16, row) >> 24);
                x += alpha * (column + 0.5);
                y += alpha * (row + 0.5);
                sum += alpha;
            }
        ck_assert_double_eq_tol(sum / 255, M_PI * 3.5 * 3.5, 1);
        ck_assert_double_eq_tol(x / sum, at[0] / 256.0, 0.08);
        ck_assert_double_eq_tol(y / sum, at[1] / 256.0, 0.08);
    }
    mc_geometry_free(&geometry);
}
END_TEST

UNIT_MAIN("style", names_with_colons, comparisons, likes, values, what_is_lacking_is_named,
          rules_in_the_order_of_features, opaque_rules_in_the_order_of_features, passes_lie_over_each_other,
          whole_layers_are_painted_alike, lines_dashed_and_beside, marks_lie_at_their_points)
