/* Dimensions that ask an SQLite catalogue: what is bound, what times are, what is refused. */
#include "catalogue_fixture.h"

#include <sys/wait.h>

/* --- answers ---------------------------------------------------------------------------------------------------- */

START_TEST(rows_are_values_in_their_order)
{
    mc_dimension *dimension = asking_dimension("sqlite", LIKE, "");
    ck_assert_str_eq(resolve_value(dimension, "un"), "bern,nairobi");
    ck_assert_str_eq(resolve_value(dimension, "%"), "bern,nairobi,everest");
    ck_assert_str_eq(resolve_value(dimension, "nothing"), "");
    ck_assert_str_eq(resolve_value(asking_dimension("sqlite", LIKE " ORDER BY name DESC", ""), "un"), "nairobi,bern");
    ck_assert(dimension->ops->from_backend);
}
END_TEST

START_TEST(only_first_columns_count_and_nulls_do_not)
{
    ck_assert_str_eq(
        resolve_value(asking_dimension("sqlite", "SELECT 7, name FROM catalog WHERE :dim = 'un'", ""), "un"), "7,7,7");
    ck_assert_str_eq(
        resolve_value(asking_dimension("sqlite", "SELECT 1.5 UNION ALL SELECT NULL UNION ALL SELECT 'x'", ""), "un"),
        "1.5,x");
    ck_assert_str_eq(
        resolve_value(asking_dimension("sqlite", "SELECT max(name) FROM catalog WHERE name = :dim", ""), "un"), "");
}
END_TEST

START_TEST(every_parameter_is_bound)
{
    mc_extent extent = { -1.5, 2, 3.25, 4e10 };
    mc_dimension *dimension = asking_dimension(
        "sqlite",
        "SELECT :dim || '|' || :tileset || '|' || :gridsrs || '|' || :minx || '|' || :miny || '|' || :maxx || '|' ||"
        " :maxy || '|' || coalesce(:start_timestamp, 'null') || '|' || coalesce(:end_timestamp, 'null')",
        "");
    ck_assert_str_eq(resolve_in(dimension, "a:dim'b", &extent),
                     "a:dim'b|t|EPSG:3857|-1.5|2.0|3.25|40000000000.0|null|null");
    mc_dimension *unbounded = asking_dimension("sqlite",
                                               "SELECT :minx = -1.7976931348623157e308 AND :maxx = -:minx AND "
                                               "typeof(:miny) = 'real' AND :maxy > 1e300",
                                               "");
    ck_assert_str_eq(resolve_value(unbounded, "x"), "1");
}
END_TEST

START_TEST(the_extent_filters)
{
    mc_extent near = { 5, 5, 6, 6 }, far = { 1000, 1000, 1001, 1001 };
    mc_dimension *dimension = asking_dimension("sqlite", LIKE HERE, "");
    ck_assert(mc_dimension_by_extent(dimension));
    ck_assert(!mc_dimension_by_extent(asking_dimension("sqlite", LIKE, "")));
    ck_assert_str_eq(resolve_in(dimension, "%", &near), "bern");
    ck_assert_str_eq(resolve_in(dimension, "%", &far), "");
    ck_assert_str_eq(resolve_value(dimension, "%"), "bern,nairobi,everest");
}
END_TEST

START_TEST(hostile_values_are_values)
{
    static const char *const hostile[] = {
        "' OR 1=1 --",
        "'; DROP TABLE catalog; --",
        "\" OR \"\"=\"",
        "../../etc/passwd",
        "\xff\xfe",
        "?1",
        ":tileset",
        "$1",
        "{dim}",
        "un' --",
        "%' OR name LIKE '%",
    };
    mc_dimension *dimension =
        asking_dimension("sqlite", "SELECT name FROM catalog WHERE keywords = :dim OR name = :dim", "");
    for (size_t i = 0; i < sizeof(hostile) / sizeof(hostile[0]); i++)
        ck_assert_str_eq(resolve_value(dimension, hostile[i]), "");
    ck_fails(INVALID_DIMENSION, refuse_value(dimension, "un\n")); /* control characters are in no right value */
    ck_assert_str_eq(resolve_value(dimension, "bern"), "bern");
    next_request();
    ck_assert_str_eq(resolve_value(asking_dimension("sqlite", LIKE, ""), "%"),
                     "bern,nairobi,everest"); /* the table is still there */
}
END_TEST

