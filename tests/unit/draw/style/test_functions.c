#include "styles.h"

#include <math.h>
#include <string.h>

#include "draw/style/expression.h"

/* The value of an expression over attributes A and B as text; "NULL" for null, "?" for what cannot be read. */
static const char *
value_of(const char *expression, const char *a, const char *b)
{
    const mc_style *style =
        style_of(apr_pstrcat(pool,
                             "<Rule><Filter><Or><PropertyIsNull><PropertyName>A</PropertyName>"
                             "</PropertyIsNull><PropertyIsNull><PropertyName>B</PropertyName>"
                             "</PropertyIsNull></Or></Filter><PolygonSymbolizer><Fill>"
                             "<CssParameter name='fill'>",
                             expression, "</CssParameter></Fill></PolygonSymbolizer></Rule>", NULL));
    const char *const values[] = { a, b };
    const mc_feature feature = { .id = 7, .values = values };
    if (style == NULL || count_complaints(MC_NOT_BUILT) > 0)
        return "?";
    const char *text = mc_expression_text(style->passes[0].rules[0].symbolizers[0].fill.color_value, &feature, pool);
    return text == NULL ? "NULL" : text;
}

#define A "<PropertyName>A</PropertyName>"
#define B "<PropertyName>B</PropertyName>"
#define L(text) "<Literal>" text "</Literal>"
#define F(name, arguments) "<Function name='" name "'>" arguments "</Function>"

