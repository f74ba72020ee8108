/* Microseconds of processor time of one mc_cache_get of a stored tile of 17 KB, the best of several rounds:
 * `micro_cache [rounds [type]]`. */
#include <apr_general.h>
#include <apr_hash.h>
#include <apr_strings.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/metrics.h"
#include "cache/cache_base.h"
#include "cache/memory.h"
#include "measure.h"
#include "memory/shared_cache.h"

enum { TILE_BYTES = 17000, COLUMNS = 64, ROWS = 32, GETS = COLUMNS * ROWS, THREADS = 50 };

static mc_level levels[] = { { 64000, 1, 1 },  { 32000, 2, 2 },  { 16000, 4, 4 }, { 8000, 8, 8 },
                             { 4000, 16, 16 }, { 2000, 32, 32 }, { 1000, 64, 64 } };
static mc_grid grid = {
    .name = "GoogleMapsCompatible", .tile_width = 256, .tile_height = 256, .level_count = 7, .levels = levels
};
static apr_pool_t *pool;
static mc_process process;
static mc_ctx ctx;
static struct mc_shared_cache *shared;
static char folder[] = "/tmp/mapcache-micro-XXXXXX";

/* What a cache is made of stands before it in `others`, or "". */
static mc_cache *
create_cache_of_type(const char *type, const char *inner, const char *others)
{
    mc_node *root;
    mc_build build = { .pool = pool, .diagnostics = mc_diagnostics_create(pool), .caches = apr_hash_make(pool) };
    const char *text =
        apr_psprintf(pool, "<mapcache>%s<cache name='c' type='%s'>%s</cache></mapcache>", others, type, inner);
    exit_on_error(mc_config_parse_text(&root, "micro", text, strlen(text), NULL, pool));
    mc_cache *cache = NULL;
    for (const mc_node *node = root->children; node != NULL; node = node->next) {
        cache = mc_cache_from_config(node, &build);
        exit_on_error(mc_diagnostics_error(build.diagnostics, pool));
        apr_hash_set(build.caches, cache->name, APR_HASH_KEY_STRING, cache);
    }
    return cache;
}

static mc_tile_key
key_of(int index)
{
    return (mc_tile_key){ .tileset = "streets",
                          .grid = &grid,
                          .z = 6,
                          .x = index % COLUMNS,
                          .y = index / COLUMNS,
                          .extension = "jpg",
                          .mime = "image/jpeg",
                          .renderable = true };
}

static void
fill_cache(mc_cache *cache)
{
    static uint8_t bytes[TILE_BYTES] = { 0xff, 0xd8, 0xff };
    mc_tile_write row[COLUMNS];
    apr_pool_t *scratch;
    apr_pool_create(&scratch, pool);
    ctx.pool = scratch;
    for (int i = 0; i < GETS; i++) {
        memcpy(bytes + 16, &i, sizeof(i));
        row[i % COLUMNS] =
            (mc_tile_write){ .key = key_of(i), .data = mc_buf_attach(mc_buf_copy(bytes, TILE_BYTES), scratch) };
        if (i % COLUMNS == COLUMNS - 1) {
            exit_on_error(mc_cache_put(cache, row, COLUMNS, &ctx));
            apr_pool_clear(scratch);
        }
    }
    apr_pool_destroy(scratch);
    ctx.pool = pool;
}

