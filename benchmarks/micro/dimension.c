/* Microseconds of processor time in which the tiles of one map learn what "%" stands for in a catalogue of 401
 * products: asked one by one and together, of the file and of the memory; the best of several rounds: `micro_dimension
 * [rounds]`. */
#include <apr_general.h>
#include <apr_strings.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "db/sqlite/handles.h"
#include "mapcache/dimension.h"
#include "measure.h"
#include "memory/clock_cache.h"

enum { PRODUCTS = 401, TILES = 25 };

static apr_pool_t *pool;
static mc_process process;
static mc_grid grid = { .name = "GoogleMapsCompatible", .srs = "EPSG:3857" };
static char file[] = "/tmp/mapcache-micro-XXXXXX";

static void
fill_products(void)
{
    sqlite3 *db;
    close(mkstemp(file));
    sqlite3_open(file, &db);
    sqlite3_exec(db,
                 "BEGIN; CREATE TABLE catalog(subtile TEXT, keyword TEXT, minx REAL, miny REAL, maxx REAL, maxy REAL)",
                 NULL, NULL, NULL);
    for (int i = 0; i < PRODUCTS; i++) {
        int x = i * 7919 % 20000, y = i * 104729 % 20000;
        const char *sql =
            apr_psprintf(pool, "INSERT INTO catalog VALUES('usa_%08x_0c1d_4e2f_8a3b_%012x','usa,america',%d,%d,%d,%d)",
                         i * 77, i, x, y, x + 100, y + 100);
        sqlite3_exec(db, sql, NULL, NULL, NULL);
    }
    sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
    sqlite3_close(db);
    usleep(100000);
}

static mc_dimension *
declare_dimension(const char *where)
{
    mc_node *root;
    mc_build build = { .pool = pool, .diagnostics = mc_diagnostics_create(pool) };
    const char *text = apr_psprintf(
        pool,
        "<mapcache><dimension name='product' type='sqlite' default='%%'><dbfile>%s</dbfile><validate_query><![CDATA["
        "SELECT distinct(subtile) FROM catalog WHERE keyword LIKE '%%' || :dim || '%%'%s]]></validate_query>"
        "<list_query>SELECT subtile FROM catalog</list_query></dimension></mapcache>",
        file, where);
    exit_on_error(mc_config_parse_text(&root, "micro", text, strlen(text), NULL, pool));
    mc_dimension *dimension = mc_dimension_from_config(root->children, &build);
    exit_on_error(mc_diagnostics_error(build.diagnostics, pool));
    return dimension;
}

/* One map in a request of its own. */
static double
time_map(mc_dimension *dimension, bool together)
{
    apr_array_header_t *values[TILES];
    mc_dimension_query queries[TILES];
    mc_extent extents[TILES];
    mc_ctx ctx = { .process = &process, .log = &mc_log_stderr };
    apr_pool_create(&ctx.pool, pool);
    for (int i = 0; i < TILES; i++) {
        double x = i % 5 * 4000, y = i / 5 * 4000;
        extents[i] = (mc_extent){ x, y, x + 4000, y + 4000 };
        queries[i] = (mc_dimension_query){ "catalog", &grid, &extents[i], "%" };
    }
    double began = read_clock_us(CLOCK_PROCESS_CPUTIME_ID);
    if (together)
        exit_on_error(mc_dimension_resolve_all(values, dimension, queries, TILES, &ctx, ctx.pool));
    else
        for (int i = 0; i < TILES; i++)
            exit_on_error(mc_dimension_resolve(&values[i], dimension, &queries[i], &ctx, ctx.pool));
    double took = read_clock_us(CLOCK_PROCESS_CPUTIME_ID) - began;
    apr_pool_destroy(ctx.pool);
    return took;
}

static void
report_queries(const char *what, mc_dimension *dimension, bool together, bool remembered, int rounds)
{
    double best = 1e12;
    for (int i = 0; i < rounds; i++) {
        if (!remembered)
            mc_clock_cache_remove_if(process.query_results, NULL, NULL);
        double took = time_map(dimension, together);
        if (i > 0 && took < best)
            best = took;
    }
    printf("%-40s %9.1f us a map, %7.2f us a tile\n", what, best, best / TILES);
}

int
main(int count, char **arguments)
{
    int rounds = count > 1 ? atoi(arguments[1]) : 200;
    apr_initialize();
    apr_pool_create(&pool, NULL);
    fill_products();
    process.handles = mc_handles_create(16);
    process.query_results = mc_clock_cache_create(8 << 20);
    mc_dimension *all = declare_dimension("");
    mc_dimension *near = declare_dimension(" AND miny <= :maxy AND maxy >= :miny AND minx <= :maxx AND maxx >= :minx");
    report_queries("no filter, asked", all, false, false, rounds);
    report_queries("no filter, remembered", all, false, true, rounds);
    report_queries("filter, asked one by one", near, false, false, rounds);
    report_queries("filter, asked together", near, true, false, rounds);
    report_queries("filter, remembered", near, true, true, rounds);
    mc_clock_cache_destroy(process.query_results);
    mc_handles_destroy(process.handles);
    unlink(file);
    apr_terminate();
    return 0;
}