static const struct {
    const char *expression, *a, *b, *value;
} cases[] = {
    { F("strToUpperCase", A), "ab", "", "AB" },
    { F("hsl", A L("80%") L("0.5")), "90", "", "#80e619" },
    { F("lighten", A L("20%")), "#80e619", "", "#b3f075" },
    { F("darken", A L("0.2")), "#80e619", "", "#4d8a0f" },
    { F("darken", A L("50%") L("relative")), "#ffffff", "", "#808080" },
    { F("saturate", A L("20%")), "#80e619", "", "#80ff00" },
    { F("desaturate", A L("20%")), "#80e619", "", "#80cc32" },
    { F("spin", A L("60")), "#f2330d", "", "#ccf20d" },
    { F("spin", A L("-420")), "#ccf20d", "", "#f2330d" },
    { F("grayscale", A), "#80f20d", "", "#808080" },
    { F("mix", A B L("50%")), "#ff0000", "#0000ff", "#800080" },
    { F("mix", A B L("1")), "#ff0000", "#0000ff", "#ff0000" },
    { F("tint", A L("50%")), "#007fff", "", "#80bfff" },
    { F("shade", A L("50%")), "#007fff", "", "#004080" },
    { F("contrast", A), "#ffff00", "", "#000000" },
    { F("constrast", A L("#202020") L("#dddddd")), "#000080", "", "#dddddd" },
    { F("darken", A L("much")), "#80e619", "", "NULL" },
    { F("darken", A L("10%")), "green", "", "NULL" },
    { "<Add>" A L("2") L("3") B "</Add>", "1", "4", "10" },
    { "<Mul>" A L("2") L("3") "</Mul>", "4", "", "24" },
    { "<Sub>" A L("2") L("3") "</Sub>", "4", "", "?" },
    { "<Add>" A "</Add>", "4", "", "?" },
    { F("lower", A), "AB", "", "ab" },
    { F("strToUpperCase", A),
      "Z\xC3\xBCrich, Stra\xC3\x9F"
      "e \xD0\xB4\xD0\xB0",
      "", "Z\xC3\x9CRICH, STRASSE \xD0\x94\xD0\x90" },
    { F("strToLowerCase", A),
      "\xC3\x89"
      "A\xC2\xB2\xFF\xC3",
      "",
      "\xC3\xA9"
      "a\xC2\xB2\xFF\xC3" }, /* no UTF-8 */
    { F("title", A),
      "\xC3\xA9"
      "mile zola",
      "",
      "\xC3\x89"
      "mile Zola" },
    { F("strEqualsIgnoreCase", A B), "Z\xC3\xBCrich", "z\xC3\x9CRICH", "true" },
    { F("strConcat", A F("concat", L(" (") B L(") "))), "a", "b", "a (b) " },
    { F("strConcat", A L("\n  ;\n  ") B), "a", "b", "a;b" },
    { "<Concatenate><StringValue>" A "</StringValue><StringValue> - </StringValue></Concatenate>", "a", "", "a - " },
    { F("ceil", A), "-0.5", "", "0" },
    { F("Interpolate", A L("0") L("1") L("10") L("5") L("numeric") L("linear")), "12", "", "5" },
    { F("Interpolate", A L("0") L("#000000") L("10") L("#ffffff") L("color")), "12", "", "#ffffff" },
    { F("Interpolate", A L("0") L("1") L("10") L("5") L("numeric") L("cubic")), "12", "", "?" },
    { F("Interpolate", A L("0") L("1") L("10")), "12", "", "?" },
    { F("Categorize", A L("low") L("10") L("high") L("succeeding")), "10", "", "high" },
    { F("Categorize", A L("low") L("10") L("high") L("preceding")), "10", "", "?" },
    { F("Recode", A L("1") L("one") L("2")), "1", "", "?" },
    { F("Recode", A L("1") L("one") L("2") L("two")), "2.00", "", "two" },
    { F("strCapitalize", A), "der GROSSE see", "", "Der Grosse See" },
    { F("strConcat", A B), "a", "b", "ab" },
    { F("Concatenate", A L("-") B), "a", NULL, "a-" },
    { F("strLength", A), "Z\xC3\xBCrich", "", "6" },
    { F("length", A), NULL, "", "NULL" },
    { F("strSubstring", A L("1") L("3")), "Z\xC3\xBCrich", "", "\xC3\xBCr" },
    { F("strSubstringStart", A L("2")), "abcd", "", "cd" },
    { F("substr", A L("2") L("2")), "abcd", "", "bc" },
    { F("substr", A L("-2")), "abcd", "", "cd" },
    { F("left", A L("2")), "abcd", "", "ab" },
    { F("right", A L("2")), "abcd", "", "cd" },
    { F("strIndexOf", A L("c")), "abcabc", "", "2" },
    { F("strLastIndexOf", A L("c")), "abcabc", "", "5" },
    { F("strIndexOf", A L("z")), "abcabc", "", "-1" },
    { F("strStartsWith", A L("ab")), "abc", "", "true" },
    { F("strEndsWith", A L("bc")), "abc", "", "true" },
    { F("strEndsWith", A L("abcd")), "bcd", "", "false" },
    { F("strEqualsIgnoreCase", A L("ABC")), "abc", "", "true" },
    { F("strReplace", A L("b") L("xx") L("true")), "abab", "", "axxaxx" },
    { F("strTrim", A), " a b ", "", "a b" },
    { F("strDefaultIfBlank", A L("none")), "  ", "", "none" },
    { F("round", A), "2.5", "", "3" },
    { F("round", A L("2")), "2.346", "", "2.35" },
    { F("rint", A), "2.5", "", "2" },
    { F("parseInt", A), "-2.9", "", "-2" },
    { F("modulo", A L("7")), "23", "", "2" },
    { F("modulo", A L("0")), "23", "", "NULL" },
    { F("IEEERemainder", A L("7")), "27", "", "-1" },
    { F("toDegrees", F("pi", "")), "", "", "180" },
    { F("atan2", L("1") L("1")), "", "", "0.7853981633974483" },
    { F("sqrt", A), "-1", "", "NULL" },
    { F("log10", A), "1000", "", "3" },
    { F("max", A B), "3", "12", "12" },
    { F("max_2", A B), "3", "12", "12" },
    { F("abs_2", A), "-3", "", "3" },
    { F("numberFormat", L("#,##0.00") A), "1234567.891", "", "1,234,567.89" },
    { F("numberFormat", L("0.##") A), "-0.5", "", "-0.5" },
    { F("numberFormat", L("000") A), "7", "", "007" },
    { F("numberFormat", L("#%") A), "0.25", "", "25%" },
    { F("numberFormat", L("#.#") A), "0.25", "", ".2" },
    { F("in", A L("x") L("y")), "y", "", "true" },
    { F("in2", A L("1") L("2")), "2.0", "", "true" },
    { F("in", A L("x")), NULL, "", "false" },
    { F("between", A L("1") L("3")), "3", "", "true" },
    { F("between", A L("1") L("3")), "4", "", "false" },
    { F("isNull", A), NULL, "", "true" },
    { F("not", F("isNull", A)), NULL, "", "false" },
    { F("equalTo", A B), "1.0", "1", "true" },
    { F("greaterThan", A B), "10", "9", "true" },
    { F("lessEqualThan", A B), "10", "9", "false" },
    { F("if_then_else", F("greaterThan", A B) L("up") L("down")), "10", "9", "up" },
    { F("Coalesce", A B L("c")), NULL, NULL, "c" },
    { F("env", L("wms_scale_denominator") L("5")), "", "", "5" },
    { F("id", ""), "", "", "7" },
    { F("dateFormat", L("dd.MM.yyyy") A), "2026-11-22", "", "22.11.2026" },
    { F("dateFormat", L("d MMMM yy HH:mm 'Uhr'") A), "2026-03-05T08:07:06", "", "5 March 26 08:07 Uhr" },
    { F("dateFormat", L("yyyy") A), "no date", "", "NULL" },
    { F("dateParse", L("dd/MM/yyyy") A), "22/11/2026", "", "2026-11-22" },
    { F("dateParse", L("dd/MM/yyyy") A), "22/13/2026", "", "NULL" },
    { F("dateDifference", A B L("d")), "2024-03-01", "2024-02-28", "2" },
    { F("dateDifference", A B L("h")), "2026-01-01T12:00:00", "2025-12-31", "36" },
    { F("year", A), "2026-11-22", "", "2026" },
    { "<FormatNumber groupingSeparator=\"'\" decimalPoint=','><NumericValue>" A
      "</NumericValue><Pattern>#,##0.0</Pattern></FormatNumber>",
      "-12345.67", "", "-12'345,7" },
    { "<FormatNumber><NumericValue>" A
      "</NumericValue><Pattern>0.0</Pattern><NegativePattern>(0.0)</NegativePattern></FormatNumber>",
      "-1.26", "", "(1.3)" },
    { "<FormatDate><DateValue>" A "</DateValue><Pattern>YYYY-DD</Pattern></FormatDate>", "2026-11-22", "", "2026-22" },
    { "<Substring><StringValue>" A "</StringValue><Position>2</Position><Length>2</Length></Substring>", "abcd", "",
      "bc" },
    { "<ChangeCase direction='toLower'><StringValue>" A "</StringValue></ChangeCase>", "ABC", "", "abc" },
    { "<ChangeCase><StringValue>" A "</StringValue></ChangeCase>", "abc", "", "ABC" },
    { "<Trim stripOffPosition='both' stripOffChar='0'><StringValue>" A "</StringValue></Trim>", "00700", "", "7" },
    { "<Trim stripOffPosition='leading' stripOffChar='0'><StringValue>" A "</StringValue></Trim>", "0070", "", "70" },
    { "<StringPosition><LookupString>b</LookupString><StringValue>" A "</StringValue></StringPosition>", "abab", "",
      "2" },
    { "<StringPosition searchDirection='backToFront'><LookupString>b</LookupString><StringValue>" A
      "</StringValue></StringPosition>",
      "abab", "", "4" },
    { "<StringLength><StringValue>" A "</StringValue></StringLength>", "abc", "", "3" },
    { "<Concatenate><StringValue>" A "</StringValue><StringValue>!</StringValue></Concatenate>", "abc", "", "abc!" },
    { "<Recode fallbackValue='#123456'><LookupValue>" A
      "</LookupValue><MapItem><Data>1</Data><Value>one</Value></MapItem></Recode>",
      "2", "", "#123456" },
    { F("Recode", A L("1") L("one") L("2") L("two")), "2.000", "", "two" }, /* numbers, however they are written */
    { F("Recode", A L("a") L("one") L("A") L("two")), "A", "", "two" },
    { F("isCoverage", ""), "", "", "false" },
    { "<Categorize><LookupValue>" A "</LookupValue><Value>low</Value><Threshold>5</Threshold><Value>high</Value>"
      "</Categorize>",
      "5", "", "high" },
    { "<Interpolate mode='linear' method='color'><LookupValue>" A
      "</LookupValue><InterpolationPoint><Data>0</Data><Value>#000000</Value></InterpolationPoint>"
      "<InterpolationPoint><Data>10</Data><Value>#ffffff</Value></InterpolationPoint></Interpolate>",
      "5", "", "#808080" },
    /* what is lacking is said, not guessed */
    { F("nothingLikeIt", A), "", "", "?" },
    { F("strSubstring", A), "", "", "?" },
    { "<Interpolate mode='cubic'><LookupValue>" A
      "</LookupValue><InterpolationPoint><Data>0</Data><Value>1</Value></InterpolationPoint></Interpolate>",
      "5", "", "?" },
    { "<Categorize thresholdsBelongTo='preceding'><LookupValue>" A
      "</LookupValue><Value>low</Value><Threshold>5</Threshold><Value>high</Value></Categorize>",
      "5", "", "?" },
    { F("area", F("buffer", A L("3"))), "", "", "?" },
};

