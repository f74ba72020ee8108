#include "unit.h"

#include <math.h>
#include <string.h>

#include "draw/font/text.h"

static const char *const dejavu[] = { "DejaVu Sans" };

static const mc_font *
sans(void)
{
    const mc_font *font;
    const mc_font_spec spec = { dejavu, 1, false, 400 };
    ck_ok(mc_text_font(&font, &spec, pool));
    return font;
}

static mc_text_line
shaped(const char *text)
{
    mc_text_line line;
    ck_ok(mc_text_shape(&line, sans(), text, strlen(text), pool));
    return line;
}

START_TEST(a_font_is_found_once)
{
    const mc_font *again, *bold;
    const mc_font_spec spec = { dejavu, 1, false, 400 }, heavy = { dejavu, 1, false, 700 };
    ck_ok(mc_text_font(&again, &spec, pool));
    ck_ok(mc_text_font(&bold, &heavy, pool));
    ck_assert_ptr_eq(again, sans());
    ck_assert_ptr_ne(again, bold);
    ck_assert_float_gt(again->ascent, 0.6F);
    ck_assert_float_gt(again->descent, 0.1F);
    ck_assert_float_eq_tol(again->x_height, 0.55F, 0.05F);
}
END_TEST

START_TEST(families_that_are_missing_have_a_substitute)
{
    const char *name;
    ck_ok(mc_text_substitute(&name, "DejaVu Sans", pool));
    ck_assert_ptr_null(name);
    ck_ok(mc_text_substitute(&name, "dejavu SANS", pool));
    ck_assert_ptr_null(name);
    ck_ok(mc_text_substitute(&name, "sans-serif", pool));
    ck_assert_ptr_null(name);
    ck_ok(mc_text_substitute(&name, "No Such Family At All", pool));
    ck_assert_ptr_nonnull(name);
}
END_TEST

START_TEST(letters_stand_side_by_side)
{
    mc_text_line line = shaped("Hello W");
    ck_assert_int_eq(line.count, 7);
    for (int i = 1; i < line.count; i++)
        ck_assert_float_gt(line.glyphs[i].x, line.glyphs[i - 1].x);
    ck_assert_uint_eq(line.glyphs[2].index, line.glyphs[3].index);
    ck_assert_float_eq(line.glyphs[5].left, line.glyphs[5].right); /* the blank */
    ck_assert_float_gt(line.width, 2.5F);
    ck_assert_float_lt(line.width, 5);
}
END_TEST

START_TEST(letters_are_kerned)
{
    ck_assert_float_lt(shaped("AV").width, shaped("A").width + shaped("V").width - 0.01F);
}
END_TEST

/* Hebrew runs from right to left, numbers in it from left to right; a marked direction is followed. */
START_TEST(directions)
{
    mc_text_line line = shaped("\xD7\xA9\xD7\x9C\xD7\x95\xD7\x9D"); /* shin lamed vav mem */
    ck_assert_int_eq(line.count, 4);
    for (int i = 0; i < 4; i++)
        ck_assert_uint_eq(line.glyphs[i].from, (uint32_t)(6 - 2 * i));
    line = shaped("\xD7\xA9\xD7\x9C 12");
    static const uint32_t mixed[] = { 5, 6, 4, 2, 0 };
    ck_assert_int_eq(line.count, 5);
    for (int i = 0; i < 5; i++)
        ck_assert_uint_eq(line.glyphs[i].from, mixed[i]);
    line = shaped("a \xD7\xA9\xD7\x9C b");
    static const uint32_t inside[] = { 0, 1, 4, 2, 6, 7 };
    ck_assert_int_eq(line.count, 6);
    for (int i = 0; i < 6; i++)
        ck_assert_uint_eq(line.glyphs[i].from, inside[i]);
}
END_TEST

/* Beh alone, and the same letter at the beginning, in the middle and at the end of a word. */
START_TEST(arabic_letters_are_joined)
{
    mc_text_line alone = shaped("\xD8\xA8"), word = shaped("\xD8\xA8\xD8\xA8\xD8\xA8");
    ck_assert_int_eq(word.count, 3);
    ck_assert_uint_ne(word.glyphs[0].index, word.glyphs[1].index);
    ck_assert_uint_ne(word.glyphs[1].index, word.glyphs[2].index);
    for (int i = 0; i < 3; i++)
        ck_assert_uint_ne(word.glyphs[i].index, alone.glyphs[0].index);
}
END_TEST

