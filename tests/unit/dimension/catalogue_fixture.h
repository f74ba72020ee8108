/* A catalogue in an SQLite file, dimensions that ask it, and requests that follow each other. */
#ifndef MC_CATALOGUE_FIXTURE_H
#define MC_CATALOGUE_FIXTURE_H

#include "unit.h"

#include <apr_strings.h>
#include <float.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utime.h>

#include "base/clock_cache.h"
#include "base/metrics.h"
#include "db/sqlite/handles.h"
#include "dimension/query.h"

static char folder[64];
static const char *file;
static mc_build build;
static mc_grid grid = { .name = "g", .srs = "EPSG:3857" };

__attribute__((unused)) static void
sql_in(const char *path, const char *sql)
{
    sqlite3 *db;
    char *message = NULL;
    ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
    sqlite3_busy_timeout(db, 5000);
    ck_assert_msg(sqlite3_exec(db, sql, NULL, NULL, &message) == SQLITE_OK, "%s: %s", sql, message);
    sqlite3_close(db);
}

__attribute__((unused)) static void
sql(const char *text)
{
    sql_in(file, text);
}

/* The next request: a context of its own. */
__attribute__((unused)) static void
next_request(void)
{
    apr_pool_clear(ctx.pool);
    ctx.deadline = 0;
}

/* Until what was written last may be remembered. */
__attribute__((unused)) static void
settle(void)
{
    usleep(60000);
    next_request();
}

__attribute__((unused)) static void
set_up(void)
{
    unit_setup();
    apr_pool_create(&ctx.pool, pool); /* of the request; `pool` lives longer */
    strcpy(folder, "/tmp/mc-catalogue-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    file = apr_pstrcat(pool, folder, "/catalog.sqlite", NULL);
    process.handles = mc_handles_create(8);
    process.metrics = mc_metrics_create();
    process.query_results = mc_clock_cache_create(1 << 20);
    sql("CREATE TABLE catalog(name TEXT, minx REAL, miny REAL, maxx REAL, maxy REAL, keywords TEXT, ts INTEGER);"
        "INSERT INTO catalog VALUES"
        "('bern', 0, 0, 10, 10, 'un,europe', 1262304000),"
        "('nairobi', 20, 20, 30, 30, 'un,africa', 1267660800),"
        "('everest', 40, 40, 50, 50, 'peak,asia', 1293840000)");
    settle();
}

__attribute__((unused)) static void
tear_down(void)
{
    mc_clock_cache_destroy(process.query_results);
    mc_handles_destroy(process.handles);
    mc_metrics_destroy(process.metrics);
    unit_teardown();
    static const char *const left[] = { "catalog.sqlite", "catalog.sqlite-wal", "catalog.sqlite-shm", "other",
                                        "second.sqlite" };
    for (size_t i = 0; i < sizeof(left) / sizeof(left[0]); i++) {
        char path[128];
        snprintf(path, sizeof(path), "%s/%s", folder, left[i]);
        unlink(path);
    }
    rmdir(folder);
}

__attribute__((unused)) static mc_dimension *
declare(const char *type, const char *attributes, const char *inner)
{
    mc_node *root;
    char *text = apr_psprintf(pool, "<mapcache><dimension name='product' type='%s' %s>%s</dimension></mapcache>", type,
                              attributes, inner);
    build = (mc_build){ .pool = pool, .diagnostics = mc_diagnostics_create(pool) };
    ck_ok(mc_config_parse_text(&root, "test.xml", text, strlen(text), pool));
    return mc_dimension_from_config(root->children, &build);
}

/* A dimension with a validate_query; `inner`: further children. */
__attribute__((unused)) static mc_dimension *
asking(const char *type, const char *validate, const char *inner)
{
    mc_dimension *dimension = declare(type, "default='%'",
                                      apr_psprintf(pool,
                                                   "<dbfile>%s</dbfile><validate_query><![CDATA[%s]]></validate_query>"
                                                   "<list_query>SELECT name FROM catalog</list_query>%s",
                                                   file, validate, inner));
    ck_assert_msg(dimension != NULL, "%s",
                  build.diagnostics->complaints->nelts == 0
                      ? ""
                      : APR_ARRAY_IDX(build.diagnostics->complaints, 0, mc_complaint).text);
    return dimension;
}

__attribute__((unused)) static const char *
joined(const apr_array_header_t *values)
{
    const char *text = "";
    for (int i = 0; i < values->nelts; i++)
        text = apr_pstrcat(pool, text, i > 0 ? "," : "", APR_ARRAY_IDX(values, i, const char *), NULL);
    return text;
}

__attribute__((unused)) static const char *
resolve_in(mc_dimension *dimension, const char *value, const mc_extent *extent)
{
    apr_array_header_t *values;
    mc_dimension_query query = { "t", &grid, extent, value };
    ck_ok(mc_dimension_resolve(&values, dimension, &query, &ctx, pool));
    return joined(values);
}

__attribute__((unused)) static const char *
resolve(mc_dimension *dimension, const char *value)
{
    return resolve_in(dimension, value, NULL);
}

__attribute__((unused)) static mc_error *
refuse(mc_dimension *dimension, const char *value)
{
    apr_array_header_t *values;
    mc_dimension_query query = { "t", &grid, NULL, value };
    return mc_dimension_resolve(&values, dimension, &query, &ctx, pool);
}

/* How often the back end has been asked since the last look. */
__attribute__((unused)) static int
asked(void)
{
    static uint64_t before;
    static mc_metrics *metrics;
    uint64_t now = mc_counter_value(process.metrics, MC_COUNT_dimension_queries_total);
    int since = (int)(now - (metrics == process.metrics ? before : 0));
    metrics = process.metrics;
    before = now;
    return since;
}

#define LIKE "SELECT name FROM catalog WHERE keywords LIKE '%' || :dim || '%'"
#define HERE " AND minx <= :maxx AND maxx >= :minx AND miny <= :maxy AND maxy >= :miny"

/* What a client may read of a failure names the dimension, not the file and not the statement. */
__attribute__((unused)) static void
check_message(const mc_error *error)
{
    ck_assert_ptr_nonnull(error);
    ck_assert_ptr_nonnull(strstr(error->message, "product"));
    ck_assert_ptr_null(strstr(error->message, folder));
    ck_assert_ptr_null(strstr(error->message, "SELECT"));
    ck_assert_ptr_null(strstr(error->message, "nosuch"));
}

/* Runs the tests as a suite and returns main()'s value. */
static int
catalogue_run(const char *name, const TTest *const *tests, int count)
{
    apr_initialize();
    Suite *suite = suite_create(name);
    TCase *cases = tcase_create(name);
    tcase_add_checked_fixture(cases, set_up, tear_down);
    tcase_set_timeout(cases, 600);
    for (int i = 0; i < count; i++)
        tcase_add_test(cases, tests[i]);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    apr_terminate();
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

#define CATALOGUE_MAIN(name, ...)                                                                                      \
    int main(void)                                                                                                     \
    {                                                                                                                  \
        const TTest *const tests[] = { __VA_ARGS__ };                                                                  \
        return catalogue_run(name, tests, (int)(sizeof(tests) / sizeof(tests[0])));                                    \
    }

#endif
