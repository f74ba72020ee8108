/* Stored tiles in memory that processes share: two processes are two memories on one mapping here; children that are
 * killed are in memory/test_shared_cache_kills.c and in tests/integration/test_shared_memory.py. */
#include "cache_fixture.h"

#include "base/budget.h"
#include "cache/cache_counters.h"
#include "cache/memory.h"
#include "memory/shared_cache.h"

static struct mc_shared_cache *shared;
static mc_process other_process;
static mc_ctx other; /* of another process */

static void
start_shared_test(void)
{
    unit_setup();
    start_cache_test();
    shared = mc_shared_cache_create(8 << 20);
    ck_assert_ptr_nonnull(shared);
    process.metrics = mc_metrics_create();
    mc_memory_share(process.memory, shared);
    other_process = (mc_process){ .handles = mc_handles_create(16),
                                  .memory = mc_memory_create(1 << 20),
                                  .metrics = mc_metrics_create() };
    mc_memory_share(other_process.memory, shared);
    other = ctx;
    other.process = &other_process;
}

static void
end_shared_test(void)
{
    mc_memory_destroy(other_process.memory);
    mc_handles_destroy(other_process.handles);
    mc_metrics_destroy(other_process.metrics);
    end_cache_test();
    mc_shared_cache_destroy(shared);
    mc_metrics_destroy(process.metrics);
    process.metrics = NULL;
    unit_teardown();
}

static uint64_t
hits_of(const mc_ctx *who)
{
    return mc_counter_value(who->process->metrics, MC_COUNT_memory_hits_total);
}

static size_t
count_shared_entries(void)
{
    mc_shared_statistics statistics;
    mc_shared_cache_stat(&statistics, shared);
    return statistics.entries;
}

/* "" for a miss. */
static const char *
text_got_by(mc_ctx *who, mc_cache *cache, const mc_tile_key *key)
{
    mc_tile *tile;
    ck_ok(mc_cache_get(&tile, cache, key, who, pool));
    return tile == NULL ? "" : apr_pstrmemdup(pool, (const char *)tile->data->data, tile->data->size);
}

static mc_cache *
shared_store(const char *inner)
{
    return cache_of(
        apr_psprintf(pool, "<cache name='c' type='sqlite3'><dbfile>%s/a.db</dbfile>%s</cache>", cache_folder, inner));
}

START_TEST(every_sample_conforms_with_it)
{
    for (int i = 0; mc_cache_kinds[i] != NULL; i++) {
        const mc_cache_ops *kind = mc_cache_kinds[i];
        if (kind->sample != NULL)
            conform_cache(cache_of(apr_psprintf(pool, "<cache name='c' type='%s'>%s</cache>", kind->type,
                                                mc_replace_all(kind->sample, "{folder}", cache_folder, pool))));
    }
    ck_assert_uint_gt(hits_of(&ctx), 0);
}
END_TEST

START_TEST(what_one_process_has_read_another_one_has)
{
    mc_cache *cache = shared_store("");
    mc_tile_key key = key_at(3, 5, 1);
    put_text(cache, &key, "tile");
    usleep(60000); /* until the stamp has settled */
    ck_assert_str_eq(text_got_by(&ctx, cache, &key), "tile");
    ck_assert_uint_eq(hits_of(&ctx), 0);
    mc_tile *tile;
    ck_ok(mc_cache_get(&tile, cache, &key, &other, pool));
    ck_assert_uint_eq(hits_of(&other), 1);
    ck_assert_uint_eq(tile->data->size, 4);
    ck_assert_mem_eq(tile->data->data, "tile", 4);
    ck_assert_uint_ne(tile->tag, 0);
    uint64_t tag = tile->tag;
    tile->tag = 0;
    ck_assert_uint_eq(mc_tile_tag(tile), tag);
}
END_TEST

START_TEST(what_one_process_writes_another_one_sees)
{
    mc_cache *cache = shared_store("");
    mc_tile_key key = key_at(3, 5, 1);
    for (int i = 0; i < 10; i++) {
        const char *text = apr_psprintf(pool, "tile %d", i);
        put_text(cache, &key, text);
        ck_assert_str_eq(text_got_by(&other, cache, &key), text);
        ck_assert_str_eq(text_got_by(&ctx, cache, &key), text);
    }
    usleep(60000);
    for (int i = 0; i < 3; i++)
        ck_assert_str_eq(text_got_by(&other, cache, &key), "tile 9");
    ck_assert_uint_ge(hits_of(&other), 2);
    ck_ok(mc_cache_remove(cache, &key, &ctx));
    ck_assert_str_eq(text_got_by(&other, cache, &key), "");
}
END_TEST

