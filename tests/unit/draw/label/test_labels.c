#include "labels.h"

#include <apr_strings.h>
#include <math.h>
#include <pthread.h>
#include <string.h>

START_TEST(a_label_is_beside_its_point)
{
    mc_text_symbol text = label_symbol();
    labelled there = label_at_point("Hg", 100, 80);
    label_seen s = look_at_labels(draw_labels(&text, 1, &there, 1));
    ck_assert_int_lt(s.left, 100);
    ck_assert_int_gt(s.right, 100);
    ck_assert_int_lt(s.top, 80);
    ck_assert_int_gt(s.bottom, 80);
    text.anchor_x.constant = 0;
    text.anchor_y.constant = 0;
    text.displacement_x.constant = 10;
    text.displacement_y.constant = 20;
    s = look_at_labels(draw_labels(&text, 1, &there, 1));
    ck_assert_int_ge(s.left, 110);
    ck_assert_int_le(s.left, 113);
    ck_assert_int_le(s.bottom, 60);
    ck_assert_int_ge(s.bottom, 55);
    text.anchored = false; /* the left of its middle, as the standard says of points */
    text.displacement_x.constant = text.displacement_y.constant = 0;
    s = look_at_labels(draw_labels(&text, 1, &there, 1));
    ck_assert_int_ge(s.left, 100);
    ck_assert_int_lt(s.top, 80);
    ck_assert_int_gt(s.bottom, 80);
    text.uom = MC_UOM_METRE; /* a pixel of this map is 2.8 m wide */
    label_seen small = look_at_labels(draw_labels(&text, 1, &there, 1));
    ck_assert_int_lt(small.right - small.left, (s.right - s.left) / 2 + 1);
    ck_assert_int_gt(small.sum, 0);
    text.uom = MC_UOM_PIXEL;
    text.rotation.constant = 90; /* clockwise: it hangs down from the point */
    s = look_at_labels(draw_labels(&text, 1, &there, 1));
    ck_assert_int_ge(s.top, 80);
    ck_assert_int_lt(s.left, 100);
    ck_assert_int_gt(s.right, 100);
}
END_TEST

START_TEST(a_halo_goes_all_around)
{
    mc_text_symbol text = label_symbol();
    labelled there = label_at_point("Hg", 100, 80);
    label_seen without = look_at_labels(draw_labels(&text, 1, &there, 1));
    text.halo = (mc_paint){ .present = true, .color = { 255, 255, 255, 255 } };
    text.halo_radius.constant = 3;
    mc_pixels *pixels = draw_labels(&text, 1, &there, 1);
    label_seen with = look_at_labels(pixels);
    ck_assert_int_le(abs(without.left - 3 - with.left), 1);
    ck_assert_int_le(abs(without.right + 3 - with.right), 1);
    ck_assert_int_le(abs(without.top - 3 - with.top), 1);
    ck_assert_int_le(abs(without.bottom + 3 - with.bottom), 1);
    text.halo.color.alpha = 100; /* laid once, however many letters share it */
    text.fill.color.alpha = 0;
    pixels = draw_labels(&text, 1, &there, 1);
    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < SIDE; x++)
            ck_assert_int_le(alpha_at(pixels, x, y), 100);
}
END_TEST

/* Texts of many forms at any place of maps, with and without halo, turned and along lines. */
static labelled
random_thing(int index)
{
    static const char *const texts[] = {
        "\xC3\x85lj",           "Gr\xC3\xBC\xC3\x9F Gott", "\xD9\x85\xD8\xB1\xD8\xAD\xD8\xA8\xD8\xA7", "Wjgy|", "a",
        "Llanfairpwllgwyngyll", "one\ntwo\nthree"
    };
    labelled made = { .values = { texts[next_random() % 7], NULL }, .id = index, .kind = next_random() % 3 };
    made.count = made.kind == MC_SHAPE_POINTS ? 1 : (int)(3 + next_random() % 5);
    float x = (float)random_between(-20, SIDE + 20), y = (float)random_between(-20, SIDE + 20);
    for (int p = 0; p < made.count; p++) {
        made.points[p * 2] = x + (float)random_between(0, p * 40);
        made.points[p * 2 + 1] = y + (float)random_between(-60, 60);
    }
    return made;
}

