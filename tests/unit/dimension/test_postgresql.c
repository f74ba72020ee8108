#include "config_text.h"
#include "postgres.h"

#include <float.h>

#include "base/metrics.h"
#include "mapcache/dimension.h"
#include "memory/clock_cache.h"

static mc_build build;

static const char schema[] =
    "sql create extension if not exists postgis; drop table if exists scene;"
    " create table scene(id text, campaign text, taken bigint, minx float8, miny numeric, maxx float8, maxy int,"
    " place geometry(polygon, 3857), number int);"
    " insert into scene values"
    " ('s1', 'spring', 1262304000, 0, 0, 100, 100, st_makeenvelope(0, 0, 100, 100, 3857), 1),"
    " ('s2', 'spring', 1272304000, 50, 50, 200, 200, st_makeenvelope(50, 50, 200, 200, 3857), 2),"
    " ('s3', 'autumn', 1282304000, 500, 500, 600, 600, st_makeenvelope(500, 500, 600, 600, 3857), 3)";

static void
set_up_scene(void)
{
    postgres_set_up(4);
    database_do(&postgres_server, schema);
}

static mc_dimension *
make_at(const char *connection, const char *attributes, const char *validate, const char *list, const char *more)
{
    char *text = apr_psprintf(pool,
                              "<dimension name='scene' type='postgresql' default='s1' %s>"
                              "<connection>%s</connection><validate_query><![CDATA[%s]]></validate_query>"
                              "<list_query><![CDATA[%s]]></list_query>%s</dimension>",
                              attributes, connection, validate, list, more);
    build = config_build();
    mc_dimension *dimension = mc_dimension_from_config(config_elements(text), &build);
    ck_assert_ptr_nonnull(dimension);
    return dimension;
}

static mc_dimension *
make(const char *validate)
{
    return make_at(database_connection(&postgres_server), "", validate, "select 1", "");
}

static const mc_grid grid = { .name = "g", .srs = "EPSG:3857" };

static mc_error *
ask(apr_array_header_t **values, mc_dimension *dimension, const char *value, const mc_extent *extent)
{
    mc_dimension_query query = { .tileset = "mosaic", .grid = &grid, .extent = extent, .value = value };
    return mc_dimension_resolve(values, dimension, &query, &ctx, pool);
}

static const char *
resolve_in(mc_dimension *dimension, const char *value, const mc_extent *extent)
{
    apr_array_header_t *values;
    ck_ok(ask(&values, dimension, value, extent));
    return apr_array_pstrcat(pool, values, ',');
}

static const char *
resolve(mc_dimension *dimension, const char *value)
{
    return resolve_in(dimension, value, NULL);
}

static mc_error *
refuse(mc_dimension *dimension, const char *value)
{
    apr_array_header_t *values;
    return ask(&values, dimension, value, NULL);
}

START_TEST(rows_are_values_in_their_order)
{
    mc_dimension *dimension = make("select id from scene where :dim = 'all' or campaign = :dim or id = :dim"
                                   " order by taken desc");
    ck_assert_str_eq(resolve(dimension, "all"), "s3,s2,s1");
    ck_assert_str_eq(resolve(dimension, "spring"), "s2,s1");
    ck_assert_str_eq(resolve(dimension, "s3"), "s3");
    ck_assert_str_eq(resolve(dimension, "winter"), "");
    ck_assert_str_eq(resolve(dimension, "a,b"), "");
    dimension = make("select x from unnest(array[:tileset, :gridsrs, :dim, null]) x");
    ck_assert_str_eq(resolve(dimension, "d"), "mosaic,EPSG:3857,d");
}
END_TEST

START_TEST(hostile_values_stay_values)
{
    static const char *const hostile[] = {
        "'; drop table scene; --",     "' or '1'='1", "\\", "$1", ":dim", "%", "\xc3\xa9\xe2\x82\xac", "",
        "); select pg_sleep(100); --", "E'\\''",
    };
    mc_dimension *dimension = make("select :dim where :dim <> 'x'");
    for (size_t i = 0; i < sizeof(hostile) / sizeof(hostile[0]); i++)
        ck_assert_str_eq(resolve(dimension, hostile[i]), hostile[i]);
    ck_fails(INVALID_DIMENSION, refuse(dimension, "\n"));       /* control characters are in no right value */
    ck_fails(INVALID_DIMENSION, refuse(dimension, "\xff\xfe")); /* no UTF-8 */
    char *list = apr_pcalloc(pool, 16385);                      /* the longest value */
    memset(list, ',', 16384);
    dimension = make("select length(:dim)");
    ck_assert_str_eq(resolve(dimension, list), "16384");
    ck_assert_str_eq(database_do(&postgres_server, "sql select count(*) from scene"), "3");
}
END_TEST

