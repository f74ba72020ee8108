#include "unit.h"

#include "text/color_name.h"

START_TEST(names_are_found_in_any_case)
{
    static const struct {
        const char *name;
        uint8_t rgb[3];
    } rows[] = {
        { "aliceblue", { 0xf0, 0xf8, 0xff } },     { "Navy", { 0, 0, 0x80 } },
        { "REBECCAPURPLE", { 0x66, 0x33, 0x99 } }, { "grey", { 0x80, 0x80, 0x80 } },
        { "gray", { 0x80, 0x80, 0x80 } },          { "white", { 0xff, 0xff, 0xff } },
        { "yellowgreen", { 0x9a, 0xcd, 0x32 } },   { "lime", { 0, 0xff, 0 } },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint8_t rgb[3] = { 1, 2, 3 };
        ck_assert_msg(mc_color_find_name(rgb, rows[i].name), "%s", rows[i].name);
        ck_assert_mem_eq(rgb, rows[i].rgb, 3);
    }
}
END_TEST

START_TEST(other_texts_are_no_names)
{
    static const char *const texts[] = { "", "re", "redd", " red", "#ff0000", "ff0000", "aaa", "zzz", "\xff" };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        uint8_t rgb[3] = { 1, 2, 3 }, before[3] = { 1, 2, 3 };
        ck_assert_msg(!mc_color_find_name(rgb, texts[i]), "%s", texts[i]);
        ck_assert_mem_eq(rgb, before, 3);
    }
}
END_TEST

UNIT_MAIN("color_name", names_are_found_in_any_case, other_texts_are_no_names)