START_TEST(values_have_a_greatest_length)
{
    mc_dimension *dimension = asking_dimension("sqlite", LIKE, "");
    char *value = apr_pcalloc(pool, 100001);
    memset(value, 'v', 100000);
    ck_fails(INVALID_DIMENSION, refuse_value(dimension, value));
    value[MC_DIMENSION_ASKED_MAX] = '\0';
    ck_assert_str_eq(resolve_value(dimension, value), "");
    char *many = apr_pcalloc(pool, 10000 * 3 + 1); /* ten thousand values */
    for (int i = 0; i < 10000; i++)
        memcpy(many + i * 3, "un,", 3);
    ck_fails(INVALID_DIMENSION, refuse_value(dimension, many));
}
END_TEST

/* A value of wildcards only: what matches it is found without trying every way to. */
START_TEST(many_wildcards_do_not_hold_a_thread)
{
    mc_dimension *dimension = asking_dimension("sqlite", LIKE, "");
    char *value = apr_pcalloc(pool, 12001);
    for (int i = 0; i < 6000; i++)
        memcpy(value + i * 2, "%_", 2);
    catalogue_sql("INSERT INTO catalog(name, keywords) VALUES ('long', hex(zeroblob(2000)))");
    ck_assert_str_eq(resolve_value(dimension, value), "");
}
END_TEST

START_TEST(the_list_sees_no_value)
{
    apr_array_header_t *values;
    mc_dimension *dimension = declare_dimension(
        "sqlite", "default='x'",
        apr_psprintf(pool,
                     "<dbfile>%s</dbfile><validate_query>SELECT 1</validate_query><list_query>SELECT "
                     "coalesce(:dim, 'null') || coalesce(:gridsrs, 'null') || coalesce(:start_timestamp, 'null') "
                     "|| :tileset || (:maxx > 1e300)</list_query>",
                     catalogue_file));
    ck_ok(mc_dimension_list(&values, dimension, "t", &ctx, pool));
    ck_assert_str_eq(joined_values(values), "nullnullnullt1");
    const char *value;
    ck_ok(mc_dimension_default(&value, dimension, "t", &ctx, pool));
    ck_assert_str_eq(value, "x");
}
END_TEST

/* --- what goes wrong -------------------------------------------------------------------------------------------- */

/* A statement that gives the numbers from 1. */
static const char *
count_to(int last)
{
    return apr_psprintf(
        pool, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) SELECT i FROM n", last);
}

START_TEST(too_many_rows_are_an_error)
{
    mc_dimension *dimension = asking_dimension("sqlite", count_to(100000), "");
    mc_error *error = refuse_value(dimension, "x");
    ck_fails(LIMIT, error);
    ck_assert_ptr_nonnull(strstr(error->message, "max_entries"));
    ck_assert_ptr_nonnull(strstr(error->message, "10000"));
    apr_array_header_t *values;
    mc_dimension_query query = { "t", &catalogue_grid, NULL, "x" };
    ck_ok(mc_dimension_resolve(&values, asking_dimension("sqlite", count_to(10000), ""), &query, &ctx, pool));
    ck_assert_int_eq(values->nelts, 10000);
    dimension = asking_dimension("sqlite", count_to(4), "<max_entries>3</max_entries>");
    ck_fails(LIMIT, refuse_value(dimension, "x"));
    ck_assert_str_eq(resolve_value(asking_dimension("sqlite", count_to(3), "<max_entries>3</max_entries>"), "x"),
                     "1,2,3");
}
END_TEST

