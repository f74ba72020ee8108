/* Styles of many passes: painted in one go, they look as if each pass were a style of its own, one after the other. */
#include "styles.h"

#include <stdlib.h>
#include <string.h>

#include "draw/paint/painter.h"

enum { SIDE = 120, FEATURES = 60 };

#define IF(number)                                                                                                     \
    "<ogc:Filter><ogc:PropertyIsEqualTo><ogc:PropertyName>n</ogc:PropertyName><ogc:Literal>" number                    \
    "</ogc:Literal></ogc:PropertyIsEqualTo></ogc:Filter>"

#define CSS(name) "<CssParameter name='" name "'>"

static uint32_t
next_number(uint32_t *state)
{
    *state = *state * 1664525U + 1013904223U;
    return *state >> 8;
}

/* Areas and lines, translucent and opaque, each of some features. */
static const char *
pass_text(int i)
{
    const char *condition = apr_psprintf(pool, IF("%d"), i % 7);
    const char *color = apr_psprintf(pool, "#%02x%02x80", i * 11 % 256, i * 53 % 256);
    if (i % 3 == 2)
        return apr_pstrcat(pool, "<Rule>", condition, "<LineSymbolizer><Stroke>", CSS("stroke"), color,
                           "</CssParameter>" CSS("stroke-width") "5</CssParameter></Stroke></LineSymbolizer></Rule>",
                           NULL);
    return apr_pstrcat(pool, "<Rule>", condition, "<PolygonSymbolizer><Fill>", CSS("fill"), color, "</CssParameter>",
                       i % 3 == 1 ? CSS("fill-opacity") "0.4</CssParameter>" : "", "</Fill>",
                       i % 3 == 1 ? "<Stroke/>" : "", "</PolygonSymbolizer></Rule>", NULL);
}

static const mc_style *
style_of_passes(int first, int count, const char *options)
{
    const char *text = options;
    for (int i = 0; i < count; i++)
        text = apr_pstrcat(pool, text, i > 0 ? "</sld:FeatureTypeStyle><sld:FeatureTypeStyle>" : "",
                           i > 0 ? options : "", pass_text(first + i), NULL);
    const mc_style *style = style_of(text);
    ck_assert_msg(style != NULL, "%s", all_complaints());
    ck_assert_msg(count_complaints(MC_NOT_BUILT) == 0, "%s", all_complaints());
    return style;
}

static void
make_feature(mc_geometry *geometry, uint32_t *state)
{
    int32_t x = (int32_t)(next_number(state) % (SIDE * 256)), y = (int32_t)(next_number(state) % (SIDE * 256));
    mc_geometry_clear(geometry);
    for (int corner = 0; corner < 3; corner++)
        mc_shape_add(&geometry->shapes[MC_SHAPE_POLYGONS], x + (int32_t)(next_number(state) % 12000),
                     y + (int32_t)(next_number(state) % 12000));
    mc_shape_end_ring(&geometry->shapes[MC_SHAPE_POLYGONS], false);
}

static void
paint_features(mc_pixels *pixels, const mc_style *style, bool by_feature)
{
    const mc_feature_query query = { .srs = "EPSG:3857",
                                     .scale = 1000,
                                     .resolution = 0.28,
                                     .pixel_grid = { .per_x = 1, .per_y = 1 },
                                     .attributes = style->attributes,
                                     .attribute_count = style->attribute_count };
    mc_geometry geometry = { 0 };
    mc_painter *painter;
    uint32_t state = 7;
    apr_pool_t *own;
    apr_pool_create(&own, pool);
    ck_ok(mc_painter_create(&painter, style, pixels, &query, by_feature, own));
    for (int i = 0; i < FEATURES; i++) {
        const char *values[2] = { "same", "same" };
        for (int a = 0; a < style->attribute_count; a++)
            if (strcmp(style->attributes[a], "n") == 0)
                values[a] = apr_psprintf(own, "%d", i % 7);
        const mc_feature feature = { .id = i, .geometry = &geometry, .values = values };
        make_feature(&geometry, &state);
        ck_ok(mc_painter_visit(painter, &feature, &ctx));
    }
    ck_ok(mc_painter_finish(painter, &ctx));
    mc_geometry_free(&geometry);
    apr_pool_destroy(own);
}

static mc_pixels *
white_map(void)
{
    static const uint8_t white[4] = { 255, 255, 255, 255 };
    mc_pixels *pixels;
    ck_ok(mc_pixels_create(&pixels, SIDE, SIDE, true, pool));
    mc_pixels_attach(pixels, pool);
    mc_pixels_fill(pixels, white);
    return pixels;
}

static int
largest_difference(const mc_pixels *a, const mc_pixels *b)
{
    int most = 0;
    for (int y = 0; y < SIDE; y++)
        for (size_t x = 0; x < (size_t)SIDE * 4; x++) {
            int off = abs(a->data[(size_t)y * a->stride + x] - b->data[(size_t)y * b->stride + x]);
            most = off > most ? off : most;
        }
    return most;
}

START_TEST(many_passes_are_as_many_styles)
{
    static const int counts[] = { 1, 2, 16, 17, 18, 40, 100 };
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
        for (int by_feature = 0; by_feature < 2; by_feature++) {
            mc_pixels *whole = white_map(), *parts = white_map();
            paint_features(whole, style_of_passes(0, counts[i], ""), by_feature);
            for (int p = 0; p < counts[i]; p++)
                paint_features(parts, style_of_passes(p, 1, ""), by_feature);
            ck_assert_msg(largest_difference(whole, parts) <= 4, "%d passes: %d", counts[i],
                          largest_difference(whole, parts));
        }
}
END_TEST

/* Kept for its order, a pass is painted as it would have been, where the order is that in which features come. */
START_TEST(an_order_that_is_that_of_the_data)
{
    for (int count = 1; count < 40; count += 19) {
        mc_pixels *as_they_come = white_map(), *sorted = white_map();
        paint_features(as_they_come, style_of_passes(0, count, ""), true);
        paint_features(sorted, style_of_passes(0, count, "<VendorOption name='sortBy'>none</VendorOption>"), true);
        ck_assert_int_le(largest_difference(as_they_come, sorted), 4);
    }
}
END_TEST

UNIT_MAIN("passes", many_passes_are_as_many_styles, an_order_that_is_that_of_the_data)
