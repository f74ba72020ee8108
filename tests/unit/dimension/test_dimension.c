#include "config_text.h"

#include <apr_strings.h>
#include <string.h>

#include "mapcache/dimension.h"

static mc_build build;

static mc_dimension *
make(const char *xml)
{
    build = config_build();
    return mc_dimension_from_config(config_elements(xml), &build);
}

static const char *
resolve(mc_dimension *dimension, const char *value)
{
    apr_array_header_t *values;
    mc_dimension_query query = { .tileset = "t", .value = value };
    ck_ok(mc_dimension_resolve(&values, dimension, &query, &ctx, pool));
    ck_assert_int_eq(values->nelts, 1);
    return APR_ARRAY_IDX(values, 0, const char *);
}

static mc_error *
refuse(mc_dimension *dimension, const char *value)
{
    apr_array_header_t *values;
    mc_dimension_query query = { .tileset = "t", .value = value };
    return mc_dimension_resolve(&values, dimension, &query, &ctx, pool);
}

START_TEST(values_match_in_any_case_and_keep_the_clients_spelling)
{
    mc_dimension *dimension =
        make("<dimension name='color' type='values' default='red'><value>red</value><value>Green</value></dimension>");
    ck_assert_ptr_nonnull(dimension);
    ck_assert_str_eq(resolve(dimension, "RED"), "RED");
    ck_assert_str_eq(resolve(dimension, "green"), "green");
    ck_fails(INVALID_DIMENSION, refuse(dimension, "blue"));
    ck_fails(INVALID_DIMENSION, refuse(dimension, ""));
}
END_TEST

START_TEST(case_sensitive_values_match_exactly)
{
    mc_dimension *dimension = make("<dimension name='color' type='values' default='red'><value>red</value>"
                                   "<case_sensitive>true</case_sensitive></dimension>");
    ck_assert_str_eq(resolve(dimension, "red"), "red");
    ck_fails(INVALID_DIMENSION, refuse(dimension, "Red"));
}
END_TEST

START_TEST(values_are_listed_in_their_order)
{
    apr_array_header_t *values;
    mc_dimension *dimension =
        make("<dimension name='n' type='values' default='b'><value>b</value><value>a</value></dimension>");
    ck_ok(mc_dimension_list(&values, dimension, "t", &ctx, pool));
    ck_assert_int_eq(values->nelts, 2);
    ck_assert_str_eq(APR_ARRAY_IDX(values, 0, const char *), "b");
}
END_TEST

START_TEST(patterns_are_searched_not_anchored)
{
    mc_dimension *dimension =
        make("<dimension name='r' type='regex' default='2020'><regex>[0-9]{4}</regex></dimension>");
    ck_assert_str_eq(resolve(dimension, "x2020y"), "x2020y");
    ck_fails(INVALID_DIMENSION, refuse(dimension, "202"));
}
END_TEST

START_TEST(a_pattern_that_backtracks_forever_is_cut_short)
{
    mc_dimension *dimension = make("<dimension name='r' type='regex' default='a'><regex>^(a+)+$</regex></dimension>");
    ck_fails(INVALID_DIMENSION, refuse(dimension, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab"));
}
END_TEST

START_TEST(values_have_a_greatest_length)
{
    char value[MC_DIMENSION_VALUE_MAX + 2];
    mc_dimension *dimension = make("<dimension name='r' type='regex' default='a'><regex>.</regex></dimension>");
    memset(value, 'v', sizeof(value));
    value[MC_DIMENSION_VALUE_MAX] = '\0';
    ck_assert_str_eq(resolve(dimension, value), value);
    value[MC_DIMENSION_VALUE_MAX] = 'v';
    value[MC_DIMENSION_VALUE_MAX + 1] = '\0';
    ck_fails(INVALID_DIMENSION, refuse(dimension, value));
}
END_TEST

static const char *
settle(mc_dimension *dimension, const char *value)
{
    ck_ok(mc_dimension_settle(&value, dimension, "t", &ctx, pool));
    return value;
}

START_TEST(current_is_the_latest_time_that_has_begun)
{
    mc_dimension *dimension =
        make("<dimension name='TIME' type='values' default='2019' time='true'><value>2020-03</value><value>2021</value>"
             "<value>early</value><value>2020-12-31</value><value>9999</value></dimension>");
    ck_assert_str_eq(settle(dimension, "current"), "2021");
    ck_assert_str_eq(settle(dimension, "2020-03"), "2020-03");
    ck_assert_str_eq(settle(dimension, "Current"), "2021");
    dimension = make("<dimension name='TIME' type='values' default='x' time='true'><value>y</value></dimension>");
    ck_assert_str_eq(settle(dimension, "current"), "x");
    dimension = make("<dimension name='TIME' type='values' default='current' time='true'><value>y</value></dimension>");
    const char *value = "current";
    ck_fails(INVALID_DIMENSION, mc_dimension_settle(&value, dimension, "t", &ctx, pool));
    dimension = make("<dimension name='n' type='values' default='x'><value>current</value></dimension>");
    ck_assert_str_eq(settle(dimension, "current"), "current"); /* no time */
}
END_TEST

START_TEST(bad_declarations_are_refused)
{
    static const char *const bad[] = {
        "<dimension type='values' default='a'><value>a</value></dimension>",
        "<dimension name='n' default='a'><value>a</value></dimension>",
        "<dimension name='n' type='values'><value>a</value></dimension>",
        "<dimension name='n' type='values' default='a'/>",
        "<dimension name='n' type='values' default='a'><value></value></dimension>",
        "<dimension name='n' type='regex' default='a'><regex>(</regex></dimension>",
        "<dimension name='n' type='intervals' default='a'/>",
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        ck_assert_ptr_null(make(bad[i]));
        ck_assert_msg(build.diagnostics->refused > 0, "%s", bad[i]);
    }
}
END_TEST

UNIT_MAIN("dimension", values_match_in_any_case_and_keep_the_clients_spelling, case_sensitive_values_match_exactly,
          values_are_listed_in_their_order, patterns_are_searched_not_anchored,
          a_pattern_that_backtracks_forever_is_cut_short, values_have_a_greatest_length,
          current_is_the_latest_time_that_has_begun, bad_declarations_are_refused)