START_TEST(extents_compare_with_any_number_and_with_geometries)
{
    static const char *const statements[] = {
        "select id from scene where minx < :maxx and miny < :maxy and maxx > :minx and maxy > :miny order by id",
        "select id from scene where place && st_makeenvelope(:minx, :miny, :maxx, :maxy, 3857) order by id",
        "select id from scene where place && st_setsrid(st_makebox2d(st_makepoint(:minx, :miny),"
        " st_makepoint(:maxx, :maxy)), split_part(:gridsrs, ':', 2)::int) order by id",
        "select id from scene where box(point(minx, miny), point(maxx, maxy)) &&"
        " box(point(:minx, :miny), point(:maxx, :maxy)) order by id",
    };
    static const mc_extent near = { 10.25, 10.25, 20.5, 20.5 }, both = { 60, 60, 70, 70 }, far = { 1e6, 1e6, 2e6, 2e6 };
    for (size_t i = 0; i < sizeof(statements) / sizeof(statements[0]); i++) {
        mc_dimension *dimension = make(statements[i]);
        ck_assert(mc_dimension_by_extent(dimension));
        ck_assert_str_eq(resolve_in(dimension, "x", &near), "s1");
        ck_assert_str_eq(resolve_in(dimension, "x", &both), "s1,s2");
        ck_assert_str_eq(resolve_in(dimension, "x", &far), "");
        ck_assert_str_eq(resolve(dimension, "x"), "s1,s2,s3"); /* unbounded: -DBL_MAX, DBL_MAX */
    }
}
END_TEST

START_TEST(times_are_seconds)
{
    mc_dimension *dimension =
        make_at(database_connection(&postgres_server), "time='true'",
                "select id from scene where taken >= :start_timestamp and taken < :end_timestamp order by taken",
                "select '2010-01-01'", "");
    ck_assert_str_eq(resolve(dimension, "2010"), "s1,s2,s3");
    ck_assert_str_eq(resolve(dimension, "2010-01-01"), "s1");
    ck_assert_str_eq(resolve(dimension, "2010-04/2010-05"), "s2");
    ck_assert_str_eq(resolve(dimension, "2010-01,2010-08"), "s1,s3");
    ck_assert_str_eq(resolve(dimension, "2011"), "");
    ck_assert_str_eq(resolve(dimension, "2009-12-31T23:59:59.5Z/2010-01-01T00:00:00.25Z"), "s1");
    ck_fails(INVALID_DIMENSION, refuse(dimension, "soon"));
    dimension = make_at(database_connection(&postgres_server), "time='true'",
                        "select id from scene where to_timestamp(taken) >= to_timestamp(:start_timestamp)"
                        " and to_timestamp(taken) < to_timestamp(:end_timestamp) order by taken",
                        "select 1", "");
    ck_assert_str_eq(resolve(dimension, "2010-04"), "s2");
    dimension = make("select :start_timestamp + 1 || ':' || :end_timestamp"); /* no times: 0 */
    ck_assert_str_eq(resolve(dimension, "x"), "1:0");
}
END_TEST

START_TEST(a_value_that_the_statement_cannot_take_is_refused)
{
    mc_dimension *dimension = make("select id from scene where number = :dim");
    ck_assert_str_eq(resolve(dimension, "2"), "s2");
    ck_fails(INVALID_DIMENSION, refuse(dimension, "two"));
    ck_fails(INVALID_DIMENSION, refuse(dimension, "99999999999999"));
    ck_fails(INVALID_DIMENSION, refuse(make("select id from scene where id ~ :dim"), "(("));
    ck_fails(INVALID_DIMENSION, refuse(make("select id from scene where id like :dim"), "s\\"));
    mc_error *error = refuse(make("select id from scene where taken = :dim::date - date '1970-01-01'"), "no date");
    ck_assert_int_eq(error->kind, MC_ERR_INVALID_DIMENSION);
    ck_assert_str_eq(error->locator, "scene");
    ck_assert_ptr_null(strstr(error->message, "date")); /* the server's words are for the log */
}
END_TEST