static mc_text_symbol
random_symbol(void)
{
    mc_text_symbol text = label_symbol();
    text.size.constant = random_between(5, 40);
    text.rotation.constant = next_random() % 3 == 0 ? random_between(0, 360) : 0;
    text.placement = next_random() % 2 == 0 ? MC_LABEL_POINT : MC_LABEL_LINE;
    text.anchor_x.constant = random_between(0, 1);
    text.max_displacement = next_random() % 3 == 0 ? 30 : 0;
    text.repeat = next_random() % 3 == 0 ? 60 : 0;
    text.font.italic = next_random() % 4 == 0;
    text.halo = (mc_paint){ .present = next_random() % 2 == 0, .color = { 255, 255, 255, 255 } };
    text.halo_radius.constant = random_between(0, 5);
    return text;
}

START_TEST(no_label_touches_the_edge_of_the_map)
{
    int maps = 0;
    apr_pool_t *outer = pool;
    for (int round = 0; round < 600; round++) {
        apr_pool_create(&pool, outer);
        labelled things[30];
        mc_text_symbol text = random_symbol();
        for (int i = 0; i < 30; i++)
            things[i] = random_thing(i);
        mc_pixels *pixels = draw_labels(&text, 1, things, 30);
        for (int i = 0; i < SIDE; i++) {
            ck_assert_int_eq(alpha_at(pixels, i, 0), 0);
            ck_assert_int_eq(alpha_at(pixels, i, SIDE - 1), 0);
            ck_assert_int_eq(alpha_at(pixels, 0, i), 0);
            ck_assert_int_eq(alpha_at(pixels, SIDE - 1, i), 0);
        }
        maps += look_at_labels(pixels).sum > 0;
        apr_pool_destroy(pool);
    }
    pool = outer;
    ck_assert_int_gt(maps, 500); /* the others have no room for letters of that size */
}
END_TEST

/* What is drawn in the box that was foreseen is the same as what is drawn in a larger one. */
START_TEST(no_letter_is_cut_by_its_own_box)
{
    apr_pool_t *outer = pool;
    for (int round = 0; round < 600; round++) {
        apr_pool_create(&pool, outer);
        mc_text_symbol text = random_symbol();
        labelled what = random_thing(0);
        const mc_font *font;
        mc_label_layout layout;
        mc_pixels *pixels[2];
        ck_ok(mc_text_font(&font, &text.font, pool));
        ck_ok(mc_label_lay_out(&layout, font, what.values[0], (float)text.size.constant, 0, 0.5F, pool));
        mc_label_spot spot = { .glyphs = apr_palloc(pool, sizeof(mc_placed_glyph) * (size_t)layout.count),
                               .boxes = apr_palloc(pool, sizeof(mc_label_box) * (size_t)layout.count) };
        const float around[2] = { 400, 400 };
        float halo = text.halo.present ? (float)text.halo_radius.constant : 0;
        mc_label_at(&spot, &layout, 400 - layout.width / 2 + (float)random_between(0, 1),
                    400 + (float)random_between(0, 1), (float)(text.rotation.constant * M_PI / 180), around, halo);
        const mc_label_look look = { layout.size, halo, { 0, 0, 0, 255 }, { 255, 255, 255, 255 } };
        for (int i = 0; i < 2; i++) {
            ck_ok(mc_pixels_create(&pixels[i], 1000, 1000, true, pool));
            mc_pixels_attach(pixels[i], pool);
            mc_label_painter *paint = mc_label_painter_create(mc_canvas_of(pixels[i], pool), pool);
            ck_ok(mc_label_painter_draw(paint, &spot, &look, pool));
            spot.bounds = (mc_label_box){ spot.bounds.minx - 20, spot.bounds.miny - 20, spot.bounds.maxx + 20,
                                          spot.bounds.maxy + 20 };
        }
        ck_assert_int_eq(memcmp(pixels[0]->data, pixels[1]->data, (size_t)1000 * pixels[0]->stride), 0);
        apr_pool_destroy(pool);
    }
    pool = outer;
}
END_TEST