/* Each tile once a round, in an order that jumps; a request's pool is cleared after each `series` of gets. */
static void
measure_reads(const char *name, mc_cache *cache, int series, int rounds)
{
    double best = 1e12;
    apr_pool_t *scratch;
    apr_pool_create(&scratch, pool);
    ctx.pool = scratch;
    for (int i = 0; i < rounds; i++) {
        double begin = read_clock_us(CLOCK_PROCESS_CPUTIME_ID);
        for (int j = 0; j < GETS; j++) {
            if (series > 1 && j % series == 0)
                mc_cache_reads_begin(&ctx);
            mc_tile *tile;
            mc_tile_key key = key_of(j * 997 % GETS);
            exit_on_error(mc_cache_get(&tile, cache, &key, &ctx, scratch));
            if (tile == NULL || mc_tile_tag(tile) == 0)
                exit(1);
            if ((j + 1) % series != 0)
                continue;
            if (series > 1)
                mc_cache_reads_end(&ctx);
            apr_pool_clear(scratch);
        }
        double spent = (read_clock_us(CLOCK_PROCESS_CPUTIME_ID) - begin) / GETS;
        best = spent < best ? spent : best;
    }
    apr_pool_destroy(scratch);
    ctx.pool = pool;
    printf("%-44s %10.2f us\n", name, best);
}

typedef struct thread_reads {
    mc_cache *cache;
    pthread_barrier_t *begin;
    int first;
} thread_reads;

/* As many requests as fit into one round, of one of the threads. */
static void *
read_in_thread(void *baton)
{
    const thread_reads *task = baton;
    apr_pool_t *scratch;
    if (apr_pool_create_unmanaged_ex(&scratch, NULL, NULL) != APR_SUCCESS)
        exit(1);
    mc_ctx own = ctx;
    own.pool = scratch;
    pthread_barrier_wait(task->begin);
    for (int j = task->first; j < task->first + GETS / THREADS * 4; j++) {
        mc_tile *tile;
        mc_tile_key key = key_of(j * 997 % GETS);
        exit_on_error(mc_cache_get(&tile, task->cache, &key, &own, scratch));
        if (tile == NULL)
            exit(1);
        apr_pool_clear(scratch);
    }
    apr_pool_destroy(scratch);
    return NULL;
}

/* The same by many threads at a time, as those of a child of Apache. */
static void
measure_thread_reads(const char *name, mc_cache *cache, int rounds)
{
    double best = 1e12;
    for (int i = 0; i < rounds; i++) {
        pthread_t threads[THREADS];
        thread_reads tasks[THREADS];
        pthread_barrier_t begin;
        pthread_barrier_init(&begin, NULL, THREADS);
        double before = read_clock_us(CLOCK_PROCESS_CPUTIME_ID);
        for (int j = 0; j < THREADS; j++) {
            tasks[j] = (thread_reads){ cache, &begin, j * 41 };
            if (pthread_create(&threads[j], NULL, read_in_thread, &tasks[j]) != 0)
                exit(1);
        }
        for (int j = 0; j < THREADS; j++)
            pthread_join(threads[j], NULL);
        double spent = (read_clock_us(CLOCK_PROCESS_CPUTIME_ID) - before) / (GETS / THREADS * 4 * THREADS);
        best = spent < best ? spent : best;
        pthread_barrier_destroy(&begin);
    }
    printf("%-44s %10.2f us\n", name, best);
}

/* `what` begins with the type. */
static void
compare_reads_of(const char *what, const char *wanted, const char *inner, const char *others, int rounds)
{
    const char *type = apr_pstrndup(pool, what, strcspn(what, " "));
    if (wanted != NULL && strcmp(type, wanted) != 0)
        return;
    mc_cache *cache = create_cache_of_type(type, inner, others);
    fill_cache(cache);
    exit_on_error(mc_cache_finish(cache, &ctx));
    usleep(100000); /* so that it may be remembered */
    struct mc_memory *memory = process.memory;
    process.memory = NULL;
    measure_reads(apr_psprintf(pool, "%s, read", what), cache, 1, rounds);
    measure_reads(apr_psprintf(pool, "%s, read, 16 for a map", what), cache, 16, rounds);
    measure_thread_reads(apr_psprintf(pool, "%s, read by %d threads", what, THREADS), cache, rounds);
    process.memory = memory;
    cache->remember = false; /* directories stay in memory, tiles do not */
    measure_reads(apr_psprintf(pool, "%s, read, memory for all else", what), cache, 1, rounds);
    cache->remember = true;
    measure_reads(apr_psprintf(pool, "%s, from memory", what), cache, 1, rounds);
    measure_reads(apr_psprintf(pool, "%s, from memory, 16 for a map", what), cache, 16, rounds);
    mc_memory_share(memory, shared);
    measure_reads(apr_psprintf(pool, "%s, from shared memory", what), cache, 1, rounds);
    measure_reads(apr_psprintf(pool, "%s, from shared memory, 16 for a map", what), cache, 16, rounds);
    mc_memory_share(memory, NULL);
}

