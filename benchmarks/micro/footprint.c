/*
 * Microseconds of processor time of batches of footprints over many product files, as a map of a catalogue has them:
 * `micro_footprint [folder [tiles of a side [level]]]`. The folder holds PRODUCT.sqlite3 files of the standard schema
 * (as benchmarks/catalog makes them); without one, 401 small files are generated. Cold: nothing in memory and no file
 * open; open: files open, nothing in memory; warm: everything in memory.
 */
#include <apr_general.h>
#include <apr_hash.h>
#include <apr_strings.h>
#include <glob.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/metrics.h"
#include "cache/cache_base.h"
#include "cache/memory.h"
#include "footprint/footprint.h"
#include "measure.h"

enum { PRODUCTS = 401, LEVELS = 14, ROUNDS = 10 };

static mc_level levels[LEVELS];
static mc_grid grid = {
    .name = "GoogleMapsCompatible", .tile_width = 256, .tile_height = 256, .level_count = LEVELS, .levels = levels
};
static apr_pool_t *pool;
static mc_process process;
static mc_ctx ctx;
static char folder[] = "/tmp/mapcache-micro-XXXXXX";
static const char **names;
static int name_count;

static void
run_sql(sqlite3 *db, const char *sql)
{
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK)
        return;
    fprintf(stderr, "%s\n", sqlite3_errmsg(db));
    exit(1);
}

/* A patch of 3 pixels at level 2, twice as wide with each level, up to level 7. */
static void
put_tiles(sqlite3 *db, int product)
{
    apr_hash_t *formats = apr_hash_make(pool);
    mc_format_builtins(formats, pool);
    sqlite3_stmt *put;
    sqlite3_prepare_v2(db, "INSERT INTO tiles VALUES('catalog', 'G', ?, ?, ?, ?, '', '')", -1, &put, NULL);
    for (int z = 0; z <= 7; z++) {
        mc_pixels *pixels;
        exit_on_error(mc_pixels_create(&pixels, 256, 256, true, pool));
        int size = z < 2 ? 3 : 3 << (z - 2);
        for (int y = 0; y < size; y++)
            for (int x = 0; x < size; x++)
                memset(pixels->data + (size_t)(y + 70) * pixels->stride + (size_t)(x + 60) * 4, 255, 4);
        pixels->opacity = MC_OPACITY_UNKNOWN;
        mc_buf *png;
        exit_on_error(mc_format_encode(&png, apr_hash_get(formats, "PNG", APR_HASH_KEY_STRING), pixels, MC_FOR_STORE,
                                       &ctx, pool));
        mc_pixels_unref(pixels);
        sqlite3_bind_int(put, 1, product % (1 << z));
        sqlite3_bind_int(put, 2, product / 7 % (1 << z));
        sqlite3_bind_int(put, 3, z);
        sqlite3_bind_blob(put, 4, png->data, (int)png->size, SQLITE_STATIC);
        sqlite3_step(put);
        sqlite3_reset(put);
    }
    sqlite3_finalize(put);
}

static void
generate_products(void)
{
    for (int i = 0; i < PRODUCTS; i++) {
        sqlite3 *db;
        sqlite3_open(apr_psprintf(pool, "%s/product_%03d.sqlite3", folder, i), &db);
        run_sql(db, "PRAGMA synchronous=off; BEGIN; CREATE TABLE tiles(tileset text, grid text, x integer, y integer,"
                    " z integer, data blob, dim text, ctime datetime, primary key(tileset, grid, x, y, z, dim))");
        put_tiles(db, i);
        run_sql(db, "CREATE UNIQUE INDEX xyz ON tiles(x, y, z); COMMIT");
        sqlite3_close(db);
    }
}

static void
find_names(const char *data)
{
    glob_t found;
    glob(apr_pstrcat(pool, data, "/*.sqlite3", NULL), 0, NULL, &found);
    names = apr_palloc(pool, sizeof(*names) * (found.gl_pathc + 1));
    for (size_t i = 0; i < found.gl_pathc; i++) {
        const char *file = strrchr(found.gl_pathv[i], '/') + 1;
        names[name_count++] = apr_pstrmemdup(pool, file, strlen(file) - strlen(".sqlite3"));
    }
    globfree(&found);
}

static mc_cache *
open_measured_cache(const char *data)
{
    mc_node *root;
    mc_build build = { .pool = pool, .diagnostics = mc_diagnostics_create(pool), .caches = apr_hash_make(pool) };
    const char *text =
        apr_psprintf(pool,
                     "<mapcache><cache name='c' type='sqlite3'><dbfile>%s/{dim:product}.sqlite3</dbfile><queries><get>"
                     "SELECT data FROM tiles WHERE x=:x AND y=:y AND z=:z</get></queries></cache></mapcache>",
                     data);
    exit_on_error(mc_config_parse_text(&root, "micro", text, strlen(text), NULL, pool));
    mc_cache *cache = mc_cache_from_config(root->children, &build);
    exit_on_error(mc_diagnostics_error(build.diagnostics, pool));
    return cache;
}

