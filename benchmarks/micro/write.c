/*
 * Tiles written a second by one thread, as a seeder does it (metatiles of 8x8), by how many a transaction has:
 * `micro_write [tiles [type [inner XML [bytes [shared]]]]]`. FOLDER in the XML is a new folder that goes at the end.
 * shared: somebody else has the file FOLDER/x.db open all the time. Time is of the wall, as commits wait for the disk.
 */
#include <apr_general.h>
#include <apr_hash.h>
#include <apr_strings.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cache/cache_base.h"
#include "db/postgres/postgres.h"
#include "measure.h"
#include "text/text.h"

enum { COLUMNS = 256 };

static mc_level levels[] = { { 1000, 1, 1 }, { 500, COLUMNS, 1 << 20 } };
static mc_grid grid = { .name = "GoogleMapsCompatible",
                        .tile_width = 256,
                        .tile_height = 256,
                        .origin = MC_TOP_LEFT,
                        .level_count = 2,
                        .levels = levels };
static apr_pool_t *pool;
static mc_process process;
static mc_ctx ctx;
static int tile_bytes = 16384;

static mc_cache *
create_store(const char *type, const char *inner)
{
    mc_node *root;
    mc_build build = { .pool = pool, .diagnostics = mc_diagnostics_create(pool), .caches = apr_hash_make(pool) };
    const char *text = apr_psprintf(pool, "<mapcache><cache name='c' type='%s'>%s</cache></mapcache>", type, inner);
    exit_on_error(mc_config_parse_text(&root, "micro", text, strlen(text), NULL, pool));
    mc_cache *cache = mc_cache_from_config(root->children, &build);
    exit_on_error(mc_diagnostics_error(build.diagnostics, pool));
    return cache;
}

static mc_tile_write
tile_to_write(int number, apr_pool_t *scratch)
{
    mc_buf *buf = mc_buf_create((size_t)tile_bytes, (size_t)tile_bytes);
    buf->size = (size_t)tile_bytes;
    uint32_t state = (uint32_t)number * 2654435761u + 1;
    for (int i = 0; i + 4 <= tile_bytes; i += 4) {
        state = state * 1664525u + 1013904223u;
        memcpy(buf->data + i, &state, 4);
    }
    mc_tile_write put = { .data = mc_buf_attach(buf, scratch) };
    put.key = (mc_tile_key){ .tileset = "streets",
                             .grid = &grid,
                             .z = 1,
                             .x = number / 64 % (COLUMNS / 8) * 8 + number % 8,
                             .y = number / 64 / (COLUMNS / 8) * 8 + number / 8 % 8,
                             .extension = "jpg",
                             .mime = "image/jpeg",
                             .renderable = true };
    return put;
}

static void
measure_writes(mc_cache *cache, int tiles, int together, int first)
{
    apr_pool_t *scratch;
    apr_pool_create(&scratch, pool);
    ctx.pool = scratch;
    double wall = 0, cpu = 0;
    mc_tile_write *puts = malloc(sizeof(*puts) * (size_t)together);
    for (int i = 0; i < tiles; i += together) {
        for (int j = 0; j < together; j++)
            puts[j] = tile_to_write(first + i + j, scratch);
        double wall_before = read_clock_seconds(CLOCK_MONOTONIC),
               cpu_before = read_clock_seconds(CLOCK_PROCESS_CPUTIME_ID);
        ctx.writes = mc_cache_writes_create(scratch);
        exit_on_error(mc_cache_put(cache, puts, together, &ctx));
        exit_on_error(mc_cache_writes_flush(&ctx));
        ctx.writes = NULL;
        wall += read_clock_seconds(CLOCK_MONOTONIC) - wall_before;
        cpu += read_clock_seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu_before;
        apr_pool_clear(scratch);
    }
    free(puts);
    printf("%4d tiles a transaction: %8.0f tiles/s, %6.1f us of processor a tile\n", together, tiles / wall,
           cpu / tiles * 1e6);
}

int
main(int argc, const char *const *argv)
{
    static const int sizes[] = { 16, 64, 256, 1000 };
    char folder[] = "/var/tmp/mapcache-micro-XXXXXX";
    int tiles = argc > 1 ? atoi(argv[1]) : 10000;
    const char *type = argc > 2 ? argv[2] : "sqlite3";
    apr_initialize();
    apr_pool_create(&pool, NULL);
    if (mkdtemp(folder) == NULL)
        return 1;
    const char *inner = argc > 3 ? argv[3] : "<dbfile>FOLDER/{tileset}.sqlite3</dbfile>";
    inner = mc_replace_all(inner, "FOLDER", folder, pool);
    tile_bytes = argc > 4 ? atoi(argv[4]) : tile_bytes;
    sqlite3 *other = NULL;
    process.handles = mc_handles_create(16);
    process.postgres = mc_postgres_create(2, 1, APR_USEC_PER_SEC, true);
    ctx.process = &process;
    ctx.pool = pool;
    ctx.log = &mc_log_stderr;
    mc_cache *cache = create_store(type, inner);
    if (argc > 5) {
        mc_tile_write first = tile_to_write(1 << 27, pool);
        exit_on_error(mc_cache_put(cache, &first, 1, &ctx));
        if (sqlite3_open(apr_pstrcat(pool, folder, "/x.db", NULL), &other) != SQLITE_OK ||
            sqlite3_exec(other, "SELECT count(*) FROM sqlite_master", NULL, NULL, NULL) != SQLITE_OK)
            return 1;
    }
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
        measure_writes(cache, tiles / sizes[i] * sizes[i], sizes[i], (int)i * tiles);
    sqlite3_close(other);
    double before = read_clock_seconds(CLOCK_MONOTONIC);
    mc_handles_destroy(process.handles);
    printf("closed after %.1f ms\n", (read_clock_seconds(CLOCK_MONOTONIC) - before) * 1e3);
    mc_postgres_destroy(process.postgres);
    return system(apr_pstrcat(pool, "rm -rf ", folder, NULL)) == 0 ? 0 : 1;
}