/* Two dimensions that differ in their bound only: what one may remember the other must not use. */
START_TEST(a_bound_is_not_evaded_by_what_is_remembered)
{
    ck_assert_str_eq(resolve_value(asking_dimension("sqlite", LIKE, ""), "%"), "bern,nairobi,everest");
    ck_fails(LIMIT, refuse_value(asking_dimension("sqlite", LIKE, "<max_entries>2</max_entries>"), "%"));
}
END_TEST

START_TEST(a_value_has_a_greatest_length)
{
    ck_fails(LIMIT, refuse_value(asking_dimension("sqlite", "SELECT hex(zeroblob(3000))", ""), "x"));
}
END_TEST

START_TEST(a_query_that_takes_too_long_is_stopped)
{
    mc_dimension *dimension = asking_dimension(
        "sqlite", "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n WHERE i < 0", "");
    ctx.deadline = mc_clock_now() + 100000;
    apr_time_t began = mc_clock_now();
    ck_fails(UNAVAILABLE, refuse_value(dimension, "x"));
    ck_assert(mc_clock_now() - began < 20 * APR_USEC_PER_SEC);
    next_request();
    ck_assert_str_eq(resolve_value(asking_dimension("sqlite", LIKE, ""), "un"),
                     "bern,nairobi"); /* the handle lives on */
}
END_TEST

static bool
gone(void *baton)
{
    return baton != NULL;
}

START_TEST(a_query_ends_when_its_client_has_gone)
{
    ctx.abandoned = gone;
    ctx.abandoned_baton = &ctx;
    ck_fails(UNAVAILABLE,
             refuse_value(
                 asking_dimension(
                     "sqlite",
                     "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n WHERE i < 0", ""),
                 "x"));
}
END_TEST

START_TEST(a_locked_catalogue_is_waited_for_until_the_deadline)
{
    sqlite3 *db;
    ck_assert_int_eq(sqlite3_open(catalogue_file, &db), SQLITE_OK);
    ck_assert_int_eq(
        sqlite3_exec(db, "PRAGMA locking_mode=EXCLUSIVE; BEGIN EXCLUSIVE; INSERT INTO catalog(name) VALUES('z')", NULL,
                     NULL, NULL),
        SQLITE_OK);
    ctx.deadline = mc_clock_now() + 200000;
    ck_fails(UNAVAILABLE, refuse_value(asking_dimension("sqlite", LIKE, ""), "un"));
    sqlite3_close(db);
    next_request();
    ck_assert_str_eq(resolve_value(asking_dimension("sqlite", LIKE, ""), "un"), "bern,nairobi");
}
END_TEST

/* What a writer leaves that ends in the middle of a transaction, with pages of it in the file. */
static void
cut_writer_off(const char *file)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        sqlite3 *db;
        bool done = sqlite3_open(file, &db) == SQLITE_OK &&
                    sqlite3_exec(db,
                                 "PRAGMA cache_size = 1; BEGIN IMMEDIATE; UPDATE catalog SET name = 'cut off'; "
                                 "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100) "
                                 "INSERT INTO catalog(name) SELECT hex(zeroblob(4000)) FROM n",
                                 NULL, NULL, NULL) == SQLITE_OK;
        _exit(done ? 0 : 1);
    }
    ck_assert(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    ck_assert_int_eq(access(apr_pstrcat(pool, file, "-journal", NULL), F_OK), 0);
}

START_TEST(a_writer_that_was_cut_off_is_taken_back)
{
    mc_dimension *dimension = asking_dimension("sqlite", LIKE, "");
    ck_assert_str_eq(resolve_value(dimension, "%"), "bern,nairobi,everest");
    cut_writer_off(catalogue_file);
    next_request();
    ck_assert_str_eq(resolve_value(dimension, "%"), "bern,nairobi,everest");
}
END_TEST