START_TEST(the_order_of_arrival_does_not_matter)
{
    apr_pool_t *outer = pool;
    for (int round = 0; round < 40; round++) {
        apr_pool_create(&pool, outer);
        labelled things[60];
        mc_text_symbol text = random_symbol();
        text.size.constant = 11;
        for (int i = 0; i < 60; i++)
            things[i] = random_thing(i % 50); /* some ids come twice */
        mc_pixels *first = draw_labels(&text, 1, things, 60);
        for (int i = 59; i > 0; i--) {
            int other = (int)(next_random() % (uint32_t)(i + 1));
            labelled swap = things[i];
            things[i] = things[other];
            things[other] = swap;
        }
        mc_pixels *second = draw_labels(&text, 1, things, 60);
        ck_assert_int_eq(memcmp(first->data, second->data, (size_t)SIDE * first->stride), 0);
        ck_assert_int_gt(look_at_labels(first).sum, 0);
        apr_pool_destroy(pool);
    }
    pool = outer;
}
END_TEST

/* Two labels that want the same place. */
START_TEST(the_highest_priority_wins_then_the_lowest_id)
{
    mc_text_symbol text = label_symbol();
    text.priority = (mc_label_number){ 0, &label_rank };
    labelled two[2] = { label_at_point("narrow", 100, 100), label_at_point("very much wider", 100, 100) };
    two[0].id = 2;
    two[1].id = 1;
    int narrow = look_at_labels(draw_labels(&text, 1, two, 1)).right;
    int wide = look_at_labels(draw_labels(&text, 1, two + 1, 1)).right;
    ck_assert_int_gt(wide, narrow);
    ck_assert_int_eq(look_at_labels(draw_labels(&text, 1, two, 2)).right, wide); /* the lower id */
    two[0].values[1] = "10";
    two[1].values[1] = "9.5";
    ck_assert_int_eq(look_at_labels(draw_labels(&text, 1, two, 2)).right, narrow);
    two[0].values[1] = "-10";
    ck_assert_int_eq(look_at_labels(draw_labels(&text, 1, two, 2)).right, wide);
    text.overlapping = true; /* both */
    ck_assert_int_gt(look_at_labels(draw_labels(&text, 1, two, 2)).sum,
                     look_at_labels(draw_labels(&text, 1, two + 1, 1)).sum);
    text.overlapping = false;
    text.max_displacement = 40; /* the second one moves aside */
    label_seen s = look_at_labels(draw_labels(&text, 1, two, 2));
    label_seen alone = look_at_labels(draw_labels(&text, 1, two + 1, 1));
    ck_assert(s.bottom > alone.bottom + 5 || s.top < alone.top - 5 || s.right > alone.right + 5);
}
END_TEST

