/* The sieve of overviews: what it leaves out cannot be seen in the map, and what it refuses. */
#include "draw/paint/sieve.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/budget.h"
#include "draw/paint/sieve_private.h"
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

/* The map of the features that `keeps` says; all for NULL. Its pixels lie half a pixel to the left of those of the
 * sieve and above them, or not. */
static mc_pixels *
paint_lines(const mc_style *style, int bends, const bool *keeps, bool left, bool above)
{
    mc_pixels *pixels;
    mc_painter *painter;
    mc_geometry geometry = { 0 };
    mc_ctx ctx = test_context();
    const mc_feature_query query = {
        .pixel_grid = { .thinning = MC_SUBPIXELS / 4 }, .resolution = 1, .scale = SCALE, .density = 1
    };
    ck_assert(mc_pixels_create(&pixels, SIDE, SIDE, true, pool) == MC_OK);
    mc_pixels_attach(pixels, pool);
    ck_assert(mc_painter_create(&painter, style, pixels, &query, false, pool) == MC_OK);
    for (uint32_t i = 0; i < LINES; i++) {
        const char *values[] = { apr_itoa(pool, 1 + (int)(i % 3)) };
        make_line(&geometry, i, bends);
        for (int k = 0; k < geometry.shapes[MC_SHAPE_LINES].point_count; k++) {
            geometry.shapes[MC_SHAPE_LINES].points[k].x += left ? 128 : 0;
            geometry.shapes[MC_SHAPE_LINES].points[k].y += above ? 128 : 0;
        }
        const mc_feature feature = { .geometry = &geometry, .values = values };
        if (keeps == NULL || keeps[i])
            ck_assert(mc_painter_visit(painter, &feature, &ctx) == MC_OK);
    }
    ck_assert(mc_painter_finish(painter, &ctx) == MC_OK);
    mc_geometry_free(&geometry);
    return pixels;
}