static void
compare_reads(const char *what, const char *wanted, const char *inner, int rounds)
{
    compare_reads_of(what, wanted, inner, "", rounds);
}

int
main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 20;
    const char *wanted = argc > 2 ? argv[2] : NULL;
    mallopt(M_TRIM_THRESHOLD,
            4 << 20); /* as in a server (lib/server/runtime.c): else tiles cost page faults by chance */
    apr_initialize();
    apr_pool_create(&pool, NULL);
    if (mkdtemp(folder) == NULL)
        return 1;
    process = (mc_process){ .handles = mc_handles_create(64),
                            .memory = mc_memory_create(256 << 20),
                            .metrics = mc_metrics_create() };
    shared = mc_shared_cache_create(256 << 20);
    ctx = (mc_ctx){ .pool = pool, .process = &process, .log = &mc_log_stderr };
    compare_reads("sqlite3", wanted, apr_psprintf(pool, "<dbfile>%s/s.db</dbfile>", folder), rounds);
    process.lasting = true; /* as a server, which uses WAL for files that it writes */
    compare_reads("sqlite3 in WAL", wanted, apr_psprintf(pool, "<dbfile>%s/w.db</dbfile>", folder), rounds);
    process.lasting = false;
    compare_reads("sqlite3 deduplicated", wanted,
                  apr_psprintf(pool, "<dbfile>%s/d.db</dbfile><deduplicate>true</deduplicate>", folder), rounds);
    compare_reads("sqlite3 with max_size", wanted,
                  apr_psprintf(pool, "<dbfile>%s/q.db</dbfile><max_size>1T</max_size>", folder), rounds);
    compare_reads("mbtiles", wanted, apr_psprintf(pool, "<dbfile>%s/m.db</dbfile>", folder), rounds);
    compare_reads("pmtiles", wanted, apr_psprintf(pool, "<file>%s/p.pmtiles</file>", folder), rounds);
    compare_reads("tiff", wanted, apr_psprintf(pool, "<template>%s/{z}-{x}-{y}.tif</template>", folder), rounds);
    compare_reads("lmdb", wanted, apr_psprintf(pool, "<base>%s/lmdb</base>", folder), rounds);
    compare_reads("bdb", wanted, apr_psprintf(pool, "<base>%s/bdb</base>", folder), rounds);
    compare_reads("disk", wanted, apr_psprintf(pool, "<base>%s/disk</base>", folder), rounds);
    compare_reads("disk with max_size", wanted,
                  apr_psprintf(pool, "<base>%s/kept</base><max_size>1T</max_size>", folder), rounds);
    compare_reads_of("multitier", wanted, "<cache>near</cache><cache>far</cache>",
                     apr_psprintf(pool,
                                  "<cache name='near' type='disk'><base>%s/near</base></cache>"
                                  "<cache name='far' type='disk'><base>%s/far</base></cache>",
                                  folder, folder),
                     rounds);
    mc_memory_destroy(process.memory);
    mc_shared_cache_destroy(shared);
    mc_handles_destroy(process.handles);
    mc_metrics_destroy(process.metrics);
    const char *command = apr_psprintf(pool, "rm -rf %s", folder);
    int result = system(command);
    apr_terminate();
    return result == 0 ? 0 : 1;
}