START_TEST(a_label_at_the_edge_is_moved_inwards_or_left_out)
{
    mc_text_symbol text = label_symbol();
    labelled there = label_at_point("middle", 197, 100);
    label_seen s = look_at_labels(draw_labels(&text, 1, &there, 1));
    ck_assert_int_gt(s.sum, 0);
    ck_assert_int_ge(s.right, SIDE - 5); /* the box is a little larger than the letters */
    text.anchor_x.constant = 0;          /* to the right of the point: there is room on its left */
    s = look_at_labels(draw_labels(&text, 1, &there, 1));
    ck_assert_int_gt(s.sum, 0);
    ck_assert_int_le(s.right, 197);
    text.displacement_y.constant = -500; /* far outside */
    ck_assert_int_eq(look_at_labels(draw_labels(&text, 1, &there, 1)).sum, 0);
    text.displacement_y.constant = 0;
    there = label_at_point("a point outside of the map has its label there", 201, 100);
    ck_assert_int_eq(look_at_labels(draw_labels(&text, 1, &there, 1)).sum, 0);
    there = label_at_point("a text that is by far too wide for a map of that size", 100, 100);
    ck_assert_int_eq(look_at_labels(draw_labels(&text, 1, &there, 1)).sum, 0);
    text.auto_wrap = 100;
    text.anchor_x.constant = 0.5;
    s = look_at_labels(draw_labels(&text, 1, &there, 1));
    ck_assert_int_gt(s.sum, 0);
    ck_assert_int_le(s.right - s.left, 104);
    ck_assert_int_gt(s.bottom - s.top, 40);
}
END_TEST

/* An even-odd test of the corners of a ring. */
static bool
is_in_ring(const mc_shape *shape, double x, double y)
{
    bool inside = false;
    for (int i = 0; i < shape->point_count; i++) {
        double ax = shape->points[i].x / 256.0, ay = shape->points[i].y / 256.0;
        mc_shape_point b = shape->points[i == 0 ? shape->point_count - 1 : i - 1];
        double bx = b.x / 256.0, by = b.y / 256.0;
        if ((ay <= y) != (by <= y) && ax + (y - ay) * (bx - ax) / (by - ay) > x)
            inside = !inside;
    }
    return inside;
}

START_TEST(labels_of_areas_are_inside)
{
    const mc_label_frame frame = { SIDE, SIDE };
    mc_shape shape = { 0 };
    int found = 0;
    for (int round = 0; round < 2000; round++) {
        mc_shape_clear(&shape, MC_SHAPE_POLYGONS);
        int corners = 3 + (int)(next_random() % 30);
        double x = random_between(-50, SIDE + 50), y = random_between(-50, SIDE + 50);
        for (int i = 0; i < corners; i++) { /* a star: often it does not hold its own centroid */
            double angle = 2 * M_PI * i / corners * 0.8, radius = random_between(10, 150);
            mc_shape_add(&shape, (int32_t)(256 * (x + cos(angle) * radius)),
                         (int32_t)(256 * (y + sin(angle) * radius)));
        }
        mc_shape_end_ring(&shape, false);
        double at[2], extent;
        if (shape.part_count == 0 || !mc_label_inside(at, &extent, &shape, &frame, pool))
            continue;
        found++;
        ck_assert(at[0] >= 0 && at[0] <= SIDE && at[1] >= 0 && at[1] <= SIDE);
        ck_assert(is_in_ring(&shape, at[0], at[1]));
        ck_assert_double_gt(extent, 0);
    }
    ck_assert_int_gt(found, 900);
    mc_shape_free(&shape);
}
END_TEST

