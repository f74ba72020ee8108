#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "vector/postgis/postgis_layer.h"

static const mc_extent all = { 0, 0, 100, 50 };

static mc_postgis_column
usual(void)
{
    return (mc_postgis_column){
        .name = "geom", .srid = 3857, .stored = true, .paged = true, .rows = 1000, .bounded = true, .bounds = all
    };
}

static bool
gathers(const mc_postgis_column *column, mc_extent box, double rows)
{
    const mc_feature_query query = { .box = box };
    const mc_postgis_request request = { .query = &query, .transfer = MC_TRANSFER_BINARY, .copy = true, .rows = rows };
    return mc_postgis_may_gather(column, &request);
}

START_TEST(whole_tables_are_gathered)
{
    mc_postgis_column column = usual();
    ck_assert(gathers(&column, all, 1000));
    ck_assert(gathers(&column, (mc_extent){ 5, 0, 100, 50 }, 1000));
    ck_assert(!gathers(&column, (mc_extent){ 30, 0, 100, 50 }, 1000));
    ck_assert(!gathers(&column, (mc_extent){ 20, 10, 100, 50 }, 1000)); /* 0.8 of each side */
    ck_assert(!gathers(&column, (mc_extent){ 200, 0, 300, 50 }, 1000));
    ck_assert(!gathers(&column, (mc_extent){ 5, 0, 100, 50 }, 500));
    column.rows = 0; /* not known */
    ck_assert(gathers(&column, all, 10));
    ck_assert(!gathers(&column, (mc_extent){ 5, 0, 100, 50 }, 1000));
}
END_TEST

START_TEST(bounds_may_have_no_area)
{
    mc_postgis_column column = usual();
    column.bounds = (mc_extent){ 7, 0, 7, 50 };
    ck_assert(gathers(&column, all, 1000));
    ck_assert(!gathers(&column, (mc_extent){ 8, 0, 100, 50 }, 1000));
}
END_TEST

static void
expects(mc_postgis_layer *layer, mc_extent box, double rows, bool guessed)
{
    const mc_postgis_column column = usual();
    const mc_feature_query query = { .box = box, .srs = "EPSG:3857" };
    bool found;
    ck_assert_double_eq_tol(mc_postgis_expected_rows(&found, layer, &column, &query, 3857), rows, 1e-9);
    ck_assert_int_eq(found, guessed);
}

/* Nothing is known of the first map, nor by a small one of a large one, but what the catalogue has. */
START_TEST(the_first_map_is_told_by_the_catalogue)
{
    const mc_postgis_config config = { .connection = "host=nowhere", .table = "t" };
    mc_postgis_layer *layer = (mc_postgis_layer *)mc_postgis_create(&config, "layer", pool);
    const mc_extent half = { 0, 0, 50, 50 }, corner = { 0, 0, 5, 5 };
    const mc_feature_query small = { .box = corner, .srs = "EPSG:3857" }, whole = { .box = all, .srs = "EPSG:3857" };
    const mc_postgis_column column = usual();
    bool guessed;
    expects(layer, all, 1000, true);
    expects(layer, half, 500, true);
    ck_assert_double_eq(mc_postgis_expected_rows(&guessed, layer, &column, &whole, 4326), 0);
    mc_postgis_remember_rows(layer, &small, 400);
    expects(layer, corner, 400, false);
    expects(layer, (mc_extent){ 50, 0, 60, 10 }, 1600, false);
    expects(layer, all, 1000, true);
    mc_postgis_remember_rows(layer, &whole, 800);
    expects(layer, all, 800, false);
    expects(layer, half, 400, false);
}
END_TEST

START_TEST(only_what_is_plain_is_gathered)
{
    mc_postgis_column columns[] = { usual(), usual(), usual(), usual(), usual(), usual() };
    columns[0].varied = true;
    columns[1].unsettled = true;
    columns[2].large = true;
    columns[3].paged = false;
    columns[4].bounded = false;
    columns[5].geography = true;
    for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++)
        ck_assert_msg(!gathers(&columns[i], all, 1000), "%zu", i);
}
END_TEST

