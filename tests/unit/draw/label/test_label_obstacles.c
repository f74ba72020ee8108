/* Symbols that labels keep off. */
#include "labels.h"

#include <math.h>
#include <string.h>

static void
add_symbol_at(mc_label_obstacles *obstacles, double x, double y, float half)
{
    const float box[4] = { (float)x - half, (float)y - half, (float)x + half, (float)y + half };
    mc_label_obstacles_add(obstacles, (mc_shape_point){ (int32_t)(x * MC_SUBPIXELS), (int32_t)(y * MC_SUBPIXELS) },
                           box);
}

static bool
allows(const mc_label_obstacles *obstacles, float minx, float miny, float maxx, float maxy)
{
    const mc_label_box box = { minx, miny, maxx, maxy };
    return mc_label_obstacles_allow(obstacles, &box, 1, 0, NULL);
}

START_TEST(symbols_take_their_pixels)
{
    mc_label_obstacles *obstacles = mc_label_obstacles_create(200, 100, pool);
    ck_assert(allows(obstacles, 0, 0, 200, 100));
    add_symbol_at(obstacles, 64, 50, 4);
    ck_assert(!allows(obstacles, 67, 53, 90, 60));
    ck_assert(allows(obstacles, 68, 40, 90, 60));
    ck_assert(allows(obstacles, 0, 0, 60, 100));
    ck_assert(allows(obstacles, 0, 54, 200, 100));
    ck_assert(allows(obstacles, 68.2F, 40, 90, 60) && !allows(obstacles, 60.5F, 40, 61, 60));
    const mc_label_box beside = { 70, 40, 90, 60 };
    ck_assert(mc_label_obstacles_allow(obstacles, &beside, 1, 2, NULL));
    ck_assert(!mc_label_obstacles_allow(obstacles, &beside, 1, 3, NULL));
}
END_TEST

START_TEST(nothing_beside_the_map_is_touched)
{
    mc_label_obstacles *obstacles = mc_label_obstacles_create(130, 70, pool);
    uint8_t row[300];
    memset(row, 255, sizeof(row));
    add_symbol_at(obstacles, -3, -3, 4);
    add_symbol_at(obstacles, 131, 72, 5);
    add_symbol_at(obstacles, 1e6, -1e6, 1e5F);
    mc_label_obstacles_add_row(obstacles, -100, 40, row, 300);
    mc_label_obstacles_add_row(obstacles, 0, -1, row, 10);
    mc_label_obstacles_add_row(obstacles, 0, 70, row, 10);
    ck_assert(!allows(obstacles, 0, 0, 1, 1));
    ck_assert(!allows(obstacles, 128, 68, 130, 70));
    ck_assert(!allows(obstacles, 129, 40, 130, 41));
    ck_assert(allows(obstacles, 2, 2, 120, 40));
    const float nothing[4] = { NAN, NAN, NAN, NAN };
    mc_label_obstacles_add(obstacles, (mc_shape_point){ 0, 0 }, nothing);
    ck_assert(allows(obstacles, 2, 2, 120, 40));
}
END_TEST

START_TEST(a_label_finds_the_symbols_at_its_point)
{
    mc_label_obstacles *obstacles = mc_label_obstacles_create(200, 100, pool);
    mc_label_box own;
    ck_assert(!mc_label_obstacles_at(&own, obstacles, (const double[2]){ 50, 50 }));
    add_symbol_at(obstacles, 50, 50, 4);
    add_symbol_at(obstacles, 50.3, 50, 6);
    add_symbol_at(obstacles, 60, 50, 3);
    ck_assert(mc_label_obstacles_at(&own, obstacles, (const double[2]){ 50, 50 }));
    ck_assert_float_eq_tol(own.minx, 44.3F, 0.01F);
    ck_assert_float_eq_tol(own.maxx, 56.3F, 0.01F);
    ck_assert(!mc_label_obstacles_at(&own, obstacles, (const double[2]){ 55, 50 }));
    ck_assert(mc_label_obstacles_at(&own, obstacles, (const double[2]){ 60.4, 49.5 }));
    const mc_label_box over = { 58, 48, 62, 52 };
    ck_assert(mc_label_obstacles_allow(obstacles, &over, 1, 0, &own));
    const mc_label_box wide = { 54, 48, 62, 52 };
    ck_assert(!mc_label_obstacles_allow(obstacles, &wide, 1, 0, &own)); /* that of the other one */
}
END_TEST

/* Their number is bounded; the pixels that they take are not. */
START_TEST(very_many_symbols_lose_their_owners_only)
{
    mc_label_obstacles *obstacles = mc_label_obstacles_create(1000, 1000, pool);
    mc_label_box own;
    for (int i = 0; i < 999 * 1000; i++)
        add_symbol_at(obstacles, i % 1000 + 0.5, i / 1000 + 0.5, 0.5F); // NOLINT(bugprone-integer-division)
    ck_assert(!mc_label_obstacles_at(&own, obstacles, (const double[2]){ 5, 5 }));
    ck_assert(!allows(obstacles, 400, 400, 401, 401));
    ck_assert(allows(obstacles, 0, 999, 1000, 1000));
}
END_TEST

/* As wide as the text, of one pixel at least, under all of it; whatever its angle. */
START_TEST(text_is_underlined)
{
    mc_text_symbol text = label_symbol();
    labelled there = label_at_point("ill ill", 100, 80);
    text.size.constant = 20;
    label_seen plain = look_at_labels(draw_labels(&text, 1, &there, 1));
    text.underlined = true;
    mc_pixels *pixels = draw_labels(&text, 1, &there, 1);
    label_seen line = look_at_labels(pixels);
    ck_assert_int_gt(line.bottom, plain.bottom);
    for (int x = plain.left; x <= plain.right; x++)
        ck_assert_int_eq(alpha_at(pixels, x, line.bottom), 255);
    text.rotation.constant = 45;
    ck_assert_int_gt(look_at_labels(draw_labels(&text, 1, &there, 1)).sum, plain.sum + 255 * 30);
}
END_TEST

UNIT_MAIN("label obstacles", symbols_take_their_pixels, nothing_beside_the_map_is_touched,
          a_label_finds_the_symbols_at_its_point, very_many_symbols_lose_their_owners_only, text_is_underlined)
