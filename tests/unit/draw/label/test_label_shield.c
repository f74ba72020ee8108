/* Graphics behind labels. */
#include "labels.h"

#include <stdlib.h>
#include <string.h>

static mc_text_symbol
shielded(const char *mark, double size)
{
    mc_text_symbol text = label_symbol();
    text.shielded = true;
    text.graphic = (mc_graphic){ .mark = mc_mark_find(mark, true, pool),
                                 .fill = { .present = true, .color = { 255, 0, 0, 255 } },
                                 .size = size,
                                 .opacity = 1,
                                 .anchor = { .x = 0.5, .y = 0.5 } };
    return text;
}

START_TEST(a_graphic_lies_behind_its_label)
{
    mc_text_symbol text = shielded("square", 40);
    labelled there = label_at_point("H", 100, 80);
    mc_pixels *pixels = draw_labels(&text, 1, &there, 1);
    label_seen s = look_at_labels(pixels);
    ck_assert_int_eq(s.right - s.left + 1, 40);
    ck_assert_int_eq(s.bottom - s.top + 1, 40);
    ck_assert_int_le(abs(s.left - 80), 1);
    ck_assert_int_le(abs(s.top - 60), 1);
    ck_assert_int_eq(s.sum, 40 * 40 * 255); /* its edges are on whole pixels */
    int dark = 0;
    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < SIDE; x++)
            dark += alpha_at(pixels, x, y) == 255 && pixels->data[(size_t)y * pixels->stride + (size_t)x * 4 + 2] < 60;
    ck_assert_int_gt(dark, 15); /* the letter lies over it */
    text.shielded = false;
    label_seen alone = look_at_labels(draw_labels(&text, 1, &there, 1));
    ck_assert_float_eq_tol((float)(alone.left + alone.right), (float)(s.left + s.right), 3);
    ck_assert_float_eq_tol((float)(alone.top + alone.bottom), (float)(s.top + s.bottom), 4);
}
END_TEST

START_TEST(graphics_are_fitted_to_their_texts)
{
    mc_text_symbol text = shielded("square", 10);
    labelled little = label_at_point("A1", 100, 80), much = label_at_point("A1 and E35", 100, 80);
    const double margin[4] = { 1, 2, 3, 4 };
    text.resize = MC_RESIZE_STRETCH;
    label_seen narrow = look_at_labels(draw_labels(&text, 1, &little, 1)),
               wide = look_at_labels(draw_labels(&text, 1, &much, 1));
    ck_assert_int_gt(wide.right - wide.left, narrow.right - narrow.left + 30);
    ck_assert_int_eq(wide.bottom - wide.top, narrow.bottom - narrow.top);
    memcpy(text.graphic_margin, margin, sizeof(margin));
    label_seen more = look_at_labels(draw_labels(&text, 1, &little, 1));
    ck_assert_int_eq(narrow.top - more.top, 1);
    ck_assert_int_eq(more.right - narrow.right, 2);
    ck_assert_int_eq(more.bottom - narrow.bottom, 3);
    ck_assert_int_eq(narrow.left - more.left, 4);
    memset(text.graphic_margin, 0, sizeof(margin));
    text.resize = MC_RESIZE_PROPORTIONAL;
    label_seen round = look_at_labels(draw_labels(&text, 1, &much, 1));
    ck_assert_int_eq(round.right - round.left, wide.right - wide.left);
    ck_assert_int_le(abs(round.bottom - round.top - (round.right - round.left)), 1);
}
END_TEST

START_TEST(graphics_take_room_and_stay_inside)
{
    mc_text_symbol text = shielded("circle", 50);
    labelled two[] = { label_at_point("A", 60, 80), label_at_point("B", 100, 80) };
    two[1].id = 1;
    ck_assert_int_lt(look_at_labels(draw_labels(&text, 1, two, 2)).right, 90); /* letters alone would have room */
    two[1] = label_at_point("B", 115, 80);
    ck_assert_int_gt(look_at_labels(draw_labels(&text, 1, two, 2)).right, 130);
    for (int i = 0; i < 60; i++) { /* never at the edge, also where they are turned, outlined, moved */
        static const char *const marks[] = { "star", "square", "triangle", "shield", "ttf://DejaVu Sans#0x2708" };
        labelled one = label_at_point("A9", (float)random_between(0, SIDE), (float)random_between(0, SIDE));
        text = shielded(marks[i % 5], random_between(10, 60));
        text.rotation.constant = i % 2 == 0 ? 0 : random_between(-180, 180);
        text.resize = (mc_label_resize)(i / 4 % 3);
        text.graphic.displacement = (mc_pair){ .x = random_between(-9, 9), .y = random_between(-9, 9) };
        text.graphic.stroke =
            (mc_stroke){ .paint = { .present = i % 3 > 0, .color = { 0, 0, 0, 255 } }, .width = i % 7 };
        label_seen s = look_at_labels(draw_labels(&text, 1, &one, 1));
        ck_assert(s.right < 0 || (s.left > 0 && s.top > 0 && s.right < SIDE - 1 && s.bottom < SIDE - 1));
    }
}
END_TEST

/* On a line the graphic cannot bend: letters and graphic are straight, at its angle. */
START_TEST(graphics_on_lines_turn_with_them)
{
    mc_text_symbol text = shielded("square", 30);
    labelled line = { { "A1", NULL }, MC_SHAPE_LINES, { 20, 20, 180, 180 }, 2, 0 };
    text.placement = MC_LABEL_LINE;
    label_seen s = look_at_labels(draw_labels(&text, 1, &line, 1));
    ck_assert_int_ge(s.right - s.left, 40);
    ck_assert_int_le(s.right - s.left, 44); /* its diagonal */
    ck_assert_int_le(abs(s.left + s.right - SIDE), 6);
    ck_assert_float_eq_tol((float)s.sum / 255, 30 * 30, 8);
}
END_TEST

/* What differs between features is remembered until the labels are drawn. */
START_TEST(graphics_differ_between_features)
{
    mc_text_symbol text = shielded("square", 30);
    static const mc_expression size = { .kind = MC_PROPERTY, .property = 1 };
    labelled two[] = { label_at_point("A", 50, 50), label_at_point("A", 150, 150) };
    text.graphic.size_value = &size;
    two[0].values[1] = "20";
    two[1].values[1] = "40";
    ck_assert_float_eq_tol((float)look_at_labels(draw_labels(&text, 1, two, 2)).sum / 255, 20 * 20 + 40 * 40, 4);
    text.group = true; /* one of them */
    ck_assert_float_lt((float)look_at_labels(draw_labels(&text, 1, two, 2)).sum / 255, 1700);
    two[1].values[1] = "nothing";
    two[0].values[1] = "-3";
    text.group = false;
    ck_assert_float_eq_tol((float)look_at_labels(draw_labels(&text, 1, two, 2)).sum / 255, 30 * 30 + 50, 60);
}
END_TEST

UNIT_MAIN("label_shield", a_graphic_lies_behind_its_label, graphics_are_fitted_to_their_texts,
          graphics_take_room_and_stay_inside, graphics_on_lines_turn_with_them, graphics_differ_between_features)
