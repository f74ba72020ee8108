#include "catalogue_fixture.h"
#include "dimension/dimension_counters.h"

char catalogue_folder[64];
const char *catalogue_file;
mc_build catalogue_build;
mc_grid catalogue_grid = { .name = "g", .srs = "EPSG:3857" };

void
sql_in(const char *path, const char *statements)
{
    sqlite3 *db;
    char *message = NULL;
    ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
    sqlite3_busy_timeout(db, 5000);
    ck_assert_msg(sqlite3_exec(db, statements, NULL, NULL, &message) == SQLITE_OK, "%s: %s", statements, message);
    sqlite3_close(db);
}

void
catalogue_sql(const char *text)
{
    sql_in(catalogue_file, text);
}

void
next_request(void)
{
    apr_pool_clear(ctx.pool);
    ctx.deadline = 0;
}

void
settle_catalogue(void)
{
    usleep(60000);
    next_request();
}

static void
catalogue_set_up(void)
{
    unit_setup();
    apr_pool_create(&ctx.pool, pool); /* of the request; `pool` lives longer */
    strcpy(catalogue_folder, "/tmp/mc-catalogue-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(catalogue_folder));
    catalogue_file = apr_pstrcat(pool, catalogue_folder, "/catalog.sqlite", NULL);
    process.handles = mc_handles_create(8);
    process.metrics = mc_metrics_create();
    process.query_results = mc_clock_cache_create(1 << 20);
    catalogue_sql(
        "CREATE TABLE catalog(name TEXT, minx REAL, miny REAL, maxx REAL, maxy REAL, keywords TEXT, ts INTEGER);"
        "INSERT INTO catalog VALUES"
        "('bern', 0, 0, 10, 10, 'un,europe', 1262304000),"
        "('nairobi', 20, 20, 30, 30, 'un,africa', 1267660800),"
        "('everest', 40, 40, 50, 50, 'peak,asia', 1293840000)");
    settle_catalogue();
}

static void
catalogue_tear_down(void)
{
    mc_clock_cache_destroy(process.query_results);
    mc_handles_destroy(process.handles);
    mc_metrics_destroy(process.metrics);
    unit_teardown();
    static const char *const left[] = { "catalog.sqlite", "catalog.sqlite-wal", "catalog.sqlite-shm", "other",
                                        "second.sqlite" };
    for (size_t i = 0; i < sizeof(left) / sizeof(left[0]); i++) {
        char path[128];
        snprintf(path, sizeof(path), "%s/%s", catalogue_folder, left[i]);
        unlink(path);
    }
    rmdir(catalogue_folder);
}

mc_dimension *
declare_dimension(const char *type, const char *attributes, const char *inner)
{
    char *text = apr_psprintf(pool, "<dimension name='product' type='%s' %s>%s</dimension>", type, attributes, inner);
    catalogue_build = config_build();
    return mc_dimension_from_config(config_elements(text), &catalogue_build);
}

mc_dimension *
asking_dimension(const char *type, const char *validate, const char *inner)
{
    mc_dimension *dimension =
        declare_dimension(type, "default='%'",
                          apr_psprintf(pool,
                                       "<dbfile>%s</dbfile><validate_query><![CDATA[%s]]></validate_query>"
                                       "<list_query>SELECT name FROM catalog</list_query>%s",
                                       catalogue_file, validate, inner));
    ck_assert_msg(dimension != NULL, "%s",
                  catalogue_build.diagnostics->complaints->nelts == 0
                      ? ""
                      : APR_ARRAY_IDX(catalogue_build.diagnostics->complaints, 0, mc_complaint).text);
    return dimension;
}

const char *
joined_values(const apr_array_header_t *values)
{
    const char *text = "";
    for (int i = 0; i < values->nelts; i++)
        text = apr_pstrcat(pool, text, i > 0 ? "," : "", APR_ARRAY_IDX(values, i, const char *), NULL);
    return text;
}

const char *
resolve_in(mc_dimension *dimension, const char *value, const mc_extent *extent)
{
    apr_array_header_t *values;
    mc_dimension_query query = { "t", &catalogue_grid, extent, value };
    ck_ok(mc_dimension_resolve(&values, dimension, &query, &ctx, pool));
    return joined_values(values);
}

const char *
resolve_value(mc_dimension *dimension, const char *value)
{
    return resolve_in(dimension, value, NULL);
}

mc_error *
refuse_value(mc_dimension *dimension, const char *value)
{
    apr_array_header_t *values;
    mc_dimension_query query = { "t", &catalogue_grid, NULL, value };
    return mc_dimension_resolve(&values, dimension, &query, &ctx, pool);
}

int
count_queries(void)
{
    static uint64_t before;
    static mc_metrics *metrics;
    uint64_t now = mc_counter_value(process.metrics, MC_COUNT_dimension_queries_total);
    int since = (int)(now - (metrics == process.metrics ? before : 0));
    metrics = process.metrics;
    before = now;
    return since;
}

void
check_message(const mc_error *error)
{
    ck_assert_ptr_nonnull(error);
    ck_assert_ptr_nonnull(strstr(error->message, "product"));
    ck_assert_ptr_null(strstr(error->message, catalogue_folder));
    ck_assert_ptr_null(strstr(error->message, "SELECT"));
    ck_assert_ptr_null(strstr(error->message, "nosuch"));
}

int
catalogue_run(const char *name, const TTest *const *tests, int count)
{
    return unit_run_between(name, tests, count, catalogue_set_up, catalogue_tear_down);
}