START_TEST(wrong_statements_are_errors)
{
    static const char *const wrong[] = {
        "SELECT nosuch FROM catalog", "SELECT * FROM nosuch",  "SELEKT 1", "", "-- nothing", "DELETE FROM catalog",
        "CREATE TABLE x(a)",          "SELECT json('nosuch')",
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        if (*wrong[i] == '\0')
            continue;
        check_message(refuse_value(asking_dimension("sqlite", wrong[i], ""), "x"));
    }
    next_request();
    ck_assert_str_eq(resolve_value(asking_dimension("sqlite", LIKE, ""), "%"), "bern,nairobi,everest");
}
END_TEST

START_TEST(wrong_files_are_errors)
{
    mc_dimension *dimension = asking_dimension("sqlite", LIKE, "");
    ck_assert_int_eq(unlink(catalogue_file), 0);
    check_message(refuse_value(dimension, "un"));
    next_request();
    ck_assert_int_eq(mkfifo(catalogue_file, 0600), 0);
    check_message(refuse_value(dimension, "un"));
    next_request();
    ck_assert_int_eq(unlink(catalogue_file), 0);
    FILE *garbage = fopen(catalogue_file, "w");
    for (int i = 0; i < 1000; i++)
        fputs("this is no database. ", garbage);
    fclose(garbage);
    check_message(refuse_value(dimension, "un"));
    next_request();
    ck_assert_int_eq(unlink(catalogue_file), 0);
    catalogue_sql("CREATE TABLE catalog(name, keywords); INSERT INTO catalog VALUES('new', 'un')");
    ck_assert_str_eq(resolve_value(dimension, "un"), "new");
}
END_TEST

START_TEST(bad_declarations_are_refused)
{
    static const char *const bad[] = {
        "<validate_query>SELECT 1</validate_query><list_query>SELECT 1</list_query>",
        "<dbfile>f</dbfile><list_query>SELECT 1</list_query>",
        "<dbfile>f</dbfile><validate_query>SELECT 1</validate_query>",
        "<dbfile>f</dbfile><validate_query></validate_query><list_query>SELECT 1</list_query>",
        "<dbfile></dbfile><validate_query>SELECT 1</validate_query><list_query>SELECT 1</list_query>",
    };
    const char *good = "<dbfile>f</dbfile><validate_query>SELECT 1</validate_query><list_query>SELECT 1</list_query>";
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        ck_assert_msg(declare_dimension("sqlite", "default='x'", bad[i]) == NULL &&
                          catalogue_build.diagnostics->refused > 0,
                      "%s", bad[i]);
    static const char *const more[] = {
        "<max_entries>0</max_entries>",
        "<max_entries>many</max_entries>",
        "<remember>always</remember>",
        "<remember>-1</remember>",
        "<remember>1e9</remember>",
        "<wms_querybymap>yes</wms_querybymap>",
        "<wms_querybymap minzoom='-1'>true</wms_querybymap>",
    };
    for (size_t i = 0; i < sizeof(more) / sizeof(more[0]); i++)
        ck_assert_msg(declare_dimension("sqlite", "default='x'", apr_pstrcat(pool, good, more[i], NULL)) == NULL &&
                          catalogue_build.diagnostics->refused > 0,
                      "%s", more[i]);
    ck_assert_ptr_null(declare_dimension("sqlite", "", good));
    ck_assert_ptr_nonnull(declare_dimension("sqlite", "default='x'", good));
    ck_assert_int_eq(catalogue_build.diagnostics->complaints->nelts, 0);
}
END_TEST

START_TEST(query_by_map_is_read)
{
    mc_dimension *dimension = asking_dimension("sqlite", LIKE, "");
    ck_assert(!dimension->query_by_map);
    dimension = asking_dimension("sqlite", LIKE, "<wms_querybymap>TRUE</wms_querybymap>");
    ck_assert(dimension->query_by_map);
    ck_assert_int_eq(dimension->query_by_map_minzoom, 0);
    dimension = asking_dimension("sqlite", LIKE, "<wms_querybymap minzoom='7'>true</wms_querybymap>");
    ck_assert_int_eq(dimension->query_by_map_minzoom, 7);
    ck_assert(!asking_dimension("sqlite", LIKE, "<wms_querybymap minzoom='7'>false</wms_querybymap>")->query_by_map);
}
END_TEST

