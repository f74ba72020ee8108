/* The sieve of overviews: what it leaves out cannot be seen in the map, and what it refuses. */
#include "draw/paint/sieve.h"

#include <stdlib.h>
#include <string.h>

#include "styles.h"
#include "unit.h"

enum { SIDE = 160, MARGIN = 30, LINES = 3000, SCALE = 100000 };

#define STROKE(color, width)                                                                                           \
    "<LineSymbolizer><Stroke><CssParameter name='stroke'>" color                                                       \
    "</CssParameter><CssParameter name='stroke-width'>" width "</CssParameter></Stroke></LineSymbolizer>"
#define ONLY(number, symbol)                                                                                           \
    "<Rule><ogc:Filter><ogc:PropertyIsEqualTo><ogc:PropertyName>n</ogc:PropertyName><ogc:Literal>" number              \
    "</ogc:Literal></ogc:PropertyIsEqualTo></ogc:Filter>" symbol "</Rule>"

static const char three_rules[] =
    ONLY("1", STROKE("#c02020", "6")) ONLY("2", STROKE("#2020c0", "3")) ONLY("3", STROKE("#20c020", "1"));

static int
next_number(uint32_t *state, int below)
{
    *state = *state * 1664525U + 1013904223U;
    return (int)(*state >> 8) % below;
}

/* Lines in pixels, inside of the plane with room for the symbols around them. They begin with some bends that maps
 * straighten: mitres of these would be as long as the stroke is wide. */
static void
make_line(mc_geometry *geometry, uint32_t number, int bends)
{
    uint32_t state = number * 7919 + 1;
    mc_geometry_clear(geometry);
    mc_shape *lines = &geometry->shapes[MC_SHAPE_LINES];
    int x = MARGIN * 256, y = MARGIN * 256, room = (SIDE - 2 * MARGIN) * 256;
    int at[2];
    for (int axis = 0; axis < 2; axis++)
        at[axis] = next_number(&state, room - 3000);
    mc_shape_add(lines, x + at[0], y + at[1]);
    for (int i = 0; i < bends; i++) {
        int right = next_number(&state, 20);
        mc_shape_add(lines, x + at[0] + right, y + at[1] + next_number(&state, 20));
    }
    at[0] += next_number(&state, 3000);
    mc_shape_add(lines, x + at[0], y + at[1] + next_number(&state, 3000));
    mc_shape_end_part(lines);
}

static mc_ctx
test_context(void)
{
    return (mc_ctx){ .pool = pool };
}

/* The map of the features that `keeps` says; all for NULL. */
static mc_pixels *
paint_lines(const mc_style *style, int bends, const bool *keeps, int density)
{
    mc_pixels *pixels;
    mc_painter *painter;
    mc_geometry geometry = { 0 };
    mc_ctx ctx = test_context();
    const mc_feature_query query = { .pixel_grid = { .thinning = MC_SUBPIXELS / 4 * density },
                                     .resolution = 1,
                                     .scale = SCALE * density * (1 - 1e-9),
                                     .density = density };
    ck_assert(mc_pixels_create(&pixels, SIDE, SIDE, true, pool) == MC_OK);
    mc_pixels_attach(pixels, pool);
    ck_assert(mc_painter_create(&painter, style, pixels, &query, false, pool) == MC_OK);
    for (uint32_t i = 0; i < LINES; i++) {
        const char *values[] = { apr_itoa(pool, 1 + (int)(i % 3)) };
        make_line(&geometry, i, bends);
        const mc_feature feature = { .geometry = &geometry, .values = values };
        if (keeps == NULL || keeps[i])
            ck_assert(mc_painter_visit(painter, &feature, &ctx) == MC_OK);
    }
    ck_assert(mc_painter_finish(painter, &ctx) == MC_OK);
    mc_geometry_free(&geometry);
    return pixels;
}

static int
sift_lines(bool *keeps, const mc_style *style, int bends)
{
    mc_sieve *sieve;
    mc_geometry geometry = { 0 };
    mc_ctx ctx = test_context();
    int kept = 0;
    ck_assert_int_le(mc_sieve_margin(style, SCALE, 1), MARGIN);
    ck_assert(mc_sieve_create(&sieve, style, SCALE * (1 - 1e-9), 1, SIDE, SIDE, pool) == MC_OK);
    for (int i = LINES - 1; i >= 0; i--) {
        const char *values[] = { apr_itoa(pool, 1 + i % 3) };
        make_line(&geometry, (uint32_t)i, bends);
        const mc_feature feature = { .geometry = &geometry, .values = values };
        ck_assert(mc_sieve_keeps(&keeps[i], sieve, &feature, &ctx) == MC_OK);
        kept += keeps[i];
    }
    mc_geometry_free(&geometry);
    return kept;
}

