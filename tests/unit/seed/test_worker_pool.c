/* The seeder's decisions and its workers, threads and processes alike, over a cache in memory that processes share. */
#include "unit.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "mapcache/seed.h"
#include "mapcache/trace.h"

enum { LEVELS = 5, SIDE = 16, TILE = 8 };

typedef struct cell {
    _Atomic int stored, puts;
    apr_time_t mtime;
} cell;

/* What the "cache" holds and what has been asked for; shared with worker processes. */
typedef struct store {
    cell cells[LEVELS][SIDE][SIDE];
    _Atomic int renders;
    int fail_z, fail_x, fail_y; /* a metatile whose render fails; -1: none */
    bool deadly;                /* the source kills its process */
    bool deadly_once;           /* the first map kills its process, others take their time */
    bool hangs;                 /* the source answers when nobody wants it any more */
    bool away;                  /* the source refuses */
    bool locked;                /* the cache is another's as long as somebody wants it */
    _Atomic int waiting;        /* renders that hang */
} store;

typedef struct test_cache {
    mc_cache cache;
    store *store;
} test_cache;

static store *origin_store; /* of the source */

static cell *
cell_of(mc_cache *cache, const mc_tile_key *key)
{
    return &((test_cache *)cache)->store->cells[key->z][key->x][key->y];
}

static mc_error *
test_get(mc_tile **tile, mc_cache *cache, const mc_tile_key *key, mc_ctx *job, apr_pool_t *result_pool)
{
    (void)job;
    const cell *cell = cell_of(cache, key);
    *tile = NULL;
    if (cell->stored) {
        *tile = apr_pcalloc(result_pool, sizeof(**tile));
        (*tile)->data = mc_buf_attach(mc_buf_copy("tile", 4), result_pool);
        (*tile)->mtime = cell->mtime;
    }
    return MC_OK;
}

static mc_error *
test_exists(bool *exists, mc_cache *cache, const mc_tile_key *key, mc_ctx *job)
{
    (void)job;
    *exists = cell_of(cache, key)->stored;
    return MC_OK;
}

static mc_error *
test_put(mc_cache *cache, const mc_tile_write *tiles, int count, mc_ctx *job)
{
    store *store = ((test_cache *)cache)->store;
    if (store->locked) {
        for (store->waiting++; !job->abandoned(job->abandoned_baton);)
            apr_sleep(10000);
        return mc_error_create(job->pool, MC_ERR_IO, "the store is locked");
    }
    for (int i = 0; i < count; i++) {
        cell *cell = cell_of(cache, &tiles[i].key);
        cell->stored = 1;
        cell->puts++;
        cell->mtime = apr_time_now();
    }
    return MC_OK;
}

static mc_error *
test_remove(mc_cache *cache, const mc_tile_key *key, mc_ctx *job)
{
    (void)job;
    cell_of(cache, key)->stored = 0;
    return MC_OK;
}

static const mc_cache_ops cache_ops = {
    .type = "test", .get = test_get, .exists = test_exists, .put = test_put, .remove = test_remove
};

static mc_error *
test_render(mc_rendered *map, mc_source *source, const mc_render *wanted, mc_ctx *job, apr_pool_t *result_pool)
{
    (void)source;
    static const uint8_t colour[4] = { 10, 20, 30, 255 };
    int before = origin_store->renders++;
    if (origin_store->deadly || (origin_store->deadly_once && before == 0))
        raise(SIGKILL);
    if (origin_store->deadly_once)
        apr_sleep(50000);
    if (origin_store->away)
        return mc_error_create(result_pool, MC_ERR_UPSTREAM, "the origin is away");
    if (origin_store->hangs) {
        MC_SPAN(job, "mapcache_http_request");
        for (origin_store->waiting++; !job->abandoned(job->abandoned_baton);)
            apr_sleep(10000);
        return mc_error_create(result_pool, MC_ERR_UNAVAILABLE, "nobody wants it");
    }
    mc_extent failing = { -1, -1, -1, -1 };
    if (origin_store->fail_z >= 0)
        failing = mc_grid_tile_extent(wanted->grid, origin_store->fail_z, origin_store->fail_x, origin_store->fail_y);
    if (wanted->box.minx == failing.minx && wanted->box.miny == failing.miny)
        return mc_error_create(result_pool, MC_ERR_CORRUPT, "the origin is unwell");
    MC_TRY(mc_pixels_create(&map->pixels, wanted->width, wanted->height, false, result_pool));
    mc_pixels_attach(map->pixels, result_pool);
    mc_pixels_fill(map->pixels, colour);
    return MC_OK;
}