START_TEST(a_mark_belongs_to_its_letter)
{
    mc_text_line line = shaped("x\xCC\x83y"); /* x with a tilde above: no letter of its own in Unicode */
    ck_assert_int_eq(line.count, 3);
    ck_assert_uint_eq(line.glyphs[0].from, line.glyphs[1].from);
    ck_assert_float_eq(line.glyphs[1].advance, 0);
    ck_assert_float_gt(line.glyphs[1].bottom, line.glyphs[0].top); /* the tilde is above the letter */
}
END_TEST

/* DejaVu Serif has no Arabic, DejaVu Sans has. */
START_TEST(another_font_stands_in)
{
    const mc_font *font;
    static const char *const serif[] = { "DejaVu Serif" };
    const mc_font_spec spec = { serif, 1, false, 400 };
    mc_text_line line;
    ck_ok(mc_text_font(&font, &spec, pool));
    ck_ok(mc_text_shape(&line, font, "a\xD8\xA8", 3, pool));
    ck_assert_int_eq(line.count, 2);
    ck_assert_uint_ne(line.glyphs[0].face, line.glyphs[1].face);
    ck_assert_uint_ne(line.glyphs[1].index, 0);
}
END_TEST

START_TEST(what_no_font_has_is_a_box)
{
    mc_text_line line = shaped("\xF3\xB0\x80\x80"); /* private use */
    ck_assert_int_eq(line.count, 1);
    ck_assert_uint_eq(line.glyphs[0].index, 0);
}
END_TEST

START_TEST(outlines_fill_the_ink_that_was_told)
{
    mc_text_line line = shaped("\xC3\x80gjQ%\xD8\xA8W@");
    for (int size = 7; size <= 40; size += 11)
        for (int i = 0; i < line.count; i++) {
            const mc_glyph *g = &line.glyphs[i];
            mc_glyph_outline outline;
            ck_ok(mc_text_outline(&outline, g->face, g->index, (float)size, false, pool));
            ck_assert_int_gt(outline.ring_count, 0);
            float left = INFINITY, top = INFINITY, right = -INFINITY, bottom = -INFINITY;
            for (int p = 0; p < outline.point_count; p++) {
                left = fminf(left, outline.points[p * 2]);
                right = fmaxf(right, outline.points[p * 2]);
                top = fminf(top, outline.points[p * 2 + 1]);
                bottom = fmaxf(bottom, outline.points[p * 2 + 1]);
            }
            ck_assert_float_eq_tol(left, g->left * (float)size, 0.1F);
            ck_assert_float_eq_tol(right, g->right * (float)size, 0.1F);
            ck_assert_float_eq_tol(top, -g->top * (float)size, 0.1F);
            ck_assert_float_eq_tol(bottom, -g->bottom * (float)size, 0.1F);
        }
}
END_TEST

/* Any bytes that are valid UTF-8: the longest text, controls of direction, marks without letters. */
START_TEST(strange_texts_are_shaped)
{
    static const char *const pieces[] = { "\xCC\x81",
                                          "\xE2\x80\xAE",
                                          "\xE2\x80\x8D",
                                          "\xEF\xB8\x8F",
                                          "\xD8\xA8",
                                          "\xE0\xA4\x95\xE0\xA5\x8D",
                                          "\xF0\x9F\x98\x80",
                                          "W",
                                          " ",
                                          "\xE2\x81\xA6" };
    for (int seed = 0; seed < 200; seed++) {
        char text[MC_TEXT_BYTES_MAX + 1];
        size_t size = 0;
        unsigned state = (unsigned)seed * 2654435761U;
        for (;;) {
            state = state * 1664525U + 1013904223U;
            const char *piece = pieces[(state >> 16) % 10];
            if (size + strlen(piece) > (size_t)(seed < 5 ? MC_TEXT_BYTES_MAX : 40))
                break;
            memcpy(text + size, piece, strlen(piece));
            size += strlen(piece);
        }
        mc_text_line line;
        ck_ok(mc_text_shape(&line, sans(), text, size, pool));
        ck_assert(isfinite(line.width));
        for (int i = 0; i < line.count; i++)
            ck_assert_uint_lt(line.glyphs[i].from, size);
    }
}
END_TEST

UNIT_MAIN("fonts", a_font_is_found_once, families_that_are_missing_have_a_substitute, letters_stand_side_by_side,
          letters_are_kerned, directions, arabic_letters_are_joined, a_mark_belongs_to_its_letter,
          another_font_stands_in, what_no_font_has_is_a_box, outlines_fill_the_ink_that_was_told,
          strange_texts_are_shaped)