/* side x side tiles of a level, of every product; tile by tile, or product by product. */
static mc_footprint_want *
wants_of(int z, int side, bool by_tile, apr_pool_t *request)
{
    int most = 1 << z < side ? 1 << z : side;
    int tiles = most * most;
    mc_footprint_want *wants = apr_pcalloc(request, sizeof(*wants) * (size_t)(tiles * name_count));
    mc_dimension_value *values = apr_pcalloc(request, sizeof(*values) * (size_t)name_count);
    for (int i = 0; i < name_count; i++)
        values[i] = (mc_dimension_value){ "product", names[i], true };
    for (int i = 0; i < tiles * name_count; i++) {
        int product = by_tile ? i % name_count : i / tiles, tile = by_tile ? i / name_count : i % tiles;
        wants[i].key = (mc_tile_key){ .tileset = "catalog",
                                      .grid = &grid,
                                      .z = z,
                                      .x = tile % most + ((1 << z) - most) / 2,
                                      .y = tile / most + ((1 << z) - most) / 2,
                                      .dimension_count = 1,
                                      .dimensions = &values[product],
                                      .extension = "png" };
    }
    return wants;
}

typedef struct spent {
    double look, fetch;
    int wants, fetched, shown;
} spent;

static spent
time_request(mc_cache *cache, int z, int side, bool by_tile)
{
    apr_pool_t *scratch;
    apr_pool_create(&scratch, NULL);
    ctx.pool = scratch;
    int most = 1 << z < side ? 1 << z : side;
    spent spent = { .wants = most * most * name_count };
    mc_footprint_want *wants = wants_of(z, side, by_tile, scratch);
    double begin = read_clock_us(CLOCK_PROCESS_CPUTIME_ID);
    mc_footprints *batch;
    exit_on_error(mc_footprints_look(&batch, cache, wants, spent.wants, &ctx, scratch));
    spent.look = read_clock_us(CLOCK_PROCESS_CPUTIME_ID) - begin;
    begin = read_clock_us(CLOCK_PROCESS_CPUTIME_ID);
    mc_cache_reads_begin(&ctx);
    for (int i = 0; i < spent.wants; i++) {
        int at = by_tile ? i % name_count * most * most + i / name_count : i; /* file by file */
        at = by_tile ? (i % (most * most)) * name_count + i / (most * most) : at;
        if (!wants[at].known) {
            spent.fetched++;
            exit_on_error(mc_footprints_fetch(batch, at, &ctx));
        }
        spent.shown += wants[at].footprint != NULL;
    }
    mc_cache_reads_end(&ctx);
    spent.fetch = read_clock_us(CLOCK_PROCESS_CPUTIME_ID) - begin;
    apr_pool_destroy(scratch);
    ctx.pool = pool;
    return spent;
}

static void
print_spent(const char *what, int z, const spent *spent)
{
    printf("z%-2d %-26s %6d wants, %5d fetched, %5d shown: look %8.1f us, fetch %9.1f us\n", z, what, spent->wants,
           spent->fetched, spent->shown, spent->look, spent->fetch);
}

enum state { COLD, OPEN, WARM };

static spent
best_of(mc_cache *cache, int z, int side, bool by_tile, enum state state)
{
    spent best = { .look = 1e12 };
    for (int i = 0; i < (state == WARM ? 20 * ROUNDS : ROUNDS); i++) {
        if (state == COLD) {
            mc_handles_destroy(process.handles);
            process.handles = mc_handles_create(1000);
        }
        if (state != WARM) {
            mc_memory_destroy(process.memory);
            process.memory = mc_memory_create(64 << 20);
        }
        spent one = time_request(cache, z, side, by_tile);
        best = one.look + one.fetch < best.look + best.fetch ? one : best;
    }
    return best;
}

static void
measure_footprints(mc_cache *cache, int z, int side)
{
    spent spent = best_of(cache, z, side, true, COLD);
    print_spent("cold", z, &spent);
    spent = best_of(cache, z, side, true, OPEN);
    print_spent("files open", z, &spent);
    spent = best_of(cache, z, side, true, WARM);
    print_spent("warm, tile by tile", z, &spent);
    spent = best_of(cache, z, side, false, WARM);
    print_spent("warm, product by product", z, &spent);
    printf("    memory %.0f KB\n", (double)mc_memory_bytes(process.memory) / 1024);
}

int
main(int argc, char **argv)
{
    apr_initialize();
    apr_pool_create(&pool, NULL);
    for (int z = 0; z < LEVELS; z++)
        levels[z] = (mc_level){ 156543.03 / (1 << z), 1 << z, 1 << z };
    process = (mc_process){ .metrics = mc_metrics_create() };
    ctx = (mc_ctx){ .pool = pool, .process = &process, .log = &mc_log_stderr };
    const char *data = argc > 1 ? argv[1] : NULL;
    if (data == NULL) {
        if (mkdtemp(folder) == NULL)
            return 1;
        process.handles = mc_handles_create(16);
        generate_products();
        mc_handles_destroy(process.handles);
        process.handles = NULL;
        data = folder;
        usleep(100000);
    }
    find_names(data);
    mc_cache *cache = open_measured_cache(data);
    int only = argc > 3 ? atoi(argv[3]) : -1;
    for (int z = only < 0 ? 0 : only; z <= (only < 0 ? 7 : only); z++)
        measure_footprints(cache, z, argc > 2 ? atoi(argv[2]) : 4);
    mc_memory_destroy(process.memory);
    mc_handles_destroy(process.handles);
    mc_metrics_destroy(process.metrics);
    if (data == folder && system(apr_pstrcat(pool, "rm -r ", folder, NULL)) != 0)
        return 1;
    apr_pool_destroy(pool);
    apr_terminate();
    return 0;
}