static int
most_difference(const mc_pixels *a, const mc_pixels *b)
{
    int most = 0;
    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < SIDE * 4; x++) {
            int difference =
                abs(a->data[(size_t)y * a->stride + (size_t)x] - b->data[(size_t)y * b->stride + (size_t)x]);
            most = difference > most ? difference : most;
        }
    return most;
}

START_TEST(what_is_left_out_is_hidden)
{
    bool keeps[LINES];
    const mc_style *style = style_of(three_rules);
    ck_assert(style != NULL && mc_sieve_hides(style, SCALE));
    for (int bends = 0; bends <= 6; bends += 6) {
        int kept = sift_lines(keeps, style, bends);
        ck_assert_int_lt(kept, LINES * 3 / 4);
        ck_assert_int_gt(kept, LINES / 20);
        for (int density = 1; density <= 2; density++) /* symbols once and twice as wide */
            ck_assert_int_le(
                most_difference(paint_lines(style, bends, NULL, density), paint_lines(style, bends, keeps, density)),
                8);
    }
}
END_TEST

/* Of a layer that is painted whole only what one feature covers by itself hides others. */
START_TEST(what_a_merged_layer_leaves_out_is_hidden)
{
    bool keeps[LINES];
    const mc_style *style = style_of("<Rule>" STROKE("#c02020", "6") "</Rule>");
    ck_assert(style != NULL && mc_sieve_hides(style, SCALE));
    int kept = sift_lines(keeps, style, 0);
    ck_assert_int_lt(kept, LINES);
    ck_assert_int_le(most_difference(paint_lines(style, 0, NULL, 1), paint_lines(style, 0, keeps, 1)), 8);
}
END_TEST

/* What no rule draws is left out, whether or not anything hides. */
START_TEST(what_no_rule_draws_is_left_out)
{
    bool keeps[LINES];
    const mc_style *style = style_of(ONLY("2", STROKE("#c02020", "1")) ONLY("9", STROKE("#c02020", "2")));
    sift_lines(keeps, style, 0);
    for (int i = 0; i < LINES; i++)
        ck_assert(i % 3 == 1 || !keeps[i]);
}
END_TEST

static const struct {
    const char *rules, *word; /* NULL: the style suits overviews */
} refusals[] = {
    { three_rules, NULL },
    { "<Rule><MinScaleDenominator>150000</MinScaleDenominator>" STROKE("#c02020", "1") "</Rule>",
      "among these scales" },
    { "<Rule><MaxScaleDenominator>150000</MaxScaleDenominator>" STROKE("#c02020", "1") "</Rule>",
      "among these scales" },
    { "<Rule><MinScaleDenominator>200000</MinScaleDenominator>" STROKE("#c02020", "1") "</Rule>", "no rule draws" },
    { "<Rule><TextSymbolizer><Label>a</Label></TextSymbolizer></Rule>", "labels" },
    { "<Rule><LineSymbolizer><Stroke><CssParameter name='stroke-dasharray'>3 "
      "2</CssParameter></Stroke></LineSymbolizer></Rule>",
      "dashes" },
    { "<Rule><PointSymbolizer><Graphic><Mark><WellKnownName>circle</WellKnownName><Fill/></Mark></Graphic></"
      "PointSymbolizer></Rule>",
      "graphics that stand" },
    { "<Rule><ogc:Filter><ogc:PropertyIsLessThan><ogc:Function "
      "name='area'><ogc:PropertyName>g</ogc:PropertyName></ogc:Function>"
      "<ogc:Literal>5</ogc:Literal></ogc:PropertyIsLessThan></ogc:Filter>" STROKE("#c02020", "1") "</Rule>",
      "a filter depends" },
    { "<Rule><ogc:Filter><ogc:FeatureId fid='n.5'/></ogc:Filter>" STROKE("#c02020", "1") "</Rule>",
      "a filter depends" },
};

START_TEST(styles_that_do_not_suit_are_refused)
{
    for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
        const mc_style *style = style_of(refusals[i].rules);
        ck_assert_msg(style != NULL, "%s", all_complaints());
        const char *refusal = mc_sieve_refusal(style, SCALE, 2 * SCALE, false);
        if (refusals[i].word == NULL)
            ck_assert_msg(refusal == NULL, "%s", refusal);
        else
            ck_assert_msg(refusal != NULL && strstr(refusal, refusals[i].word) != NULL, "%zu: %s", i,
                          refusal == NULL ? "suits" : refusal);
    }
}
END_TEST

UNIT_MAIN("sieve", what_is_left_out_is_hidden, what_a_merged_layer_leaves_out_is_hidden, what_no_rule_draws_is_left_out,
          styles_that_do_not_suit_are_refused)