START_TEST(functions)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *value = value_of(cases[i].expression, cases[i].a, cases[i].b);
        ck_assert_msg(strcmp(value, cases[i].value) == 0, "%s of %s, %s: %s instead of %s\n%s", cases[i].expression,
                      cases[i].a, cases[i].b, value, cases[i].value, all_complaints());
    }
}
END_TEST

/* Conditions that hold conditions: each operand is computed once, or this takes for ever. */
START_TEST(nested_conditions_take_no_time)
{
    const char *nested = A;
    for (int i = 0; i < 15; i++)
        nested = apr_pstrcat(pool, "<Function name='between'><Function name='in'>", nested,
                             "<Literal>true</Literal><Literal>1</Literal></Function><Literal>false</Literal>"
                             "<Literal>true</Literal></Function>",
                             NULL);
    ck_assert_str_eq(value_of(nested, "1", ""), "true");
}
END_TEST

static void
square(mc_geometry *geometry, mc_shape_kind kind, int x, int y, int side)
{
    mc_geometry_clear(geometry);
    mc_shape *shape = &geometry->shapes[kind];
    static const int corners[4][2] = { { 0, 0 }, { 1, 0 }, { 1, 1 }, { 0, 1 } };
    for (int i = 0; i < 4; i++)
        mc_shape_add(shape, (x + corners[i][0] * side) * MC_SUBPIXELS, (y + corners[i][1] * side) * MC_SUBPIXELS);
    if (kind == MC_SHAPE_POLYGONS)
        mc_shape_end_ring(shape, false);
    else
        mc_shape_end_part(shape);
}