/* --- times ------------------------------------------------------------------------------------------------------ */

#define DURING "SELECT name FROM catalog WHERE ts >= :start_timestamp AND ts < :end_timestamp"

START_TEST(times_are_asked_as_intervals)
{
    mc_dimension *dimension = asking_dimension("time", DURING, "");
    ck_assert(dimension->time);
    ck_assert_str_eq(resolve_value(dimension, "2010"), "bern,nairobi");
    ck_assert_str_eq(resolve_value(dimension, "2010-03-04"), "nairobi");
    ck_assert_str_eq(resolve_value(dimension, "2010/2011"), "bern,nairobi,everest");
    ck_assert_str_eq(resolve_value(dimension, "2010-01-01T00:00:00+00:00"), "bern");
    ck_assert_str_eq(resolve_value(dimension, "2009"), "");
    ck_fails(INVALID_DIMENSION, refuse_value(dimension, "d1"));
    ck_fails(INVALID_DIMENSION, refuse_value(dimension, "2010,x"));
    ck_fails(INVALID_DIMENSION, refuse_value(dimension, "' OR 1=1 --"));
    ck_assert(!asking_dimension("sqlite", DURING, "")->time);
    mc_dimension *other = declare_dimension(
        "sqlite", "default='2010' time='true'",
        apr_psprintf(pool,
                     "<dbfile>%s</dbfile><validate_query><![CDATA[%s]]></validate_query><list_query>SELECT "
                     "1</list_query>",
                     catalogue_file, DURING));
    ck_assert_str_eq(resolve_value(other, "2010-03"), "nairobi");
}
END_TEST

START_TEST(times_are_bound_as_seconds)
{
    mc_dimension *dimension = asking_dimension("time",
                                               "SELECT typeof(:start_timestamp) || ' ' || :start_timestamp || ' ' || "
                                               "typeof(:end_timestamp) || ' ' || :end_timestamp || ' ' || :dim",
                                               "");
    ck_assert_str_eq(resolve_value(dimension, "2010"), "integer 1262304000 integer 1293840000 2010");
    ck_assert_str_eq(resolve_value(dimension, "2010-01-01T00:00:00.5Z/P1D"),
                     "real 1262304000.5 real 1262390400.5 2010-01-01T00:00:00.5Z/P1D");
}
END_TEST

START_TEST(a_list_of_times_is_asked_item_by_item)
{
    mc_dimension *dimension = asking_dimension("time", DURING, "");
    count_queries();
    ck_assert_str_eq(resolve_value(dimension, "2011,2010-03"), "everest,nairobi"); /* the last is on top */
    ck_assert_int_eq(count_queries(), 2);
    ck_assert_str_eq(resolve_value(dimension, "2010,2010-01"), "nairobi,bern"); /* once, where it comes last */
    ck_assert_str_eq(resolve_value(asking_dimension("time", "SELECT :dim", ""), "2010,2011"), "2010,2011");
    next_request();
    count_queries();
    ck_assert_str_eq(resolve_value(dimension, "2011,2010-03"), "everest,nairobi");
    ck_assert_int_eq(count_queries(), 0);
}
END_TEST

START_TEST(rows_of_all_times_are_bounded_together)
{
    mc_dimension *dimension = asking_dimension("time", DURING, "<max_entries>2</max_entries>");
    ck_assert_str_eq(resolve_value(dimension, "2010"), "bern,nairobi");
    ck_fails(LIMIT, refuse_value(dimension, "2010,2011"));
}
END_TEST