static const mc_source_ops source_ops = { .type = "test", .render = test_render };

static mc_level levels[LEVELS];
static mc_tile_range limits[LEVELS];
static mc_grid grid;
static mc_grid_link grid_link, *links[1] = { &grid_link };
static mc_source source;
static mc_tileset tileset, other;
static test_cache cache, other_cache;

static store *
shared_store(void)
{
    store *made = mmap(NULL, sizeof(*made), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(made, MAP_FAILED);
    made->fail_z = -1;
    return made;
}

static void
set_up(void)
{
    for (int z = 0; z < LEVELS; z++) {
        levels[z] = (mc_level){ 128.0 / (TILE << z), 1 << z, 1 << z };
        limits[z] = (mc_tile_range){ 0, 0, 1 << z, 1 << z };
    }
    grid = (mc_grid){ .name = "g",
                      .srs = "EPSG:3857",
                      .extent = { 0, 0, 128, 128 },
                      .tile_width = TILE,
                      .tile_height = TILE,
                      .level_count = LEVELS,
                      .levels = levels };
    grid_link = (mc_grid_link){
        .grid = &grid, .extent = grid.extent, .maxzoom = LEVELS - 1, .max_cached_zoom = -1, .limits = limits
    };
    source = (mc_source){ .ops = &source_ops, .name = "test", .deadline = 10 };
    cache = (test_cache){ { .ops = &cache_ops, .name = "test" }, shared_store() };
    other_cache = (test_cache){ { .ops = &cache_ops, .name = "other" }, shared_store() };
    origin_store = cache.store;
    apr_hash_t *formats = apr_hash_make(pool);
    mc_format_builtins(formats, pool);
    tileset = (mc_tileset){ .name = "test",
                            .cache = &cache.cache,
                            .source = &source,
                            .links = links,
                            .link_count = 1,
                            .format = apr_hash_get(formats, "PNG", APR_HASH_KEY_STRING),
                            .metatile_columns = 2,
                            .metatile_rows = 2 };
    other = tileset;
    other.name = "other";
    other.cache = &other_cache.cache;
}

typedef struct tally {
    int done, skipped, failed;
    int tiles, kept; /* of copies */
    mc_seed_result failure;
    double seconds[MC_SEED_PART_COUNT];
} tally;

static tally results;
static mc_process nothing;

static mc_error *
open_process(mc_process **out, void *baton, apr_pool_t *result_pool)
{
    (void)baton, (void)result_pool;
    *out = &nothing;
    return MC_OK;
}

static void
close_process(mc_process *closed, void *baton)
{
    (void)closed, (void)baton;
}

static void
count_result(void *baton, const mc_seed_result *result)
{
    (void)baton;
    results.done += result->outcome == MC_SEED_DONE;
    results.skipped += result->outcome == MC_SEED_SKIPPED;
    results.tiles += result->outcome == MC_SEED_DONE ? result->tiles : 0;
    results.kept += result->kept;
    for (int i = 0; i < MC_SEED_PART_COUNT; i++)
        results.seconds[i] += (double)result->seconds[i];
    if (result->outcome == MC_SEED_FAILED) {
        results.failed++;
        results.failure = *result;
    }
}

typedef struct feeder {
    mc_seed_worker_pool *worker_pool;
    mc_error *error;
} feeder;

static bool
feed(void *baton, int z, int x, int y)
{
    feeder *feeder = baton;
    feeder->error = mc_seed_submit(feeder->worker_pool, z, x, y, NULL, pool);
    return feeder->error == MC_OK;
}

/* What all worker pools of these tests share. */
static mc_seed_plan
plan_of(int workers)
{
    return (mc_seed_plan){ .task = { .tileset = &tileset, .link = &grid_link },
                           .workers = workers,
                           .log = &mc_log_stderr,
                           .process_open = open_process,
                           .process_close = close_process,
                           .report = count_result };
}

static mc_error *
seed(mc_seed_task task, int workers, bool processes)
{
    mc_seed_plan plan = plan_of(workers);
    plan.task = task;
    plan.task.link = &grid_link;
    plan.task.tileset = &tileset;
    plan.processes = processes;
    mc_seed_area area = { &grid, 0, LEVELS - 1, limits, tileset.metatile_columns, tileset.metatile_rows, NULL, false };
    feeder feeder = { 0 };
    results = (tally){ 0 };
    MC_TRY(mc_seed_worker_pool_start(&feeder.worker_pool, &plan, pool));
    mc_seed_walk(&area, MC_SEED_DOWN, feed, &feeder);
    mc_error *late = mc_seed_finish(feeder.worker_pool, pool);
    return feeder.error != MC_OK ? feeder.error : late;
}

/* How many tiles a store holds, each put `puts` times (0: any number). */
static int
stored(const store *store, int puts)
{
    int count = 0;
    for (int z = 0; z < LEVELS; z++)
        for (int x = 0; x < SIDE; x++)
            for (int y = 0; y < SIDE; y++) {
                const cell *cell = &store->cells[z][x][y];
                count += cell->stored;
                if (cell->stored && puts > 0)
                    ck_assert_int_eq(cell->puts, puts);
            }
    return count;
}

enum { TILES = 1 + 4 + 16 + 64 + 256, METATILES = 1 + 1 + 4 + 16 + 64 };

START_TEST(workers_fill_every_tile_once)
{
    static const struct {
        int workers;
        bool processes;
    } crews[] = { { 1, false }, { 4, false }, { 1, true }, { 3, true } };
    for (int i = 0; i < 4; i++) {
        set_up();
        ck_ok(seed((mc_seed_task){ 0 }, crews[i].workers, crews[i].processes));
        ck_assert_int_eq(results.done, METATILES);
        ck_assert_int_eq(results.skipped + results.failed, 0);
        ck_assert_int_eq(stored(cache.store, 1), TILES);
        ck_assert_int_eq(cache.store->renders, METATILES);
        ck_ok(seed((mc_seed_task){ 0 }, crews[i].workers, crews[i].processes));
        ck_assert_int_eq(results.skipped, METATILES);
        ck_assert_int_eq(cache.store->renders, METATILES);
    }
}
END_TEST

START_TEST(force_draws_again)
{
    set_up();
    ck_ok(seed((mc_seed_task){ 0 }, 2, false));
    ck_ok(seed((mc_seed_task){ .force = true }, 2, false));
    ck_assert_int_eq(results.done, METATILES);
    ck_assert_int_eq(stored(cache.store, 2), TILES);
}
END_TEST

START_TEST(only_older_tiles_are_drawn_again_or_deleted)
{
    set_up();
    ck_ok(seed((mc_seed_task){ 0 }, 2, false));
    apr_time_t limit = apr_time_now() - apr_time_from_sec(100);
    ck_ok(seed((mc_seed_task){ .older = limit }, 2, false));
    ck_assert_int_eq(results.skipped, METATILES);
    cache.store->cells[2][2][0].mtime = limit - 1;
    ck_ok(seed((mc_seed_task){ .older = limit }, 2, false));
    ck_assert_int_eq(results.done, 1);
    ck_assert_int_eq(cache.store->cells[2][3][1].puts, 2);
    ck_assert_int_eq(cache.store->cells[2][1][1].puts, 1);
    cache.store->cells[3][0][0].mtime = limit - 1;
    ck_ok(seed((mc_seed_task){ .mode = MC_SEED_DELETE, .older = limit }, 2, false));
    ck_assert_int_eq(results.done, 1);
    ck_assert_int_eq(stored(cache.store, 0), TILES - 1); /* the other three of its metatile are newer */
}
END_TEST

START_TEST(delete_empties)
{
    set_up();
    ck_ok(seed((mc_seed_task){ 0 }, 2, false));
    ck_ok(seed((mc_seed_task){ .mode = MC_SEED_DELETE }, 2, true));
    ck_assert_int_eq(results.done, METATILES);
    ck_assert_int_eq(stored(cache.store, 0), 0);
    ck_ok(seed((mc_seed_task){ .mode = MC_SEED_DELETE }, 2, false));
    ck_assert_int_eq(results.skipped, METATILES);
}
END_TEST

START_TEST(transfer_copies_what_is_stored_and_draws_nothing)
{
    set_up();
    tileset.metatile_columns = tileset.metatile_rows = 1;
    cache.store->cells[4][7][9].stored = cache.store->cells[0][0][0].stored = 1;
    other_cache.store->cells[0][0][0].stored = 1;
    mc_seed_task task = { .mode = MC_SEED_TRANSFER, .target = &other, .target_link = &grid_link };
    ck_ok(seed(task, 2, false));
    ck_assert_int_eq(results.done, 1);
    ck_assert_int_eq(results.skipped, TILES - 1);
    ck_assert_int_eq(other_cache.store->cells[4][7][9].puts, 1);
    ck_assert_int_eq(other_cache.store->cells[0][0][0].puts, 0);
    ck_assert_int_eq(cache.store->renders, 0);
    task.force = true;
    ck_ok(seed(task, 2, false));
    ck_assert_int_eq(results.done, 2);
    ck_assert_int_eq(other_cache.store->cells[0][0][0].puts, 1);
}
END_TEST

/* Tile by tile, also where a block has some of them. */
START_TEST(a_copy_and_its_comparison_look_at_each_tile)
{
    for (int processes = 0; processes < 2; processes++) {
        set_up();
        tileset.metatile_columns = tileset.metatile_rows = 8;
        cache.store->cells[4][7][9].stored = cache.store->cells[4][3][8].stored = 1;
        cache.store->cells[0][0][0].stored = other_cache.store->cells[0][0][0].stored = 1;
        other_cache.store->cells[4][0][0].stored = 1;
        mc_seed_task task = { .mode = MC_SEED_COPY, .target = &other, .target_link = &grid_link };
        ck_ok(seed(task, 2, processes));
        ck_assert_int_eq(results.done, 1);
        ck_assert_int_eq(results.tiles, 2);
        ck_assert_int_eq(results.kept, 1);
        ck_assert_int_eq(stored(other_cache.store, 0), 4);
        ck_assert_int_eq(other_cache.store->cells[4][7][9].puts, 1);
        ck_assert_int_eq(other_cache.store->cells[0][0][0].puts, 0);
        ck_assert_int_eq(cache.store->renders, 0);
        task.mode = MC_SEED_COMPARE;
        ck_ok(seed(task, 2, processes));
        ck_assert_int_eq(results.failed, 0);
        ck_assert_int_eq(results.tiles, 3);
        other_cache.store->cells[4][7][9].stored = 0;
        ck_ok(seed(task, 2, processes));
        ck_assert_int_eq(results.failed, 1);
        ck_assert_ptr_nonnull(strstr(results.failure.message, "z4 x7 y9, is not in the target"));
        task.mode = MC_SEED_COPY;
        task.force = true;
        ck_ok(seed(task, 2, processes));
        ck_assert_int_eq(results.tiles, 3);
        ck_assert_int_eq(other_cache.store->cells[4][3][8].puts, 2);
    }
}
END_TEST

START_TEST(failures_name_their_metatile_and_stop_nothing)
{
    for (int processes = 0; processes < 2; processes++) {
        set_up();
        cache.store->fail_z = 4, cache.store->fail_x = 6, cache.store->fail_y = 2;
        ck_ok(seed((mc_seed_task){ 0 }, 2, processes));
        ck_assert_int_eq(results.failed, 1);
        ck_assert_int_eq(results.done, METATILES - 1);
        ck_assert_int_eq(results.failure.z, 4);
        ck_assert_int_eq(results.failure.x, 6);
        ck_assert_int_eq(results.failure.y, 2);
        ck_assert_ptr_nonnull(strstr(results.failure.message, "the origin is unwell"));
        ck_assert_int_eq(stored(cache.store, 1), TILES - 4);
    }
}
END_TEST

START_TEST(dead_processes_are_noticed)
{
    set_up();
    cache.store->deadly = true;
    ck_fails(IO, seed((mc_seed_task){ 0 }, 2, true));
    ck_assert_int_eq(stored(cache.store, 0), 0);
}
END_TEST

static mc_seed_worker_pool *
hire(int workers, bool processes)
{
    mc_seed_plan plan = plan_of(workers);
    plan.processes = processes;
    plan.backoff = true;
    mc_seed_worker_pool *worker_pool;
    results = (tally){ 0 };
    ck_ok(mc_seed_worker_pool_start(&worker_pool, &plan, pool));
    return worker_pool;
}

/* The others are not left with what had been handed out: it would take them a minute. */
START_TEST(a_dead_process_ends_the_work_of_all)
{
    enum { ORDERS = 1500 };
    mc_error *error = MC_OK;
    set_up();
    tileset.metatile_columns = tileset.metatile_rows = 1;
    cache.store->deadly_once = true;
    mc_seed_worker_pool *worker_pool = hire(2, true);
    for (int i = 0; i < ORDERS && error == MC_OK; i++)
        error = mc_seed_submit(worker_pool, 4, i % SIDE, i / SIDE % SIDE, NULL, pool);
    if (error == MC_OK)
        error = mc_seed_finish(worker_pool, pool);
    else
        mc_error_ignore(mc_seed_finish(worker_pool, pool));
    ck_fails(IO, error);
    ck_assert_int_lt(cache.store->renders, ORDERS / 2);
    ck_assert_int_eq(results.skipped + results.failed, 0);
}
END_TEST

START_TEST(the_rate_is_kept)
{
    set_up();
    mc_seed_plan plan = plan_of(2);
    plan.rate = 50;
    mc_seed_worker_pool *worker_pool;
    ck_ok(mc_seed_worker_pool_start(&worker_pool, &plan, pool));
    apr_time_t began = mc_clock_now();
    for (int i = 0; i < 16; i++)
        ck_ok(mc_seed_submit(worker_pool, 4, i, 0, NULL, pool));
    apr_interval_time_t took = mc_clock_now() - began;
    ck_ok(mc_seed_finish(worker_pool, pool));
    /* 15 pauses of 20 ms; a busy machine may make them longer, never shorter. */
    ck_assert_int_ge(took, 15 * 20000 - 1000);
}
END_TEST

START_TEST(a_stop_ends_the_waiting)
{
    set_up();
    volatile int stop = 1;
    mc_seed_plan plan = plan_of(1);
    plan.rate = 0.01;
    mc_seed_worker_pool *worker_pool;
    results = (tally){ 0 };
    ck_ok(mc_seed_worker_pool_start(&worker_pool, &plan, pool));
    for (int i = 0; i < 100; i++)
        ck_ok(mc_seed_submit(worker_pool, 4, 0, 0, &stop, pool));
    ck_ok(mc_seed_finish(worker_pool, pool));
    ck_assert_int_eq(results.done + results.failed + results.skipped, 0);
}
END_TEST

START_TEST(what_hangs_is_given_up)
{
    for (int processes = 0; processes < 2; processes++) {
        set_up();
        cache.store->hangs = true;
        mc_seed_worker_pool *worker_pool = hire(2, processes);
        for (int i = 0; i < 8; i++)
            ck_ok(mc_seed_submit(worker_pool, 4, 2 * i, 0, NULL, pool));
        while (cache.store->waiting < 2)
            apr_sleep(1000);
        mc_seed_cancel(worker_pool);
        ck_ok(mc_seed_finish(worker_pool, pool));
        ck_assert_int_eq(results.done + results.failed + results.skipped, 0);
        ck_assert_int_eq(cache.store->renders, 2);
    }
}
END_TEST

/* What could not be stored because nobody wanted it any more has not failed: it is as if it had never begun. */
START_TEST(a_commit_that_is_given_up_is_no_failure)
{
    for (int processes = 0; processes < 2; processes++) {
        set_up();
        cache.store->locked = true;
        mc_seed_worker_pool *worker_pool = hire(2, processes);
        for (int i = 0; i < 8; i++)
            ck_ok(mc_seed_submit(worker_pool, 4, 2 * i, 0, NULL, pool));
        while (cache.store->waiting < 1) /* one worker may have drawn them all */
            apr_sleep(1000);
        mc_seed_cancel(worker_pool);
        ck_ok(mc_seed_finish(worker_pool, pool));
        ck_assert_int_eq(results.done + results.failed + results.skipped, 0);
    }
}
END_TEST

START_TEST(an_origin_that_is_away_is_let_alone)
{
    for (int processes = 0; processes < 2; processes++) {
        set_up();
        cache.store->away = true;
        mc_seed_worker_pool *worker_pool = hire(4, processes);
        ck_assert_int_eq(mc_seed_awake(worker_pool), 4);
        for (int i = 0; i < 64; i++)
            ck_ok(mc_seed_submit(worker_pool, 4, 2 * (i % 8), 2 * (i / 8), NULL, pool));
        for (int left = 1; left > 0;)
            ck_ok(mc_seed_poll(&left, worker_pool, 100, pool));
        ck_assert_int_eq(results.failed, 64);
        ck_assert_int_eq(mc_seed_awake(worker_pool), 1);
        cache.store->away = false; /* and comes back: one more after each round of good answers */
        ck_ok(mc_seed_submit(worker_pool, 4, 0, 0, NULL, pool));
        ck_ok(mc_seed_finish(worker_pool, pool));
        ck_assert_int_eq(results.done, 1);
    }
}
END_TEST

START_TEST(results_tell_where_the_time_went)
{
    for (int processes = 0; processes < 2; processes++) {
        set_up();
        results = (tally){ 0 };
        ck_ok(seed((mc_seed_task){ 0 }, 2, processes));
        ck_assert_int_eq(results.done, METATILES);
        ck_assert(results.seconds[MC_SEED_DRAW] > 0);
        ck_assert(results.seconds[MC_SEED_ORIGIN] == 0);
        for (int i = 0; i < MC_SEED_PART_COUNT; i++)
            ck_assert(results.seconds[i] >= 0 && results.seconds[i] < 100);
    }
}
END_TEST

/* Descriptors that are open. */
static int
open_files(void)
{
    int count = 0;
    for (int fd = 0; fd < 256; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

START_TEST(who_cannot_be_hired_leaves_nothing_behind)
{
    set_up();
    mc_seed_plan plan = plan_of(2);
    mc_seed_worker_pool *worker_pool = NULL;
    struct rlimit limit, before;
    int spare[2], files = open_files();
    ck_assert_int_eq(pipe(spare), 0);
    close(spare[0]);
    close(spare[1]);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
    limit = before;
    limit.rlim_cur = (rlim_t)(spare[0] > spare[1] ? spare[0] : spare[1]) + 1; /* for the first pipe, not the second */
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    mc_error *error = mc_seed_worker_pool_start(&worker_pool, &plan, pool);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
    ck_fails(LIMIT, error);
    ck_assert_ptr_null(worker_pool);
    ck_assert_int_eq(open_files(), files);
}
END_TEST

/* Linux makes the pipes of a user who has a thousand of them small. */
START_TEST(small_pipes_block_nobody)
{
    struct rlimit files;
    int spare[2];
    set_up();
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &files), 0);
    files.rlim_cur = files.rlim_max;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &files), 0);
    if (geteuid() == 0)
        ck_assert_int_eq(setuid(65534), 0);
    do
        if (pipe(spare) != 0)
            break;
    while (spare[0] < 2200 && fcntl(spare[0], F_GETPIPE_SZ) > 8192);
    mc_seed_worker_pool *worker_pool = hire(2, false);
    for (int i = 0; i < 1000; i++)
        ck_ok(mc_seed_submit(worker_pool, 4, i % 2, 0, NULL, pool));
    ck_ok(mc_seed_finish(worker_pool, pool));
    ck_assert_int_eq(results.done + results.skipped, 1000);
}
END_TEST