/* Of a U, the middle is outside; of two areas the larger one in the map counts. */
START_TEST(the_best_place_of_an_area)
{
    const mc_label_frame frame = { SIDE, SIDE };
    static const int u[][2] = { { 10, 10 },  { 20, 10 },  { 20, 150 },  { 120, 150 },
                                { 120, 10 }, { 180, 10 }, { 180, 160 }, { 10, 160 } };
    mc_shape shape = { 0 };
    double at[2], extent;
    mc_shape_clear(&shape, MC_SHAPE_POLYGONS);
    for (int i = 0; i < 8; i++)
        mc_shape_add(&shape, u[i][0] * 256, u[i][1] * 256);
    mc_shape_end_ring(&shape, false);
    ck_assert(mc_label_inside(at, &extent, &shape, &frame, pool));
    ck_assert(at[0] > 130 && at[0] < 170 && at[1] > 20 && at[1] < 150);
    mc_shape_clear(&shape, MC_SHAPE_POLYGONS);
    static const int boxes[2][4] = { { 150, 10, 5000, 5000 }, { 10, 10, 140, 190 } };
    for (int b = 0; b < 2; b++) {
        mc_shape_add(&shape, boxes[b][0] * 256, boxes[b][1] * 256);
        mc_shape_add(&shape, boxes[b][2] * 256, boxes[b][1] * 256);
        mc_shape_add(&shape, boxes[b][2] * 256, boxes[b][3] * 256);
        mc_shape_add(&shape, boxes[b][0] * 256, boxes[b][3] * 256);
        mc_shape_end_ring(&shape, false);
    }
    ck_assert(mc_label_inside(at, &extent, &shape, &frame, pool));
    ck_assert_double_eq_tol(at[0], 75, 10);
    ck_assert_double_eq_tol(at[1], 100, 10);
    ck_assert_double_eq_tol(extent, 130 * 180, 100);
    mc_shape_free(&shape);
}
END_TEST

/* Of maps side by side, one has the label of a small area; each has that of a large one. */
START_TEST(areas_across_the_edge_of_a_map)
{
    const mc_label_frame frame = { SIDE, SIDE };
    mc_shape shape = { 0 };
    for (int round = 0; round < 200; round++) {
        double x = random_between(SIDE - 45, SIDE + 45), y = random_between(50, 150);
        int places = 0;
        for (int map = 0; map < 2; map++) {
            double at[2], extent;
            mc_shape_clear(&shape, MC_SHAPE_POLYGONS);
            for (int i = 0; i < 7; i++)
                mc_shape_add(&shape, (int32_t)(256 * (x + 45 * cos(i * 2 * M_PI / 7))) - map * SIDE * 256,
                             (int32_t)(256 * (y + 40 * sin(i * 2 * M_PI / 7))));
            mc_shape_end_ring(&shape, false);
            places += mc_label_inside(at, &extent, &shape, &frame, pool);
        }
        ck_assert_int_eq(places, 1);
    }
    for (int map = 0; map < 2; map++) {
        double at[2], extent;
        mc_shape_clear(&shape, MC_SHAPE_POLYGONS);
        static const int corners[4][2] = { { 20, 20 }, { 380, 20 }, { 380, 180 }, { 20, 180 } };
        for (int i = 0; i < 4; i++)
            mc_shape_add(&shape, (corners[i][0] - map * SIDE) * 256, corners[i][1] * 256);
        mc_shape_end_ring(&shape, false);
        ck_assert(mc_label_inside(at, &extent, &shape, &frame, pool));
        ck_assert_double_eq_tol(at[0], map == 0 ? 110 : 90, 5);
    }
    mc_shape_free(&shape);
}
END_TEST

static float
bend_between(const mc_label_spot *spot)
{
    float most = 0;
    for (int i = 1; i < spot->glyph_count; i++) {
        const mc_placed_glyph *a = &spot->glyphs[i - 1], *b = &spot->glyphs[i];
        float turn =
            fabsf(atan2f(a->cosine * b->sine - a->sine * b->cosine, a->cosine * b->cosine + a->sine * b->sine));
        most = fmaxf(most, turn);
    }
    return most;
}

