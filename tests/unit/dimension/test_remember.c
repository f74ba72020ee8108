/* How long the answers of a catalogue are used again: never longer than it stays the same. */
#include "catalogue_fixture.h"

START_TEST(a_map_asks_once)
{
    mc_extent tiles[3] = { { 0, 0, 10, 10 }, { 15, 15, 25, 25 }, { 0, 0, 10, 10 } };
    mc_dimension_query queries[3];
    apr_array_header_t *values[3];
    for (int i = 0; i < 3; i++)
        queries[i] = (mc_dimension_query){ "t", &catalogue_grid, &tiles[i], "%" };
    count_queries();
    ck_ok(mc_dimension_resolve_all(values, asking_dimension("sqlite", LIKE, ""), queries, 3, &ctx, pool));
    ck_assert_int_eq(count_queries(), 1);
    ck_assert_str_eq(joined_values(values[1]), "bern,nairobi,everest");
    ck_ok(mc_dimension_resolve_all(values, asking_dimension("sqlite", LIKE HERE, ""), queries, 3, &ctx, pool));
    ck_assert_int_eq(count_queries(), 2); /* two of the boxes are the same */
    ck_assert_str_eq(joined_values(values[0]), "bern");
    ck_assert_str_eq(joined_values(values[1]), "nairobi");
    ck_assert_str_eq(joined_values(values[2]), "bern");
}
END_TEST

START_TEST(answers_are_remembered_until_the_file_changes)
{
    mc_dimension *dimension = asking_dimension("sqlite", LIKE, "");
    count_queries();
    ck_assert_str_eq(resolve_value(dimension, "un"), "bern,nairobi");
    ck_assert_int_eq(count_queries(), 1);
    next_request();
    ck_assert_str_eq(resolve_value(dimension, "un"), "bern,nairobi");
    ck_assert_int_eq(count_queries(), 0);
    catalogue_sql("INSERT INTO catalog(name, keywords) VALUES('rome', 'un')");
    next_request();
    ck_assert_str_eq(resolve_value(dimension, "un"), "bern,nairobi,rome");
    ck_assert_int_eq(count_queries(), 1);
    catalogue_sql(
        "DELETE FROM catalog WHERE name = 'bern'"); /* at once: within the time that a stamp may not tell apart */
    next_request();
    ck_assert_str_eq(resolve_value(dimension, "un"), "nairobi,rome");
    settle_catalogue();
    ck_assert_str_eq(resolve_value(dimension, "un"), "nairobi,rome");
    count_queries();
    next_request();
    ck_assert_str_eq(resolve_value(dimension, "un"), "nairobi,rome");
    ck_assert_int_eq(count_queries(), 0);
}
END_TEST