/* Of the lines that are there; of all: NULL. */
static int
sift_lines(bool *keeps, const bool *there, const mc_style *style, int bends, bool crowded)
{
    mc_sieve *sieve;
    mc_geometry geometry = { 0 };
    mc_ctx ctx = test_context();
    int kept = 0;
    ck_assert_int_le(mc_sieve_margin(style, SCALE), MARGIN);
    ck_assert(mc_sieve_create(&sieve, style, SCALE, crowded ? MC_SIEVE_CROWDED : 0, SIDE, SIDE, pool) == MC_OK);
    for (int i = LINES - 1; i >= 0; i--) {
        const char *values[] = { apr_itoa(pool, 1 + i % 3) };
        make_line(&geometry, (uint32_t)i, bends);
        const mc_feature feature = { .geometry = &geometry, .values = values };
        keeps[i] = false;
        if (there == NULL || there[i])
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

/* A map of all lines and one of those that are kept differ by as little on all lattices that the sieve looks at. */
static void
assert_hidden(const mc_style *style, int bends, const bool *keeps, bool crowded)
{
    for (int shift = 0; shift < 4; shift++) {
        const bool left = shift & 1, above = shift & 2;
        if (crowded || left == above)
            ck_assert_int_le(most_difference(paint_lines(style, bends, NULL, left, above),
                                             paint_lines(style, bends, keeps, left, above)),
                             8);
    }
}

START_TEST(what_is_left_out_is_hidden)
{
    bool keeps[LINES];
    int kept[2];
    const mc_style *style = style_of(three_rules);
    ck_assert(style != NULL && mc_sieve_hides(style, SCALE));
    for (int bends = 0; bends <= 6; bends += 6) {
        for (int crowded = 0; crowded < 2; crowded++) {
            kept[crowded] = sift_lines(keeps, NULL, style, bends, crowded);
            ck_assert_int_lt(kept[crowded], LINES * 9 / 10);
            ck_assert_int_gt(kept[crowded], LINES / 20);
            assert_hidden(style, bends, keeps, crowded);
        }
        ck_assert_int_lt(kept[0], kept[1]);
    }
}
END_TEST

/* A place below a wide line is hidden from what has its bounds there, and no place beside the line. */
START_TEST(bounds_in_hidden_places_are_known)
{
    mc_sieve *sieve;
    mc_geometry geometry = { 0 };
    mc_ctx ctx = test_context();
    bool keeps;
    const int32_t below[4] = { 79 * 256, 79 * 256, 81 * 256, 81 * 256 },
                  beside[4] = { 122 * 256, 79 * 256, 123 * 256, 81 * 256 };
    const mc_style *style = style_of(ONLY("1", STROKE("#c02020", "16")) ONLY("2", STROKE("#2020c0", "1")));
    ck_assert(mc_sieve_create(&sieve, style, SCALE, 0, SIDE, SIDE, pool) == MC_OK);
    ck_assert(!mc_sieve_hides_bounds(sieve, below));
    mc_shape *lines = &geometry.shapes[MC_SHAPE_LINES];
    mc_geometry_clear(&geometry);
    for (int row = 0; row < 42; row++) { /* the margin of bounds is that of the widest symbol */
        mc_shape_add(lines, 40 * 256, (80 + (row - 21) * 2) * 256);
        mc_shape_add(lines, 120 * 256, (80 + (row - 21) * 2) * 256);
        mc_shape_end_part(lines);
    }
    const char *values[] = { "1" };
    const mc_feature feature = { .geometry = &geometry, .values = values };
    ck_assert(mc_sieve_keeps(&keeps, sieve, &feature, &ctx) == MC_OK && keeps);
    ck_assert(mc_sieve_hides_bounds(sieve, below));
    ck_assert(!mc_sieve_hides_bounds(sieve, beside));
    mc_geometry_free(&geometry);
}
END_TEST

/* Of a layer that is painted whole only what one feature covers by itself hides others. */
START_TEST(what_a_merged_layer_leaves_out_is_hidden)
{
    bool keeps[LINES];
    const mc_style *style = style_of("<Rule>" STROKE("#c02020", "6") "</Rule>");
    ck_assert(style != NULL && mc_sieve_hides(style, SCALE));
    ck_assert_int_lt(sift_lines(keeps, NULL, style, 0, false), LINES);
    assert_hidden(style, 0, keeps, false);
}
END_TEST

/* What no rule draws is left out, whether or not anything hides. */
START_TEST(what_no_rule_draws_is_left_out)
{
    bool keeps[LINES];
    const mc_style *style = style_of(ONLY("2", STROKE("#c02020", "1")) ONLY("9", STROKE("#c02020", "2")));
    sift_lines(keeps, NULL, style, 0, false);
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

/* What the maps of some features and of others differ by at most, on the lattices that the sieve looks at. */
static int
difference_on_lattices(const mc_style *style, const bool *some, const bool *others, bool crowded)
{
    int most = 0;
    for (int shift = 0; shift < 4; shift++) {
        const bool left = shift & 1, above = shift & 2;
        if (!crowded && left != above)
            continue;
        const int difference =
            most_difference(paint_lines(style, 0, some, left, above), paint_lines(style, 0, others, left, above));
        most = difference > most ? difference : most;
    }
    return most;
}

static mc_feature
line_as_feature(mc_geometry *geometry, int number)
{
    const char **values = apr_palloc(pool, sizeof(*values));
    make_line(geometry, (uint32_t)number, 0);
    values[0] = apr_itoa(pool, 1 + number % 3);
    return (mc_feature){ .geometry = geometry, .values = values };
}

/* Which hidden lines may be seen at the place where they are painted, once others are gone. */
static int
find_candidates(bool *candidates, mc_sieve *sieve, const bool *keeps, const bool *there, const bool *new)
{
    mc_geometry geometry = { 0 };
    mc_ctx ctx = test_context();
    int count = 0;
    for (int i = LINES - 1; i >= 0; i--) {
        const mc_feature feature = line_as_feature(&geometry, i);
        int32_t at[4];
        candidates[i] = false;
        ck_assert(mc_geometry_bounds(&geometry, &at[0], &at[1], &at[2], &at[3]));
        mc_sieve_box box = { at[0] / 256 - MARGIN, at[1] / 256 - MARGIN, at[2] / 256 + MARGIN, at[3] / 256 + MARGIN };
        if (keeps[i] || new[i])
            ck_assert(mc_sieve_follow(&box, sieve, &feature,
                                      !there[i] ? MC_SIEVE_BEFORE
                                      : new[i]  ? MC_SIEVE_AFTER
                                                : MC_SIEVE_BOTH,
                                      &ctx) == MC_OK);
        else if (there[i])
            count += candidates[i] = mc_sieve_find_shown(&box, sieve);
    }
    mc_geometry_free(&geometry);
    return count;
}

/* Keeps what is seen now that lines are gone, some of them before, and what is new; how many were seen. */
static int
reveal_lines(bool *keeps, const bool *there, const bool *new, bool *before, const mc_style *style, bool crowded)
{
    bool candidates[LINES];
    mc_sieve *sieve;
    mc_geometry geometry = { 0 };
    mc_ctx ctx = test_context();
    int found = 0;
    ck_assert(mc_sieve_create(&sieve, style, SCALE, crowded ? MC_SIEVE_CROWDED : 0, SIDE, SIDE, pool) == MC_OK);
    for (int i = 0; i < LINES; i++)
        if (!there[i] && keeps[i]) {
            const mc_feature feature = line_as_feature(&geometry, i);
            ck_assert(mc_sieve_lay(sieve, &feature, !before[i], &ctx) == MC_OK);
        }
    ck_assert(mc_sieve_uncover(sieve));
    ck_assert_int_lt(find_candidates(candidates, sieve, keeps, there, new), LINES / 2);
    mc_sieve_open_shown(sieve);
    for (int i = LINES - 1; i >= 0; i--) {
        const mc_feature feature = line_as_feature(&geometry, i);
        bool seen = false;
        if (there[i] && (keeps[i] || new[i] || candidates[i]))
            ck_assert(mc_sieve_keeps(&seen, sieve, &feature, &ctx) == MC_OK);
        found += candidates[i] && seen;
        keeps[i] |= new[i] || (candidates[i] && seen);
        before[i] = !there[i];
    }
    mc_geometry_free(&geometry);
    return found;
}

/* Again and again lines go that hid others, and new ones come: what is seen for that is found, of the few that are
 * looked for. */
START_TEST(what_shows_once_features_are_gone_is_found)
{
    const mc_style *style = style_of(three_rules);
    for (int crowded = 0; crowded < 2; crowded++) {
        bool keeps[LINES], there[LINES], left[LINES], new[LINES];
        bool gone_before[LINES] = { false };
        int found = 0, most_before = 0;
        for (int i = 0; i < LINES; i++)
            there[i] = i % 50 != 0; /* the others come later */
        (void)sift_lines(keeps, there, style, 0, crowded);
        for (int round = 1; round <= 3; round++) {
            for (int i = 0; i < LINES; i++) {
                new[i] = i % 50 == 0 && i / 50 % 4 == round;
                there[i] = new[i] || (there[i] && i % 41 != round);
                left[i] = (keeps[i] || new[i]) && there[i];
            }
            const int before = difference_on_lattices(style, there, left, crowded);
            most_before = before > most_before ? before : most_before;
            found += reveal_lines(keeps, there, new, gone_before, style, crowded);
            for (int i = 0; i < LINES; i++)
                left[i] = keeps[i] && there[i];
            ck_assert_int_le(difference_on_lattices(style, there, left, crowded), 12);
        }
        ck_assert_int_gt(most_before, 100);
        ck_assert_int_gt(found, 0);
    }
}
END_TEST

/* Strokes of less than a pixel, wherever they lie in it: nothing of one of them stays for the next one. */
START_TEST(nothing_is_left_on_the_canvas)
{
    mc_sieve *sieve;
    mc_geometry geometry = { 0 };
    mc_ctx ctx = test_context();
    uint32_t state = 1;
    int kept = 0;
    ck_assert(mc_sieve_create(&sieve, style_of(three_rules), SCALE, MC_SIEVE_CROWDED, SIDE, SIDE, pool) == MC_OK);
    for (int i = 0; i < LINES; i++) {
        const char *values[] = { apr_itoa(pool, 1 + i % 3) };
        const mc_feature_query query = { .resolution = 1, .scale = SCALE };
        const mc_feature feature = { .geometry = &geometry, .values = values, .query = &query };
        const int x = (MARGIN + i * 7 % 90) * 256 + next_number(&state, 256);
        const int y = (MARGIN + i * 11 % 90) * 256 + next_number(&state, 256);
        bool keeps;
        mc_geometry_clear(&geometry);
        mc_shape_add(&geometry.shapes[MC_SHAPE_LINES], x, y);
        mc_shape_add(&geometry.shapes[MC_SHAPE_LINES], x + next_number(&state, 200), y + next_number(&state, 200));
        mc_shape_end_part(&geometry.shapes[MC_SHAPE_LINES]);
        ck_assert(mc_sieve_keeps(&keeps, sieve, &feature, &ctx) == MC_OK);
        kept += keeps;
        for (int row = 0; row < MC_SIEVE_SCRATCH / 4; row++)
            for (int column = 0; column < MC_SIEVE_SCRATCH; column++)
                ck_assert_uint_eq(sieve->pixels->data[(size_t)row * sieve->pixels->stride + (size_t)column], 0);
    }
    ck_assert_int_gt(kept, LINES / 4);
    mc_geometry_free(&geometry);
}
END_TEST

/* What a plane takes is bounded by its pixels, whatever its sides are, and is counted as long as it lives. */
START_TEST(memory_of_planes_is_bounded_and_counted)
{
    mc_sieve *sieve;
    apr_pool_t *own;
    const mc_style *style = style_of(three_rules);
    ck_assert(mc_sieve_fits(1 << 12, 1 << 12) && !mc_sieve_fits((1 << 12) + 1, 1 << 12));
    ck_assert(mc_sieve_fits(1 << 19, 32) && mc_sieve_fits(16, 1 << 19) && !mc_sieve_fits(1, 1 << 23));
    ck_assert(!mc_sieve_fits(0, 10) && !mc_sieve_fits(-10, -10) && !mc_sieve_fits(NAN, 10) && !mc_sieve_fits(1e300, 1));
    const size_t before = mc_budget_used();
    apr_pool_create(&own, pool);
    ck_assert(mc_sieve_create(&sieve, style, SCALE, MC_SIEVE_BUDGETED, 1000, 1000, own) == MC_OK);
    ck_assert_uint_gt(mc_budget_used(), before + 5 * 1000 * 1000);
    apr_pool_destroy(own);
    ck_assert_uint_lt(mc_budget_used(), before + 1000 * 1000);
    mc_budget_set(9 * 1000 * 1000, NULL); /* which it would take more than the half of */
    apr_pool_create(&own, pool);
    mc_error *error = mc_sieve_create(&sieve, style, SCALE, MC_SIEVE_BUDGETED, 1000, 1000, own);
    ck_assert(error != MC_OK && error->kind == MC_ERR_NO_MEMORY);
    mc_error_ignore(error);
    ck_assert(mc_sieve_create(&sieve, style, SCALE, 0, 1000, 1000, own) == MC_OK); /* of a command */
    ck_assert_uint_lt(mc_budget_used(), before + 1000 * 1000);
    apr_pool_destroy(own);
    mc_budget_set(0, NULL);
    ck_assert_uint_lt(mc_budget_used(), before + 1000 * 1000); /* the canvas is kept for others */
}
END_TEST

UNIT_MAIN("sieve", what_is_left_out_is_hidden, bounds_in_hidden_places_are_known,
          what_shows_once_features_are_gone_is_found, what_a_merged_layer_leaves_out_is_hidden,
          what_no_rule_draws_is_left_out, styles_that_do_not_suit_are_refused, nothing_is_left_on_the_canvas,
          memory_of_planes_is_bounded_and_counted)