START_TEST(labels_follow_lines_but_are_not_folded)
{
    const mc_font *font;
    const mc_font_spec spec = { label_fonts, 1, false, 400 };
    mc_label_layout layout;
    int placed = 0, refused = 0;
    ck_ok(mc_text_font(&font, &spec, pool));
    ck_ok(mc_label_lay_out(&layout, font, "Hauptstrasse", 12, 0, 0.5F, pool));
    mc_label_spot spot = { .glyphs = apr_palloc(pool, sizeof(mc_placed_glyph) * (size_t)layout.count),
                           .boxes = apr_palloc(pool, sizeof(mc_label_box) * (size_t)layout.count) };
    for (int round = 0; round < 500; round++) {
        float points[12];
        for (int i = 0; i < 6; i++) {
            points[i * 2] = (float)((round % 2 == 0 ? i : 5 - i) * 40 + random_between(0, 30));
            points[i * 2 + 1] = (float)random_between(0, round % 5 == 0 ? 200 : 60);
        }
        mc_label_path path;
        mc_label_path_make(&path, points, 6, 12, false, pool);
        const mc_label_course course = { 0, (float)(22.5 * M_PI / 180), 0, true, false };
        if (!mc_label_along(&spot, &layout, &path, path.length / 2, &course)) {
            refused++;
            continue;
        }
        placed++;
        ck_assert_int_eq(spot.glyph_count, 12);
        ck_assert_float_le(bend_between(&spot), course.max_angle + 1e-4F);
        ck_assert_float_gt(spot.glyphs[11].x, spot.glyphs[0].x); /* it can be read */
    }
    ck_assert_int_gt(placed, 250);
    ck_assert_int_gt(refused, 5);
}
END_TEST

START_TEST(labels_of_a_line_are_repeated_as_asked)
{
    mc_text_symbol text = label_symbol();
    text.placement = MC_LABEL_LINE;
    text.size.constant = 10;
    labelled line = { { "ab", NULL }, MC_SHAPE_LINES, { 5, 100, 195, 100 }, 2, 1 };
    int64_t one = look_at_labels(draw_labels(&text, 1, &line, 1)).sum;
    ck_assert_int_gt(one, 0);
    text.repeat = 60;
    int64_t three = look_at_labels(draw_labels(&text, 1, &line, 1)).sum;
    ck_assert(three > one * 5 / 2 && three < one * 7 / 2);
    text.repeat = 0;
    text.repeated = true;
    text.gap = 50;
    text.initial_gap = 20;
    label_seen s = look_at_labels(draw_labels(&text, 1, &line, 1));
    ck_assert(s.sum > one * 5 / 2 && s.sum < one * 7 / 2);
    ck_assert_int_ge(s.left, 24);
    ck_assert_int_le(s.left, 27);
    text.repeated = false;
    text.aligned = false; /* horizontal in the middle */
    line.points[1] = 10;
    s = look_at_labels(draw_labels(&text, 1, &line, 1));
    ck_assert_int_lt(s.bottom - s.top, 14);
    text.aligned = true;
    text.group = true; /* two features, one label */
    labelled two[2] = { line, line };
    two[1].points[1] = two[1].points[3] = 180;
    two[1].id = 2;
    int64_t single = look_at_labels(draw_labels(&text, 1, two, 1)).sum;
    int64_t joined = look_at_labels(draw_labels(&text, 1, two, 2)).sum;
    ck_assert(joined > 0 && joined < single * 3 / 2);
    labelled halves[2] = { line, line }; /* neither is long enough, both together are; the second one runs backwards */
    static const float ends[2][4] = { { 20, 100, 100, 100 }, { 180, 100, 100, 100 } };
    halves[0].values[0] = halves[1].values[0] = "a long name on a road";
    halves[1].id = 2;
    for (int i = 0; i < 2; i++)
        memcpy(halves[i].points, ends[i], sizeof(ends[i]));
    s = look_at_labels(draw_labels(&text, 1, halves, 2));
    ck_assert_int_lt(s.left, 90);
    ck_assert_int_gt(s.right, 110);
    ck_assert_int_eq(look_at_labels(draw_labels(&text, 1, halves, 1)).sum, 0);
    text.label_all = true;
    ck_assert_int_gt(look_at_labels(draw_labels(&text, 1, two, 2)).sum, single * 3 / 2);
}
END_TEST

