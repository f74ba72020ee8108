#include "unit.h"

#include "source/tiles/tile_url.h"
#include "source_fixture.h"

static const mc_node at = { .file = "x", .line = 1, .column = 1, .name = "url" };

static const char *
filled_url(const char *text, const mc_tile_url_rules *rules, const mc_tile_place *place)
{
    const char *url;
    mc_tile_url *template = mc_tile_url_compile(text, rules, &at, &source_build);
    ck_assert_ptr_nonnull(template);
    ck_ok(mc_tile_url_expand(&url, template, place, pool));
    return url;
}

START_TEST(each_token_has_its_number)
{
    source_fixture_reset();
    static const char *const names[] = { "a", "b", NULL };
    const mc_tile_url_rules plain = { 0 }, hosts = { .subdomains = names };
    const mc_tile_place place = { .z = 3, .column = 5, .row = 2, .row_from_south = 5, .matrix = "EPSG:3857:3" };
    ck_assert_str_eq(filled_url("http://h/{z}/{x}/{y}", &plain, &place), "http://h/3/5/2");
    ck_assert_str_eq(filled_url("http://h/{z}/{x}/{-y}?k=%7B", &plain, &place), "http://h/3/5/5?k=%7B");
    ck_assert_str_eq(filled_url("http://h/{q}", &plain, &place), "http://h/121");
    ck_assert_str_eq(filled_url("http://{s}.h/{q}", &hosts, &place), "http://b.h/121");
    ck_assert_str_eq(filled_url("http://h/{tilematrix}/{TileCol}/{TileRow}", &plain, &place),
                     "http://h/EPSG%3A3857%3A3/5/2");
}
END_TEST

START_TEST(values_of_dimensions_stay_one_part_of_a_path)
{
    source_fixture_reset();
    const mc_tile_url_rules plain = { 0 }, appended = { .append_dimensions = true };
    const mc_dimension_value hostile[] = { { "day", "..a/b c?c=d&e{z}%\r\n", false }, { "none", NULL, false } };
    mc_tile_place place = { .z = 1, .dimension_count = 2, .dimensions = hostile };
    ck_assert_str_eq(filled_url("http://h/{dim:DAY}/{q}", &plain, &place),
                     "http://h/..a%2Fb%20c%3Fc%3Dd%26e%7Bz%7D%25%0D%0A/0");
    ck_assert_str_eq(filled_url("http://h/{q}", &appended, &place),
                     "http://h/0?day=..a%2Fb%20c%3Fc%3Dd%26e%7Bz%7D%25%0D%0A");
    ck_assert_str_eq(filled_url("http://h/{q}?a=b", &appended, &place),
                     "http://h/0?a=b&day=..a%2Fb%20c%3Fc%3Dd%26e%7Bz%7D%25%0D%0A");
    place.dimension_count = 0;
    const char *url;
    mc_tile_url *template = mc_tile_url_compile("http://h/{dim:day}/{q}", &plain, &at, &source_build);
    ck_fails(CONFIG, mc_tile_url_expand(&url, template, &place, pool));
}
END_TEST

START_TEST(values_of_dimensions_lead_to_no_other_folder)
{
    source_fixture_reset();
    static const char *const hostile[] = { ".",          "..",     "../a",     "a/..",       "a/../b",
                                           "a/./b",      "..\\..", "a\\..\\b", "%2e%2e",     "%2E./a",
                                           "a%2f..%2fb", "..%5ca", "..%2f",    "a/%2e%2e/b", "%2e%2e%2fetc" };
    static const char *const kind[] = { "...", "a..b", "2026-01-01", "1.5", "a/b", "a%", "..a", "%2", "a b", ".a" };
    const mc_tile_url_rules plain = { 0 };
    mc_dimension_value value = { .name = "day" };
    const mc_tile_place place = { .z = 1, .dimension_count = 1, .dimensions = &value };
    const char *url;
    mc_tile_url *in_path = mc_tile_url_compile("http://h/a/{dim:day}/{q}", &plain, &at, &source_build);
    mc_tile_url *in_query = mc_tile_url_compile("http://h/a/{q}?day={dim:day}", &plain, &at, &source_build);
    for (size_t i = 0; i < sizeof(hostile) / sizeof(hostile[0]); i++) {
        value.value = hostile[i];
        ck_fails(INVALID_DIMENSION, mc_tile_url_expand(&url, in_path, &place, pool));
        ck_ok(mc_tile_url_expand(&url, in_query, &place, pool));
    }
    for (size_t i = 0; i < sizeof(kind) / sizeof(kind[0]); i++) {
        value.value = kind[i];
        ck_ok(mc_tile_url_expand(&url, in_path, &place, pool));
    }
    mc_dimension_value two[] = { { "a", ".", false }, { "b", ".", false } };
    const mc_tile_place both = { .z = 1, .dimension_count = 2, .dimensions = two };
    mc_tile_url *joined = mc_tile_url_compile("http://h/{dim:a}{dim:b}/{q}", &plain, &at, &source_build);
    ck_fails(INVALID_DIMENSION, mc_tile_url_expand(&url, joined, &both, pool));
}
END_TEST

START_TEST(templates_that_are_none_are_refused)
{
    static const char *const refused[] = { "",
                                           "h/{q}",
                                           "file:///{q}",
                                           "http://h/{x}/{y}",
                                           "http://h/{z}/{x",
                                           "http://h/{}/{q}",
                                           "http://h/{dim:}/{q}",
                                           "http://{dim:a}/{q}",
                                           "http://{dim:a}@h/{q}",
                                           "http://{s}/{q}" };
    const mc_tile_url_rules plain = { 0 };
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        source_fixture_reset();
        ck_assert_msg(mc_tile_url_compile(refused[i], &plain, &at, &source_build) == NULL, "%s", refused[i]);
        ck_assert_int_eq(source_build.diagnostics->refused, 1);
    }
}
END_TEST

UNIT_MAIN("tile_url", each_token_has_its_number, values_of_dimensions_stay_one_part_of_a_path,
          values_of_dimensions_lead_to_no_other_folder, templates_that_are_none_are_refused)