START_TEST(wrong_statements_are_the_databases_failure)
{
    static const char *const wrong[] = {
        "select id from nowhere",
        "selec",
        "select",
        "select id from scene where :dimension = id",
        "",
        "delete from scene where id = :dim and nowhere",
        "select 1; select 2",
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        if (*wrong[i] == '\0')
            continue; /* refused with the configuration */
        apr_array_header_t *values;
        mc_error *error = ask(&values, make(wrong[i]), "x", NULL);
        if (error == MC_OK) { /* a statement without columns has rows without values */
            ck_assert_str_eq(wrong[i], "select");
            ck_assert_int_eq(values->nelts, 0);
            continue;
        }
        ck_assert_msg(error->kind == MC_ERR_UPSTREAM, "%s: %s", wrong[i], mc_error_chain(error, pool));
        ck_assert_ptr_null(strstr(error->message, "select"));
        ck_assert_ptr_null(strstr(error->message, "127.0.0.1"));
        ck_assert_ptr_nonnull(strstr(mc_error_chain(error, pool), "PostgreSQL (127.0.0.1"));
    }
}
END_TEST

START_TEST(answers_are_bounded)
{
    mc_dimension *dimension = make("select generate_series(1, 100000)");
    mc_error *error = refuse(dimension, "x");
    ck_assert_int_eq(error->kind, MC_ERR_LIMIT);
    ck_assert_ptr_nonnull(strstr(error->message, "10000"));
    ck_fails(LIMIT, refuse(make("select repeat('x', 5000)"), "x"));
    dimension = make_at(database_connection(&postgres_server), "", "select generate_series(1, 100000)", "select 1",
                        "<max_entries>100000</max_entries>");
    apr_array_header_t *values;
    ck_ok(ask(&values, dimension, "x", NULL));
    ck_assert_int_eq(values->nelts, 100000);
    ck_assert_str_eq(APR_ARRAY_IDX(values, 99999, const char *), "100000");
    ck_assert_str_eq(resolve(make("select 'still here'"), "x"), "still here");
}
END_TEST

START_TEST(a_query_that_blocks_ends_at_the_deadline)
{
    mc_dimension *dimension = make("select pg_sleep(300)::text || :dim");
    apr_time_t begin = mc_clock_now();
    ctx.deadline = begin + 500000;
    ck_fails(UNAVAILABLE, refuse(dimension, "x"));
    ck_assert_int_lt(mc_clock_now() - begin, 15 * APR_USEC_PER_SEC);
    ctx.deadline = mc_clock_now() + 30 * APR_USEC_PER_SEC;
    ck_assert_str_eq(resolve(make("select 'still here'"), "x"), "still here");
}
END_TEST

START_TEST(lists_and_defaults_have_no_value_no_grid_and_no_extent)
{
    apr_array_header_t *values;
    const char *value;
    static const char probe[] = "select coalesce(:dim, 'none') || coalesce(:gridsrs, 'none') || :tileset union all"
                                " select 'unbounded' where :minx < -1e300 and :maxy > 1e300 and :start_timestamp = 0";
    mc_dimension *dimension = make_at(database_connection(&postgres_server), "", "select 1", probe, "");
    ck_ok(mc_dimension_list(&values, dimension, "mosaic", &ctx, pool));
    ck_assert_str_eq(apr_array_pstrcat(pool, values, ','), "nonenonemosaic,unbounded");
    ck_ok(mc_dimension_default(&value, dimension, "mosaic", &ctx, pool));
    ck_assert_str_eq(value, "s1");

    static const char *const queries[][2] = {
        { "select id from scene order by taken desc", "s3" },
        { "select id from scene where false", "s1" },
        { "select null", "s1" },
        { "select :tileset || coalesce(:dim, '!') || coalesce(:gridsrs, '!')", "mosaic!!" },
        { "select generate_series(1, 100000)", "1" },
    };
    for (size_t i = 0; i < sizeof(queries) / sizeof(queries[0]); i++) {
        dimension = make_at(database_connection(&postgres_server), "", "select 1", "select 1",
                            apr_psprintf(pool, "<default_query>%s</default_query>", queries[i][0]));
        ck_ok(mc_dimension_default(&value, dimension, "mosaic", &ctx, pool));
        ck_assert_str_eq(value, queries[i][1]);
    }
}
END_TEST

