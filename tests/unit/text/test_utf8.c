#include "unit.h"

#include <string.h>

#include "text/utf8.h"

START_TEST(well_formed_characters_have_their_size)
{
    static const struct {
        const char *text;
        size_t size;
        uint32_t character;
    } known[] = {
        { "A", 1, 'A' },
        { "\x7f", 1, 0x7F },
        { "\xc2\x80", 2, 0x80 },
        { "\xdf\xbf", 2, 0x7FF },
        { "\xe0\xa0\x80", 3, 0x800 },
        { "\xed\x9f\xbf", 3, 0xD7FF },
        { "\xef\xbf\xbf", 3, 0xFFFF },
        { "\xf0\x90\x80\x80", 4, 0x10000 },
        { "\xf4\x8f\xbf\xbf", 4, 0x10FFFF },
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        uint32_t character;
        char back[4];
        ck_assert_uint_eq(mc_utf8_size(known[i].text), known[i].size);
        ck_assert_uint_eq(mc_utf8_decode(&character, known[i].text), known[i].size);
        ck_assert_uint_eq(character, known[i].character);
        ck_assert_ptr_eq(mc_utf8_encode(back, character), back + known[i].size);
        ck_assert_mem_eq(back, known[i].text, known[i].size);
    }
}
END_TEST

START_TEST(what_is_no_character_has_no_size)
{
    static const char *const bad[] = {
        "\x80",
        "\xbf",
        "\xc0\x80",
        "\xc1\xbf",
        "\xc2",
        ("\xc2"
         "A"),
        "\xe0\x9f\xbf",
        "\xe1\x80",
        "\xed\xa0\x80",
        "\xf0\x8f\xbf\xbf",
        "\xf1\x80\x80",
        "\xf4\x90\x80\x80",
        "\xf5\x80\x80\x80",
        "\xff",
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        uint32_t character;
        ck_assert_msg(mc_utf8_size(bad[i]) == 0, "text %d has a size", (int)i);
        ck_assert_uint_eq(mc_utf8_decode(&character, bad[i]), 0);
    }
}
END_TEST

START_TEST(every_character_comes_back)
{
    for (uint32_t c = 1; c <= 0x10FFFF; c++) {
        char text[5] = "";
        uint32_t back;
        size_t size = (size_t)(mc_utf8_encode(text, c) - text);
        bool surrogate = c >= 0xD800 && c <= 0xDFFF;
        ck_assert_uint_eq(mc_utf8_decode(&back, text), surrogate ? 0 : size);
        ck_assert(surrogate || back == c);
    }
}
END_TEST

START_TEST(texts_are_counted_and_cut_by_characters)
{
    static const char text[] = "a\xc3\xa4\xe2\x82\xac\xf0\x9f\x97\xba"; /* 1, 2, 3 and 4 bytes */
    ck_assert_uint_eq(mc_utf8_length(text, text + strlen(text)), 4);
    ck_assert_uint_eq(mc_utf8_length(text, text), 0);
    ck_assert_ptr_eq(mc_utf8_next(text), text + 1);
    ck_assert_ptr_eq(mc_utf8_next(text + 3), text + 6);
    static const size_t cuts[] = { 0, 1, 1, 3, 3, 3, 6, 6, 6, 6 };
    for (size_t most = 0; most < sizeof(cuts) / sizeof(cuts[0]); most++)
        ck_assert_uint_eq(mc_utf8_cut(text, most), cuts[most]);
}
END_TEST

UNIT_MAIN("utf8", well_formed_characters_have_their_size, what_is_no_character_has_no_size, every_character_comes_back,
          texts_are_counted_and_cut_by_characters)