/* Two features: a point at 3, 4 with the number 258, the text "ab" and 7; one at 103, 4 with nulls. Then the least of
 * all numbers. */
static const char point[] = "\x01\x01\0\0\0\0\0\0\0\0\0\x08\x40\0\0\0\0\0\0\x10\x40";
static const char far_point[] = "\x01\x01\0\0\0\0\0\0\0\0\xc0\x59\x40\0\0\0\0\0\0\x10\x40";

static size_t
append(char *to, size_t at, const char *bytes, size_t size)
{
    memcpy(to + at, bytes, size);
    return at + size;
}

static const char *const names[] = { "text", "whole" };
static const bool integers[] = { false, true };
static const mc_feature_query query = { .box = { 0, 0, 100, 50 }, .attributes = names, .attribute_count = 2 };
static const mc_postgis_request request = { .query = &query, .integers = integers };

static size_t
make_two(char bytes[128])
{
    size_t size = append(bytes, 0,
                         "\0\0\0\0\0\0\x01\x02"
                         "ab\0"
                         "\0\0\0\0\0\0\0\x07",
                         19);
    size = append(bytes, size, point, 21);
    size = append(bytes, size,
                  "\0\0\0\0\0\0\0\0"
                  "\xff\0"
                  "\x80\0\0\0\0\0\0\0\xff",
                  19);
    return append(bytes, size, far_point, 21);
}

START_TEST(features_of_one_value_are_told_apart)
{
    char bytes[128] = { 0 };
    const char *at = bytes, *end = bytes + make_two(bytes);
    mc_postgres_field fields[4];
    bool meets;
    ck_assert(mc_postgis_next_of(fields, &meets, &at, end, true, &request));
    ck_assert(meets && fields[0].size == 21 && memcmp(fields[0].data, point, 21) == 0);
    ck_assert_int_eq(mc_postgis_whole(&fields[1]), 258);
    ck_assert_str_eq(fields[2].data, "ab");
    ck_assert_int_eq(fields[2].size, 2);
    ck_assert_int_eq(mc_postgis_whole(&fields[3]), 7);
    ck_assert(mc_postgis_next_of(fields, &meets, &at, end, true, &request));
    ck_assert(!meets && fields[0].size == 21 && fields[2].size == -1 && fields[3].size == -1);
    ck_assert_ptr_eq(at, end);
}
END_TEST

START_TEST(the_least_of_numbers_is_no_null)
{
    char bytes[64] = { 0 };
    size_t size = append(bytes, 0,
                         "\0"
                         "\x80\0\0\0\0\0\0\0\0",
                         10);
    size = append(bytes, size, point, 21);
    const char *at = bytes;
    mc_postgres_field fields[3];
    bool meets;
    ck_assert(mc_postgis_next_of(fields, &meets, &at, bytes + size, false, &request));
    ck_assert_int_eq(fields[1].size, 0);
    ck_assert(mc_postgis_whole(&fields[2]) == INT64_MIN && meets);
}
END_TEST

START_TEST(what_is_cut_short_is_refused)
{
    char bytes[128] = { 0 };
    size_t size = make_two(bytes);
    mc_postgres_field fields[4];
    bool meets;
    for (size_t cut = 0; cut < size; cut++) {
        char *copy = malloc(cut + 1); /* of its own, so that a step over its end is seen */
        memcpy(copy, bytes, cut);
        const char *at = copy;
        bool good = mc_postgis_next_of(fields, &meets, &at, copy + cut, true, &request);
        ck_assert_int_eq(good, cut >= 40);
        if (good)
            ck_assert(!mc_postgis_next_of(fields, &meets, &at, copy + cut, true, &request));
        free(copy);
    }
}
END_TEST

UNIT_MAIN("gather", whole_tables_are_gathered, the_first_map_is_told_by_the_catalogue, bounds_may_have_no_area,
          only_what_is_plain_is_gathered, features_of_one_value_are_told_apart, the_least_of_numbers_is_no_null,
          what_is_cut_short_is_refused)