START_TEST(no_database_is_no_answer)
{
    mc_dimension *dimension = make_at("host=127.0.0.1 port=1 dbname=x", "", "select 1", "select 1", "");
    ck_fails(UNAVAILABLE, refuse(dimension, "x"));
    mc_postgres_destroy(process.postgres);
    process.postgres = NULL;
    ck_fails(UNAVAILABLE, refuse(make("select 1"), "x"));
}
END_TEST

START_TEST(answers_are_asked_again_unless_they_are_remembered)
{
    process.query_results = mc_clock_cache_create(1 << 20);
    database_do(&postgres_server,
                "sql drop table if exists moving; create table moving(v text); insert into moving values ('a')");
    mc_dimension *fresh = make("select v from moving where v <> :dim");
    mc_dimension *kept = make_at(database_connection(&postgres_server), "", "select v from moving where :dim <> v",
                                 "select 1", "<remember>3600</remember>");
    for (int i = 0; i < 2; i++) {
        apr_pool_create(&ctx.pool, pool); /* another request */
        ck_assert_str_eq(resolve(fresh, "x"), i == 0 ? "a" : "b");
        ck_assert_str_eq(resolve(kept, "x"), "a");
        database_do(&postgres_server, "sql update moving set v = 'b'");
    }
    mc_clock_cache_destroy(process.query_results);
}
END_TEST

START_TEST(incomplete_declarations_are_refused)
{
    static const char *const wrong[] = {
        "<validate_query>select 1</validate_query><list_query>select 1</list_query>",
        "<connection>dbname=x</connection><list_query>select 1</list_query>",
        "<connection>dbname=x</connection><validate_query>select 1</validate_query>",
        "<connection/><validate_query>select 1</validate_query><list_query>select 1</list_query>",
        ("<connection>dbname=x</connection><validate_query>select 1</validate_query><list_query>select 1</list_query>"
         "<remember>file</remember>"),
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        char *text = apr_psprintf(pool, "<dimension name='n' type='postgresql' default='a'>%s</dimension>", wrong[i]);
        build = config_build();
        ck_assert_ptr_null(mc_dimension_from_config(config_elements(text), &build));
        ck_assert_int_ge(build.diagnostics->refused, 1);
    }
}
END_TEST

START_TEST(a_connection_that_is_no_connection_string_is_warned_of)
{
    static const char *const texts[] = { "sesame", "http://x/", "host=x", "postgresql:///catalogue", "postgres://x" };
    for (int i = 0; i < 5; i++) {
        make_at(texts[i], "", "select 1", "select 1", "");
        ck_assert_int_eq(build.diagnostics->refused, 0);
        ck_assert_int_eq(build.diagnostics->complaints->nelts, i < 2 ? 1 : 0);
        if (i == 0)
            ck_assert_ptr_null(strstr(APR_ARRAY_IDX(build.diagnostics->complaints, 0, mc_complaint).text, "sesame"));
    }
}
END_TEST

POSTGRES_MAIN_BETWEEN("postgresql", set_up_scene, postgres_tear_down, rows_are_values_in_their_order,
                      hostile_values_stay_values, extents_compare_with_any_number_and_with_geometries,
                      times_are_seconds, a_value_that_the_statement_cannot_take_is_refused,
                      wrong_statements_are_the_databases_failure, answers_are_bounded,
                      a_query_that_blocks_ends_at_the_deadline, lists_and_defaults_have_no_value_no_grid_and_no_extent,
                      no_database_is_no_answer, answers_are_asked_again_unless_they_are_remembered,
                      incomplete_declarations_are_refused, a_connection_that_is_no_connection_string_is_warned_of)