/* Not the work: the first begins at once, and nobody waits for those who never did. */
START_TEST(threads_begin_one_after_the_other)
{
    set_up();
    mc_seed_plan plan = plan_of(3);
    plan.thread_delay = 3600;
    mc_seed_worker_pool *worker_pool;
    results = (tally){ 0 };
    ck_ok(mc_seed_worker_pool_start(&worker_pool, &plan, pool));
    for (int i = 0; i < 8; i++)
        ck_ok(mc_seed_submit(worker_pool, 4, 2 * i, 0, NULL, pool));
    ck_ok(mc_seed_finish(worker_pool, pool));
    ck_assert_int_eq(results.done, 8);
}
END_TEST

UNIT_MAIN("worker_pool", a_commit_that_is_given_up_is_no_failure, threads_begin_one_after_the_other,
          small_pipes_block_nobody, workers_fill_every_tile_once, force_draws_again,
          only_older_tiles_are_drawn_again_or_deleted, delete_empties, transfer_copies_what_is_stored_and_draws_nothing,
          a_copy_and_its_comparison_look_at_each_tile, failures_name_their_metatile_and_stop_nothing,
          dead_processes_are_noticed, a_dead_process_ends_the_work_of_all, the_rate_is_kept, a_stop_ends_the_waiting,
          what_hangs_is_given_up, an_origin_that_is_away_is_let_alone, results_tell_where_the_time_went,
          who_cannot_be_hired_leaves_nothing_behind)