START_TEST(current_is_the_latest_listed)
{
    mc_dimension *dimension = declare_dimension(
        "time", "default='2009'",
        apr_psprintf(pool,
                     "<dbfile>%s</dbfile><validate_query>SELECT :dim || ' ' || :start_timestamp</validate_query>"
                     "<list_query>SELECT '2010-03-04' UNION ALL SELECT '2011' UNION ALL SELECT 'junk' UNION ALL SELECT "
                     "'2010' UNION ALL SELECT '9998'</list_query>",
                     catalogue_file));
    ck_assert_str_eq(resolve_value(dimension, "current"), "2011 1293840000");
    dimension =
        declare_dimension("time", "default='current'",
                          apr_psprintf(pool,
                                       "<dbfile>%s</dbfile><validate_query>SELECT 1</validate_query><list_query>SELECT "
                                       "'junk'</list_query>",
                                       catalogue_file));
    ck_fails(INVALID_DIMENSION, refuse_value(dimension, "current"));
}
END_TEST

static const char *
short_coordinate(double value, apr_pool_t *text_pool)
{
    return apr_psprintf(text_pool, "%.1f", value);
}

START_TEST(parameters_as_texts)
{
    const char *texts[MC_QUERY_PARAMETER_COUNT];
    mc_query_binds binds = { .tileset = "t", .dim = "d", .extent = { 1, 2, 3, 4 }, .timed = true };
    binds.start_us = -1500000;
    binds.end_us = INT64_C(1262304000250000);
    mc_query_texts(texts, &binds, 1000000, short_coordinate, pool);
    ck_assert_str_eq(texts[MC_QUERY_TILESET], "t");
    ck_assert_str_eq(texts[MC_QUERY_DIM], "d");
    ck_assert_ptr_null(texts[MC_QUERY_GRIDSRS]);
    ck_assert_str_eq(texts[MC_QUERY_MINX], "1.0");
    ck_assert_str_eq(texts[MC_QUERY_MINY], "2.0");
    ck_assert_str_eq(texts[MC_QUERY_MAXX], "3.0");
    ck_assert_str_eq(texts[MC_QUERY_MAXY], "4.0");
    ck_assert_str_eq(texts[MC_QUERY_START], "-1.500000");
    ck_assert_str_eq(texts[MC_QUERY_END], "1262304000.250000");
    mc_query_texts(texts, &binds, 1000, short_coordinate, pool);
    ck_assert_str_eq(texts[MC_QUERY_START], "-1500");
    ck_assert_str_eq(texts[MC_QUERY_END], "1262304000250");
    binds.timed = false;
    mc_query_texts(texts, &binds, 1000, short_coordinate, pool);
    ck_assert_str_eq(texts[MC_QUERY_START], "0");
    ck_assert_str_eq(texts[MC_QUERY_END], "0");
}
END_TEST

START_TEST(whole_times)
{
    int64_t whole;
    ck_assert(!mc_query_whole_time(&whole, -1500000, 1000000));
    ck_assert_int_eq(whole, -2);
    ck_assert(mc_query_whole_time(&whole, -2000000, 1000000));
    ck_assert_int_eq(whole, -2);
    ck_assert(!mc_query_whole_time(&whole, 1999999, 1000000));
    ck_assert_int_eq(whole, 1);
    ck_assert(mc_query_whole_time(&whole, INT64_C(1262304000250000), 1000));
    ck_assert_int_eq(whole, INT64_C(1262304000250));
}
END_TEST

CATALOGUE_MAIN("catalogue", rows_are_values_in_their_order, only_first_columns_count_and_nulls_do_not,
               every_parameter_is_bound, the_extent_filters, hostile_values_are_values, values_have_a_greatest_length,
               many_wildcards_do_not_hold_a_thread, the_list_sees_no_value, too_many_rows_are_an_error,
               a_bound_is_not_evaded_by_what_is_remembered, a_value_has_a_greatest_length,
               a_query_that_takes_too_long_is_stopped, a_query_ends_when_its_client_has_gone,
               a_locked_catalogue_is_waited_for_until_the_deadline, a_writer_that_was_cut_off_is_taken_back,
               wrong_statements_are_errors, wrong_files_are_errors, bad_declarations_are_refused, query_by_map_is_read,
               times_are_asked_as_intervals, times_are_bound_as_seconds, a_list_of_times_is_asked_item_by_item,
               rows_of_all_times_are_bounded_together, current_is_the_latest_listed, parameters_as_texts, whole_times)