START_TEST(texts_are_cleaned)
{
    ck_assert_str_eq(mc_label_clean("  a\tb \r\n\r\n  c\x01\x7F d  \n", pool), "a b\nc d");
    ck_assert_str_eq(mc_label_clean("\xFF\xC3(\xE2\x82", pool), "\xEF\xBF\xBD\xEF\xBF\xBD(\xEF\xBF\xBD\xEF\xBF\xBD");
    ck_assert_str_eq(mc_label_clean("\xC0\xAF", pool), "\xEF\xBF\xBD\xEF\xBF\xBD");
    ck_assert_str_eq(mc_label_clean("\xED\xA0\x80", pool), "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
    ck_assert_str_eq(mc_label_clean("\xC2\x85x\xC2\xA0y", pool), "x\xC2\xA0y");
    ck_assert_str_eq(mc_label_clean("Z\xC3\xBCrich", pool), "Z\xC3\xBCrich");
    ck_assert_ptr_null(mc_label_clean("", pool));
    ck_assert_ptr_null(mc_label_clean(" \n\t\x02 ", pool));
    char *large = apr_palloc(pool, (1 << 20) + 1);
    memset(large, 'a', 1 << 20);
    large[1 << 20] = '\0';
    ck_assert_ptr_null(mc_label_clean(large, pool));
    large[MC_TEXT_BYTES_MAX] = '\0';
    ck_assert_str_eq(mc_label_clean(large, pool), large);
    memset(large, '\xFF', MC_TEXT_BYTES_MAX); /* three bytes for each */
    ck_assert_ptr_null(mc_label_clean(large, pool));
}
END_TEST

START_TEST(absurd_numbers_do_no_harm)
{
    static const double values[] = { NAN, INFINITY, -INFINITY, 1e9, -1e9, 1e300, 0, -1, 1e-300 };
    labelled what[2] = { label_at_point("a\nword", 100, 100), random_thing(7) };
    for (int i = 0; i < 9; i++)
        for (int field = 0; field < 9; field++) {
            mc_text_symbol text = label_symbol();
            mc_label_number *const numbers[] = { &text.size,     &text.rotation,       &text.anchor_x,
                                                 &text.anchor_y, &text.displacement_x, &text.displacement_y,
                                                 &text.offset,   &text.priority,       &text.halo_radius };
            numbers[field]->constant = values[i];
            text.halo = (mc_paint){ .present = true, .color = { 255, 255, 255, 255 } };
            text.placement = i % 2 == 0 ? MC_LABEL_LINE : MC_LABEL_POINT;
            draw_labels(&text, 1, what, 2);
        }
    /* The same numbers as values of attributes: text that is no number counts as what is usual. */
    static const char *const texts[] = { "nan", "inf", "1e400", "-1e9", "1e9", "twelve", "" };
    for (int i = 0; i < 7; i++) {
        mc_text_symbol text = label_symbol();
        what[0].values[1] = what[1].values[1] = texts[i];
        text.size.value = text.rotation.value = text.priority.value = &label_rank;
        draw_labels(&text, 1, what, 2);
    }
}
END_TEST

/* Of more labels than are kept, the first ones of the order stay, whatever order they come in. */
START_TEST(the_number_of_labels_is_bounded)
{
    mc_text_symbol text = label_symbol();
    mc_geometry geometry = { 0 };
    mc_pixels *pixels[2];
    const mc_rule_style rule = { .texts = &text, .text_count = 1 };
    enum { COUNT = MC_LABELS_MAX * 5 };
    text.max_displacement = 0;
    for (int order = 0; order < 2; order++) {
        apr_pool_t *scratch;
        apr_pool_create(&scratch, pool);
        ck_ok(mc_pixels_create(&pixels[order], SIDE, SIDE, true, pool));
        mc_pixels_attach(pixels[order], pool);
        mc_labels *labels = mc_labels_create(mc_canvas_of(pixels[order], pool), pool);
        mc_labels_next_layer(labels, 1);
        for (int i = 0; i < COUNT; i++) {
            int id = order == 0 ? i : COUNT - 1 - i;
            const char *values[] = { apr_itoa(scratch, id), NULL };
            mc_geometry_clear(&geometry);
            mc_shape_add(&geometry.shapes[MC_SHAPE_POINTS], (int32_t)(id * 7919LL % (SIDE * 256)),
                         (int32_t)(id * 104729LL % (SIDE * 256)));
            mc_shape_end_part(&geometry.shapes[MC_SHAPE_POINTS]);
            const mc_feature feature = { .id = id, .geometry = &geometry, .values = values };
            ck_ok(mc_labels_visit(labels, &rule, &feature, &ctx, scratch));
            if (i % 1000 == 0)
                apr_pool_clear(scratch);
        }
        ck_ok(mc_labels_finish(labels, &ctx));
        apr_pool_destroy(scratch);
    }
    ck_assert_int_gt(look_at_labels(pixels[0]).sum, 0);
    ck_assert_int_eq(memcmp(pixels[0]->data, pixels[1]->data, (size_t)SIDE * pixels[0]->stride), 0);
    mc_geometry_free(&geometry);
}
END_TEST

enum { THREADS = 4, MAPS = 30, THINGS = 40 };

typedef struct work {
    mc_text_symbol symbols[MAPS];
    labelled things[THINGS];
    mc_pixels *seen[MAPS];
    apr_pool_t *memory;
    pthread_t thread;
} work;

static void *
draw_all(void *data)
{
    work *own = data;
    mc_ctx local = { .pool = own->memory, .process = &process, .log = &mc_log_stderr };
    for (int i = 0; i < MAPS; i++)
        own->seen[i] = draw_labels_in(&own->symbols[i], 1, own->things, THINGS, &local, own->memory);
    return NULL;
}

/* Fonts, shaped lines and masks are of the process; all threads draw the same with them. */
START_TEST(threads_share_what_is_remembered)
{
    static work works[THREADS];
    static const char *const families[] = { "DejaVu Serif" };
    for (int i = 0; i < THINGS; i++)
        works[0].things[i] = random_thing(i);
    for (int i = 0; i < MAPS; i++) {
        works[0].symbols[i] = random_symbol();
        if (i % 2 == 0)
            works[0].symbols[i].font.families = families;
        works[0].symbols[i].font.weight = i % 3 == 0 ? 700 : 400;
    }
    for (int t = 1; t < THREADS; t++)
        works[t] = works[0];
    for (int t = 0; t < THREADS; t++) {
        apr_pool_create_unmanaged_ex(&works[t].memory, NULL, NULL);
        ck_assert_int_eq(pthread_create(&works[t].thread, NULL, draw_all, &works[t]), 0);
    }
    for (int t = 0; t < THREADS; t++)
        pthread_join(works[t].thread, NULL);
    for (int t = 1; t < THREADS; t++)
        for (int i = 0; i < MAPS; i++)
            ck_assert_int_eq(
                memcmp(works[0].seen[i]->data, works[t].seen[i]->data, (size_t)SIDE * works[t].seen[i]->stride), 0);
    for (int t = 0; t < THREADS; t++)
        apr_pool_destroy(works[t].memory);
}
END_TEST

UNIT_MAIN("labels", a_label_is_beside_its_point, a_halo_goes_all_around, no_label_touches_the_edge_of_the_map,
          no_letter_is_cut_by_its_own_box, the_order_of_arrival_does_not_matter,
          the_highest_priority_wins_then_the_lowest_id, a_label_at_the_edge_is_moved_inwards_or_left_out,
          labels_of_areas_are_inside, the_best_place_of_an_area, areas_across_the_edge_of_a_map,
          labels_follow_lines_but_are_not_folded, labels_of_a_line_are_repeated_as_asked, texts_are_cleaned,
          absurd_numbers_do_no_harm, the_number_of_labels_is_bounded, threads_share_what_is_remembered)
