/* Footprints: what they hold, what is remembered of files, and that nothing stale or foreign is shown. */
#include "footprint/footprint_counters.h"
#include "footprint_fixture.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

START_TEST(a_footprint_is_the_box_of_what_shows)
{
    mc_cache *cache = product_cache("");
    put_patch(cache, "a", 3, 1, 2, (patch){ 10, 20, 30, 40, 200 });
    put_patch(cache, "a", 3, 1, 3, (patch){ 0, 0, 256, 256, 255 });
    put_patch(cache, "a", 3, 1, 4, (patch){ 255, 255, 1, 1, 255 });
    put_patch(cache, "a", 3, 1, 5, (patch){ 0 });
    mc_footprint_want wants[5];
    for (int i = 0; i < 5; i++)
        wants[i].key = product_key("a", 3, 1, 2 + i);
    mc_footprints *batch;
    ck_ok(mc_footprints_look(&batch, cache, wants, 5, &ctx, pool));
    for (int i = 0; i < 5; i++) {
        ck_assert_int_eq(wants[i].file, wants[0].file);
        ck_ok(mc_footprints_fetch(batch, i, &ctx));
        ck_assert(wants[i].known);
    }
    check_patch(wants[0].footprint, (patch){ 10, 20, 30, 40, 200 });
    ck_assert_int_eq(wants[0].footprint->opacity, MC_TRANSLUCENT);
    check_patch(wants[1].footprint, (patch){ 0, 0, 256, 256, 255 });
    ck_assert_int_eq(wants[1].footprint->opacity, MC_OPAQUE);
    check_patch(wants[2].footprint, (patch){ 255, 255, 1, 1, 255 });
    ck_assert_int_eq(wants[2].footprint->opacity, MC_OPAQUE);
    ck_assert_int_eq(wants[3].footprint->width, 0);
    ck_assert_int_eq(wants[3].footprint->opacity, MC_EMPTY);
    ck_assert_ptr_null(wants[4].footprint);
    ck_assert(wants[0].footprint->tag != wants[1].footprint->tag && wants[0].footprint->mtime != 0);
}
END_TEST

START_TEST(files_have_numbers_of_their_own)
{
    mc_cache *cache = product_cache("");
    put_patch(cache, "a", 0, 0, 0, (patch){ 1, 1, 1, 1, 255 });
    put_patch(cache, "b", 0, 0, 0, (patch){ 2, 2, 2, 2, 255 });
    mc_footprint_want wants[4];
    static const char *const names[] = { "a", "b", "nothing", "a" };
    for (int i = 0; i < 4; i++)
        wants[i].key = product_key(names[i], 0, 0, 0);
    mc_footprints *batch;
    ck_ok(mc_footprints_look(&batch, cache, wants, 4, &ctx, pool));
    ck_assert_int_eq(wants[0].file, wants[3].file);
    ck_assert_int_ne(wants[0].file, wants[1].file);
    ck_assert_int_ne(wants[0].file, wants[2].file);
    for (int i = 0; i < 4; i++)
        ck_ok(mc_footprints_fetch(batch, i, &ctx));
    check_patch(wants[1].footprint, (patch){ 2, 2, 2, 2, 255 });
    ck_assert_ptr_null(wants[2].footprint);
    check_patch(wants[3].footprint, (patch){ 1, 1, 1, 1, 255 });
}
END_TEST

START_TEST(what_is_no_image_is_an_error_each_time)
{
    mc_cache *cache = product_cache("");
    mc_tile_key key = product_key("a", 1, 1, 1);
    put_text(cache, &key, "not a picture");
    usleep(60000);
    for (int i = 0; i < 2; i++) {
        mc_footprint_want want = { .key = key };
        mc_footprints *batch;
        apr_pool_t *request;
        apr_pool_create(&request, pool);
        ck_ok(mc_footprints_look(&batch, cache, &want, 1, &ctx, request));
        ck_assert(!want.known);
        ck_fails(CORRUPT, mc_footprints_fetch(batch, 0, &ctx));
        ck_assert(!want.known);
        apr_pool_destroy(request);
    }
}
END_TEST

/* Nothing here is worth waiting for a disk. */
#define QUICK "<pragma name='synchronous'>off</pragma>"