static double
measured(const char *expression, const mc_feature *feature)
{
    const mc_style *style =
        style_of(apr_pstrcat(pool, "<Rule><LineSymbolizer><Stroke><CssParameter name='stroke-width'>", expression,
                             "</CssParameter></Stroke></LineSymbolizer></Rule>", NULL));
    ck_assert_int_eq(style->attribute_count, 0); /* a geometry is no attribute */
    return mc_expression_number(style->passes[0].rules[0].symbolizers[0].stroke.width_value, feature, -1, pool);
}

START_TEST(functions_of_geometry)
{
    static mc_geometry geometry;
    const mc_feature_query map = { .scale = 10000,
                                   .srs = "EPSG:2056",
                                   .pixel_grid = { .x0 = 1000, .y0 = 2000, .per_x = 0.5, .per_y = 0.5, .left = 10 } };
    const mc_feature feature = { .geometry = &geometry, .query = &map };
    square(&geometry, MC_SHAPE_POLYGONS, 10, 20, 30);
    ck_assert_double_eq(measured(F("area", "<PropertyName>the_geom</PropertyName>"), &feature), 60 * 60);
    ck_assert_double_eq(measured(F("perimeter", "<PropertyName>the_geom</PropertyName>"), &feature), 240);
    ck_assert_double_eq(measured(F("getX", "<PropertyName>the_geom</PropertyName>"), &feature), 1000 + 35 * 2);
    ck_assert_double_eq(measured(F("getY", "<PropertyName>the_geom</PropertyName>"), &feature), 2000 - 35 * 2);
    ck_assert_double_eq(measured(F("dimension", "<PropertyName>g</PropertyName>"), &feature), 2);
    ck_assert_double_eq(measured(F("env", L("wms_scale_denominator")), &feature), 10000);
    square(&geometry, MC_SHAPE_LINES, 0, 0, 10);
    ck_assert_double_eq(measured(F("geomLength", "<PropertyName>g</PropertyName>"), &feature), 60);
    ck_assert_double_eq(measured(F("dimension", "<PropertyName>g</PropertyName>"), &feature), 1);
    ck_assert_double_eq(measured(F("dimension", F("geometry", "")), &feature), 1);
    mc_geometry_free(&geometry);
}
END_TEST

UNIT_MAIN("functions", functions, nested_conditions_take_no_time, functions_of_geometry)