START_TEST(answers_are_remembered_until_the_log_changes)
{
    sqlite3 *db;
    mc_dimension *dimension = asking_dimension("sqlite", LIKE, "");
    ck_assert_int_eq(sqlite3_open(catalogue_file, &db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(db,
                                  "PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=0;"
                                  "INSERT INTO catalog(name, keywords) VALUES('a', 'un')",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    settle_catalogue();
    ck_assert_str_eq(resolve_value(dimension, "un"), "bern,nairobi,a");
    for (int i = 0; i < 20; i++) {
        char name[16];
        snprintf(name, sizeof(name), "b%d", i);
        ck_assert_int_eq(sqlite3_exec(db,
                                      apr_psprintf(pool, "UPDATE catalog SET name = '%s' WHERE keywords = 'un'", name),
                                      NULL, NULL, NULL),
                         SQLITE_OK);
        next_request();
        ck_assert_str_eq(resolve_value(dimension, "un"), apr_pstrcat(pool, "bern,nairobi,", name, NULL));
    }
    sqlite3_close(db);
}
END_TEST

START_TEST(a_replaced_file_is_asked_anew)
{
    mc_dimension *dimension = asking_dimension("sqlite", LIKE, "");
    struct stat before;
    ck_assert_str_eq(resolve_value(dimension, "un"), "bern,nairobi");
    ck_assert_int_eq(stat(catalogue_file, &before), 0);
    const char *other = apr_pstrcat(pool, catalogue_folder, "/other", NULL);
    sql_in(other, "CREATE TABLE catalog(name, minx, miny, maxx, maxy, keywords, ts);"
                  "INSERT INTO catalog(name, keywords) VALUES('foreign', 'un')");
    struct utimbuf times = { before.st_atime, before.st_mtime };
    ck_assert_int_eq(utime(other, &times), 0); /* as tools that keep times do it */
    ck_assert_int_eq(rename(other, catalogue_file), 0);
    next_request();
    ck_assert_str_eq(resolve_value(dimension, "un"), "foreign");
}
END_TEST

START_TEST(what_reads_the_clock_is_not_remembered)
{
    static const char *const fleeting[] = {
        "SELECT name FROM catalog WHERE ts < strftime('%s', 'now')",
        "SELECT datetime()",
        "SELECT CURRENT_TIMESTAMP",
        "SELECT name FROM recent",
        "SELECT name FROM catalog ORDER BY random()",
    };
    catalogue_sql("CREATE VIEW recent AS SELECT * FROM catalog WHERE ts < julianday('now')");
    for (size_t i = 0; i < sizeof(fleeting) / sizeof(fleeting[0]); i++) {
        mc_dimension *dimension = asking_dimension("sqlite", fleeting[i], "");
        settle_catalogue();
        resolve_value(dimension, "x");
        count_queries();
        resolve_value(dimension, "x"); /* the same request */
        ck_assert_int_eq(count_queries(), 0);
        next_request();
        resolve_value(dimension, "x");
        ck_assert_msg(count_queries() == 1, "%s", fleeting[i]);
    }
    mc_dimension *client = asking_dimension("sqlite", "SELECT date(:dim)", ""); /* where a client says so */
    resolve_value(client, "now");
    resolve_value(client, "2020-01-01");
    next_request();
    count_queries();
    resolve_value(client, "2020-01-01");
    ck_assert_int_eq(count_queries(), 0);
    resolve_value(client, "now");
    ck_assert_int_eq(count_queries(), 1);
}
END_TEST

START_TEST(seconds_of_remembering)
{
    mc_dimension *dimension = asking_dimension("sqlite", LIKE, "<remember>3600</remember>");
    ck_assert_str_eq(resolve_value(dimension, "un"), "bern,nairobi");
    catalogue_sql("DELETE FROM catalog");
    settle_catalogue();
    ck_assert_str_eq(resolve_value(dimension, "un"), "bern,nairobi"); /* as the configuration wants it */
    next_request();
    ck_assert_str_eq(resolve_value(asking_dimension("sqlite", LIKE, "<remember>0</remember>"), "un"), "");
    dimension = asking_dimension("sqlite", LIKE, "<remember>0</remember>");
    next_request();
    count_queries();
    resolve_value(dimension, "un");
    next_request();
    resolve_value(dimension, "un");
    ck_assert_int_eq(count_queries(), 2);
    dimension = asking_dimension("sqlite", LIKE, "<remember>0.02</remember>");
    resolve_value(dimension, "un");
    settle_catalogue();
    count_queries();
    resolve_value(dimension, "un");
    ck_assert_int_eq(count_queries(), 1);
}
END_TEST

START_TEST(errors_are_not_remembered)
{
    mc_dimension *dimension = asking_dimension("sqlite", "SELECT name FROM later WHERE :dim = 'un'", "");
    check_message(refuse_value(dimension, "un"));
    catalogue_sql("CREATE TABLE later(name); INSERT INTO later VALUES('x')");
    next_request();
    ck_assert_str_eq(resolve_value(dimension, "un"), "x");
}
END_TEST

START_TEST(results_outlive_their_request)
{
    apr_array_header_t *values;
    mc_dimension *dimension = asking_dimension("sqlite", LIKE, "");
    mc_dimension_query query = { "t", &catalogue_grid, NULL, "un" };
    for (int i = 0; i < 2; i++) { /* asked, remembered */
        ck_ok(mc_dimension_resolve(&values, dimension, &query, &ctx, pool));
        next_request();
        mc_clock_cache_remove_if(process.query_results, NULL, NULL);
        ck_assert_str_eq(joined_values(values), "bern,nairobi");
    }
    ck_ok(mc_dimension_resolve(&values, dimension, &query, &ctx, ctx.pool));
    mc_clock_cache_remove_if(process.query_results, NULL, NULL);
    APR_ARRAY_PUSH(values, const char *) = "more"; /* what is shared is copied before it grows */
    ck_assert_str_eq(joined_values(values), "bern,nairobi,more");
    ck_assert_str_eq(resolve_value(dimension, "un"), "bern,nairobi");
}
END_TEST

START_TEST(dimensions_do_not_share_what_differs)
{
    ck_assert_str_eq(
        resolve_value(asking_dimension("sqlite", "SELECT name FROM catalog WHERE keywords LIKE :dim || '%'", ""), "un"),
        "bern,nairobi");
    ck_assert_str_eq(
        resolve_value(asking_dimension("sqlite", "SELECT upper(name) FROM catalog WHERE keywords LIKE :dim || '%'", ""),
                      "un"),
        "BERN,NAIROBI");
    const char *first = catalogue_file;
    catalogue_file = apr_pstrcat(pool, catalogue_folder, "/second.sqlite", NULL);
    catalogue_sql("CREATE TABLE catalog(name, keywords); INSERT INTO catalog VALUES('other', 'un')");
    ck_assert_str_eq(resolve_value(asking_dimension("sqlite", LIKE, ""), "un"), "other");
    catalogue_file = first;
    ck_assert_str_eq(resolve_value(asking_dimension("sqlite", LIKE, ""), "un"), "bern,nairobi");
    mc_dimension *dimension = asking_dimension("sqlite", "SELECT :tileset", "");
    apr_array_header_t *values;
    mc_dimension_query query = { "t", &catalogue_grid, NULL, "x" };
    ck_ok(mc_dimension_resolve(&values, dimension, &query, &ctx, pool));
    query.tileset = "u";
    ck_ok(mc_dimension_resolve(&values, dimension, &query, &ctx, pool));
    ck_assert_str_eq(joined_values(values), "u");
}
END_TEST

typedef struct crowd {
    mc_dimension *dimension;
    int wrong;
} crowd;

static void *
ask_often(void *baton)
{
    crowd *crowd = baton;
    apr_pool_t *own;
    apr_pool_create(&own, NULL);
    for (int i = 0; i < 300; i++) {
        mc_ctx own_ctx = { .pool = own, .process = &process, .log = &mc_log_stderr };
        apr_array_header_t *values;
        mc_extent extent = { i % 7, i % 7, 45, 45 };
        mc_dimension_query query = { "t", &catalogue_grid, i % 2 ? &extent : NULL, i % 3 ? "%" : "un" };
        if (mc_dimension_resolve(&values, crowd->dimension, &query, &own_ctx, own) != MC_OK || values->nelts < 2)
            crowd->wrong++;
        apr_pool_clear(own);
    }
    apr_pool_destroy(own);
    return NULL;
}

START_TEST(many_threads_ask_while_the_catalogue_changes)
{
    pthread_t threads[8];
    crowd crowds[8];
    mc_dimension *dimension = asking_dimension("sqlite", LIKE HERE, "");
    for (int i = 0; i < 8; i++) {
        crowds[i] = (crowd){ dimension, 0 };
        ck_assert_int_eq(pthread_create(&threads[i], NULL, ask_often, &crowds[i]), 0);
    }
    for (int i = 0; i < 10; i++)
        catalogue_sql("INSERT INTO catalog VALUES('more', 0, 0, 50, 50, 'un', 0)");
    for (int i = 0; i < 8; i++) {
        pthread_join(threads[i], NULL);
        ck_assert_int_eq(crowds[i].wrong, 0);
    }
}
END_TEST

CATALOGUE_MAIN("remember", a_map_asks_once, answers_are_remembered_until_the_file_changes,
               answers_are_remembered_until_the_log_changes, a_replaced_file_is_asked_anew,
               what_reads_the_clock_is_not_remembered, seconds_of_remembering, errors_are_not_remembered,
               results_outlive_their_request, dimensions_do_not_share_what_differs,
               many_threads_ask_while_the_catalogue_changes)