/* Every kind of cache gives the same footprint, from memory too, and a change shows. */
static void
check_kind(mc_cache *cache, bool remembers)
{
    static const patch first = { 10, 20, 30, 40, 200 }, second = { 50, 60, 71, 80, 255 };
    mc_memory_destroy(process.memory); /* what another kind knows by its content would do */
    process.memory = mc_memory_create(1 << 20);
    mc_metrics_destroy(process.metrics);
    process.metrics = mc_metrics_create();
    put_patch(cache, "a", 3, 1, 2, first);
    wait_settled();
    for (int i = 0; i < 3; i++) {
        shown found = show_patch(cache, "a", 3, 1, 2);
        ck_ok(found.error);
        check_patch(found.footprint, first);
        found = show_patch(cache, "a", 3, 1, 3);
        ck_ok(found.error);
        ck_assert_ptr_null(found.footprint);
    }
    ck_assert_uint_eq(counted_events(MC_COUNT_footprint_misses_total), remembers ? 1 : 3);
    put_patch(cache, "a", 3, 1, 2, second);
    shown found = show_patch(cache, "a", 3, 1, 2);
    ck_ok(found.error);
    check_patch(found.footprint, second);
    mc_tile_key key = product_key("a", 3, 1, 2);
    ck_ok(mc_cache_remove(cache, &key, &ctx));
    found = show_patch(cache, "a", 3, 1, 2);
    ck_ok(found.error);
    ck_assert_ptr_null(found.footprint);
}

static mc_cache *
kind_of(const char *type, const char *inner)
{
    return cache_of(apr_psprintf(pool, "<cache name='c' type='%s'>%s</cache>", type,
                                 mc_replace_all(inner, "%s", cache_folder, pool)));
}

START_TEST(every_kind_of_cache_has_footprints)
{
    check_kind(kind_of("sqlite3", QUICK "<dbfile>%s/one.db</dbfile>"), true);
    check_kind(kind_of("sqlite3", QUICK "<dbfile>%s/{dim:product}-{z}.db</dbfile>"), true);
    check_kind(kind_of("sqlite3", QUICK "<memory>false</memory><dbfile>%s/forgotten.db</dbfile>"), false);
    check_kind(kind_of("mbtiles", QUICK "<dbfile>%s/{dim:product}.mbtiles</dbfile>"), true);
    check_kind(kind_of("disk", "<base>%s/tiles</base>"), true);
    check_kind(kind_of("disk", "<memory>false</memory><base>%s/forgotten</base>"), false);
}
END_TEST

static mc_cache *
layered_of(const char *type, const char *attributes)
{
    mc_build build = config_build();
    const char *text = apr_psprintf(pool,
                                    "<cache name='one' type='sqlite3'>" QUICK "<dbfile>%s/%s.db</dbfile></cache>"
                                    "<cache name='c' type='%s'><cache%s>one</cache></cache>",
                                    cache_folder, type, type, attributes);
    const mc_node *first = config_elements(text);
    mc_cache *one = mc_cache_from_config(first, &build);
    apr_hash_set(build.caches, "one", APR_HASH_KEY_STRING, one);
    mc_cache *cache = mc_cache_from_config(first->next, &build);
    ck_ok(mc_diagnostics_error(build.diagnostics, pool));
    return cache;
}

START_TEST(layered_caches_have_footprints)
{
    check_kind(layered_of("composite", ""), true);
    check_kind(layered_of("fallback", ""), true);
    check_kind(layered_of("multitier", ""), true);
    /* Where no part is for the tile, the fetch says so. */
    mc_cache *none = layered_of("composite", " min-zoom='5'");
    ck_fails(CONFIG, show_patch(none, "a", 3, 1, 2).error);
}
END_TEST

START_TEST(a_colour_is_a_footprint)
{
    mc_memory_destroy(process.memory);
    process.memory = mc_memory_create(4 << 20); /* a full tile is at most an eighth of it */
    mc_cache *cache = product_cache("<detect_blank/>");
    mc_tile_write tile = { .key = product_key("a", 3, 1, 2), .data = patch_png((patch){ 0, 0, 256, 256, 255 }) };
    tile.uniform = true;
    patch_colour(tile.bgra, &(patch){ 0, 0, 256, 256, 120 });
    ck_ok(mc_cache_put(cache, &tile, 1, &ctx));
    wait_settled();
    for (int i = 0; i < 2; i++)
        expect_patch(cache, "a", 3, 1, 2, ((patch){ 0, 0, 256, 256, 120 }), i > 0);
}
END_TEST