/* The memory outlives a configuration: a grid of the same name whose level has more rows leads to other rows. */
START_TEST(a_grid_that_was_redefined_has_other_tiles)
{
    mc_cache *cache = shared_store("<queries><get>select data from tiles where x=:x and y=:inv_y and z=:z</get>"
                                   "<set>insert or replace into tiles(x,y,z,data) values(:x,:inv_y,:z,:data)</set>"
                                   "<create>create table if not exists tiles(x,y,z,data,primary key(x,y,z))</create>"
                                   "</queries>");
    static mc_level levels[8];
    memcpy(levels, cache_levels, sizeof(levels[0]) * (size_t)cache_grid.level_count);
    levels[3].rows += 1;
    mc_grid redefined = cache_grid;
    redefined.levels = levels;
    mc_tile_key before = key_at(3, 2, 2), after = before;
    after.grid = &redefined;
    put_text(cache, &before, "before");
    put_text(cache, &after, "after");
    usleep(60000);
    for (int i = 0; i < 3; i++) {
        ck_assert_str_eq(text_got_by(i % 2 == 0 ? &ctx : &other, cache, &before), "before");
        ck_assert_str_eq(text_got_by(i % 2 == 0 ? &ctx : &other, cache, &after), "after");
    }
    ck_assert_uint_eq(hits_of(&ctx) + hits_of(&other), 4);
}
END_TEST

/* Another statement on the same file. */
START_TEST(a_store_that_was_redefined_has_other_tiles)
{
    mc_cache *before = shared_store(""),
             *after = shared_store("<queries><get>select 'another' from tiles</get></queries>");
    mc_tile_key key = key_at(3, 2, 2);
    put_text(before, &key, "before");
    usleep(60000);
    for (int i = 0; i < 3; i++) {
        ck_assert_str_eq(text_got_by(&ctx, before, &key), "before");
        ck_assert_str_eq(text_got_by(&other, after, &key), "another");
    }
    ck_assert_uint_eq(hits_of(&ctx), 2);
    ck_assert_uint_eq(hits_of(&other), 2);
}
END_TEST

START_TEST(what_is_good_for_a_time_is_forgotten_by_all)
{
    mc_memory_key key;
    mc_tile_key tile_key = key_at(1, 0, 0);
    mc_tile *found, *tile = mc_tile_create(buf_of_text("tile"), 0, pool);
    mc_memory_key_build(&key, 77, "", &tile_key);
    ck_assert(!mc_memory_get(&found, &key, NULL, &ctx, pool));
    mc_memory_put_for(&key, 1000, tile, &ctx);
    ck_assert(mc_memory_get(&found, &key, NULL, &other, pool));
    ck_assert_mem_eq(found->data->data, "tile", 4);
    ck_assert(found->data != tile->data);
    mc_memory_forget(&key, &other);
    ck_assert(!mc_memory_get(&found, &key, NULL, &ctx, pool));
    mc_memory_put_for(&key, 1000, NULL, &ctx); /* known to be absent */
    ck_assert(mc_memory_get(&found, &key, NULL, &other, pool));
    ck_assert_ptr_null(found);
    mc_memory_put_for(&key, 0, tile, &ctx); /* over at once */
    ck_assert(!mc_memory_get(&found, &key, NULL, &other, pool));
}
END_TEST

/* One process has read a tile that another one replaces before the first one remembers what it has read. */
START_TEST(what_was_read_before_a_write_is_not_remembered)
{
    mc_memory_key mine, theirs;
    mc_tile_key tile_key = key_at(1, 0, 0);
    mc_tile *found, *old = mc_tile_create(buf_of_text("old"), 0, pool);
    mc_memory_key_build(&mine, 77, "", &tile_key);
    mc_memory_key_build(&theirs, 77, "", &tile_key);
    ck_assert(!mc_memory_get(&found, &mine, NULL, &ctx, pool));
    mc_memory_forget(&theirs, &other);
    mc_memory_put_for(&mine, 1000, old, &ctx);
    ck_assert(!mc_memory_get(&found, &theirs, NULL, &other, pool));
    ck_assert_uint_eq(count_shared_entries(), 0);
}
END_TEST

START_TEST(a_copy_without_room_is_left_to_the_store)
{
    mc_memory_key key;
    mc_tile_key tile_key = key_at(1, 0, 0);
    mc_buf *large = mc_buf_attach(mc_buf_create(100000, 100000), pool);
    memset(large->data, 'x', 100000);
    large->size = 100000;
    mc_tile *found, *tile = mc_tile_create(large, 0, pool);
    mc_memory_key_build(&key, 77, "", &tile_key);
    mc_memory_put_for(&key, 1000, tile, &ctx);
    ck_assert(mc_memory_get(&found, &key, NULL, &other, pool));
    ck_assert_mem_eq(found->data->data, large->data, 100000);
    mc_budget_set(mc_budget_used() + 1000, NULL);
    ck_assert(!mc_memory_get(&found, &key, NULL, &other, pool));
    mc_budget_set(0, NULL);
    ck_assert(mc_memory_get(&found, &key, NULL, &other, pool));
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = { every_sample_conforms_with_it,
                                   what_one_process_has_read_another_one_has,
                                   what_one_process_writes_another_one_sees,
                                   a_grid_that_was_redefined_has_other_tiles,
                                   a_store_that_was_redefined_has_other_tiles,
                                   what_is_good_for_a_time_is_forgotten_by_all,
                                   what_was_read_before_a_write_is_not_remembered,
                                   a_copy_without_room_is_left_to_the_store };
    return unit_run_between("shared_memory", tests, (int)(sizeof(tests) / sizeof(tests[0])), start_shared_test,
                            end_shared_test);
}