/* Full tiles push out one another, but no small footprints; and never is there more than the bound. */
START_TEST(memory_keeps_its_bound)
{
    enum { BOUND = 4 << 20 };
    mc_memory_destroy(process.memory);
    process.memory = mc_memory_create(BOUND);
    mc_cache *cache = product_cache(QUICK);
    static const patch small = { 100, 100, 30, 30, 255 }, full = { 0, 0, 256, 256, 255 };
    mc_tile_write tiles[32];
    for (int i = 0; i < 32; i++)
        tiles[i] = (mc_tile_write){ .key = product_key("a", 5, i, 0), .data = patch_png(full) };
    ck_ok(mc_cache_put(cache, tiles, 32, &ctx));
    for (int i = 0; i < 32; i++)
        tiles[i] = (mc_tile_write){ .key = product_key("b", 5, i, 0), .data = patch_png(small) };
    ck_ok(mc_cache_put(cache, tiles, 32, &ctx));
    wait_settled();
    for (int round = 0; round < 4; round++)
        for (int i = 0; i < 32; i++) {
            apr_pool_t *whole = pool;
            apr_pool_create(&pool, whole);
            ctx.pool = pool;
            expect_patch(cache, "b", 5, i, 0, small, round > 0);
            shown found = show_patch(cache, "a", 5, i, 0);
            ck_ok(found.error);
            check_patch(found.footprint, full);
            ck_assert_uint_le(mc_memory_bytes(process.memory), BOUND);
            apr_pool_destroy(pool);
            ctx.pool = pool = whole;
        }
    ck_assert_uint_gt(mc_memory_bytes(process.memory), BOUND / 4 * 3); /* full tiles use what is free */
}
END_TEST

typedef struct reader {
    pthread_t thread;
    mc_cache *cache;
    _Atomic bool *stop;
    int shown;
} reader;

/* A patch of this test is as high as it is wide: anything else is a mixture of two states. */
static void *
read_all(void *data)
{
    reader *me = data;
    apr_pool_t *own;
    apr_pool_create(&own, NULL);
    while (!atomic_load(me->stop)) {
        mc_ctx mine = ctx;
        apr_pool_t *request;
        apr_pool_create(&request, own);
        mine.pool = request;
        mc_dimension_value values[4] = { { "product", "p0", false },
                                         { "product", "p1", false },
                                         { "product", "p2", false },
                                         { "product", "p3", false } };
        mc_footprint_want wants[16] = { { .file = 0 } };
        for (int i = 0; i < 16; i++) {
            wants[i].key = key_at(3, i / 4, 0);
            wants[i].key.renderable = false;
            wants[i].key.dimension_count = 1;
            wants[i].key.dimensions = &values[i % 4];
        }
        mc_footprints *batch;
        MC_ASSERT(mc_footprints_look(&batch, me->cache, wants, 16, &mine, request) == MC_OK);
        mc_cache_reads_begin(&mine);
        for (int i = 0; i < 16; i++)
            MC_ASSERT(mc_footprints_fetch(batch, i, &mine) == MC_OK);
        mc_cache_reads_end(&mine);
        for (int i = 0; i < 16; i++) {
            MC_ASSERT((wants[i].footprint != NULL) == (i / 4 < 2));
            MC_ASSERT(wants[i].footprint == NULL || wants[i].footprint->width == wants[i].footprint->height);
            me->shown += wants[i].footprint != NULL;
        }
        apr_pool_destroy(request);
    }
    apr_pool_destroy(own);
    return NULL;
}

START_TEST(threads_share_footprints_while_files_change)
{
    enum { THREADS = 4 };
    mc_cache *cache = product_cache(QUICK);
    for (int i = 0; i < 4; i++)
        for (int x = 0; x < 2; x++)
            put_patch(cache, apr_psprintf(pool, "p%d", i), 3, x, 0, (patch){ 5, 5, 10 + i, 10 + i, 255 });
    wait_settled();
    _Atomic bool stop = false;
    reader readers[THREADS];
    for (int i = 0; i < THREADS; i++) {
        readers[i] = (reader){ .cache = cache, .stop = &stop };
        ck_assert_int_eq(pthread_create(&readers[i].thread, NULL, read_all, &readers[i]), 0);
    }
    for (int round = 0; round < 24; round++) {
        put_patch(cache, apr_psprintf(pool, "p%d", round % 4), 3, round % 2, 0,
                  (patch){ 5, 5, 20 + round, 20 + round, 255 });
        if (round % 8 == 0) {
            run_shell("cp %s/p0.db %s/next && mv %s/next %s/p0.db");
            wait_settled();
        }
    }
    atomic_store(&stop, true);
    for (int i = 0; i < THREADS; i++) {
        ck_assert_int_eq(pthread_join(readers[i].thread, NULL), 0);
        ck_assert_int_gt(readers[i].shown, 0);
    }
}
END_TEST

CACHE_MAIN("footprint", a_footprint_is_the_box_of_what_shows, files_have_numbers_of_their_own,
           what_is_no_image_is_an_error_each_time, every_kind_of_cache_has_footprints, layered_caches_have_footprints,
           a_colour_is_a_footprint, memory_keeps_its_bound, threads_share_footprints_while_files_change)
