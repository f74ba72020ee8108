/* multitier: what the fast child gets, what waits for the slow one, what is remembered to be absent. */
#include "cache_fixture.h"

#include "base/clock.h"
#include "cache/cache_counters.h"
#include "cache/write_behind.h"

#define BEHIND                                                                                                         \
    "<cache name='l' type='multitier'><cache>a</cache><cache>b</cache><write>behind</write>"                           \
    "<behind_time>30</behind_time></cache>"

/* A server's process, and a cache whose far child is away: a file stands where its folder should be. */
static mc_cache *
open_multitier_without_far(const char *xml)
{
    process.lasting = true;
    process.write_behinds = mc_write_behinds_create();
    run_shell("rm -rf %s/lb; touch %s/lb");
    return cache_of_two(xml);
}

static void
bring_far_back(void)
{
    run_shell("rm -f %s/lb");
}

static void
end_waiting_puts(void)
{
    mc_write_behinds_destroy(process.write_behinds);
    process.write_behinds = NULL;
}

static bool
has_tile(mc_cache *cache, const mc_tile_key *key)
{
    bool exists = false;
    mc_error *error = mc_cache_exists(&exists, cache, key, &ctx);
    return error == MC_OK && exists;
}

/* At most a minute. */
static void
wait_for_tile(mc_cache *cache, const mc_tile_key *key)
{
    for (int i = 0; i < 6000 && !has_tile(cache, key); i++)
        usleep(10000);
    ck_assert(has_tile(cache, key));
}

static void
wait_for_counter(mc_counter counter, uint64_t value)
{
    for (int i = 0; i < 6000 && mc_counter_value(process.metrics, counter) < value; i++)
        usleep(10000);
    ck_assert_uint_eq(mc_counter_value(process.metrics, counter), value);
}

START_TEST(copies_what_it_finds)
{
    mc_cache *cache = cache_of_two("<cache name='l' type='multitier'><cache>a</cache><cache>b</cache></cache>");
    mc_tile_key key = key_at(2, 1, 1);
    put_text(cache, &key, "deep");
    expect_text(child_named("a"), &key, NULL);
    expect_text(cache, &key, "deep");
    expect_text(child_named("a"), &key, "deep");
    put_text(cache, &key, "newer");
    expect_text(child_named("a"), &key, NULL);
    expect_text(cache, &key, "newer");
}
END_TEST

/* A slow child that somebody reads through the others at the moment at which it is written to. */
static mc_cache *read_meanwhile;
static const mc_cache_ops *own_ops;

static void
read_before_change(const mc_tile_key *key, mc_ctx *changing)
{
    mc_tile *tile;
    ck_ok(mc_cache_get(&tile, read_meanwhile, key, changing, changing->pool));
}

static mc_error *
put_while_read(mc_cache *cache, const mc_tile_write *tiles, int count, mc_ctx *changing)
{
    read_before_change(&tiles[0].key, changing);
    return own_ops->put(cache, tiles, count, changing);
}

static mc_error *
remove_while_read(mc_cache *cache, const mc_tile_key *key, mc_ctx *changing)
{
    read_before_change(key, changing);
    return own_ops->remove(cache, key, changing);
}

START_TEST(keeps_no_old_copy_of_a_reader)
{
    mc_cache *cache = cache_of_two("<cache name='l' type='multitier'><cache>a</cache><cache>b</cache></cache>");
    mc_tile_key key = key_at(2, 1, 1);
    put_text(cache, &key, "old");
    own_ops = child_named("b")->ops;
    mc_cache_ops slow = *own_ops;
    slow.put = put_while_read;
    slow.remove = remove_while_read;
    child_named("b")->ops = &slow;
    read_meanwhile = cache;
    put_text(cache, &key, "new");
    expect_text(cache, &key, "new");
    ck_ok(mc_cache_remove(cache, &key, &ctx));
    expect_text(cache, &key, NULL);
}
END_TEST

START_TEST(stores_behind)
{
    mc_cache *cache = open_multitier_without_far(BEHIND);
    const mc_tile_key first = key_at(2, 1, 1), other = key_at(2, 2, 1);
    put_text(cache, &first, "one");
    put_text(cache, &other, "two");
    put_text(cache, &first, "newer");
    expect_text(child_named("a"), &first, "newer");
    ck_ok(mc_cache_remove(child_named("a"), &first, &ctx)); /* as a memcached may forget it */
    expect_text(cache, &first, "newer");
    ck_ok(mc_cache_remove(child_named("a"), &first, &ctx));
    ck_assert(has_tile(cache, &first));
    ck_assert_uint_gt(mc_write_behinds_waiting(process.write_behinds), 0);
    bring_far_back();
    wait_for_tile(child_named("b"), &first);
    wait_for_tile(child_named("b"), &other);
    expect_text(child_named("b"), &first, "newer");
    expect_text(child_named("b"), &other, "two");
    wait_for_counter(MC_COUNT_behind_stored_total, 2);
    ck_assert_uint_eq(mc_counter_value(process.metrics, MC_COUNT_behind_lost_total), 0);
    end_waiting_puts();
}
END_TEST

START_TEST(what_is_removed_is_not_stored_later)
{
    mc_cache *cache = open_multitier_without_far(BEHIND);
    const mc_tile_key gone = key_at(2, 1, 1), next = key_at(2, 2, 1);
    put_text(cache, &gone, "gone");
    ck_ok(mc_cache_remove(cache, &gone, &ctx));
    put_text(cache, &next, "next");
    bring_far_back();
    wait_for_tile(child_named("b"), &next);
    expect_text(cache, &gone, NULL);
    end_waiting_puts();
}
END_TEST

START_TEST(gives_up_in_time)
{
    mc_cache *cache = open_multitier_without_far(
        "<cache name='l' type='multitier'><cache>a</cache><cache>b</cache><write>behind</write>"
        "<behind_time>0.2</behind_time></cache>");
    const mc_tile_key key = key_at(2, 1, 1);
    put_text(cache, &key, "late");
    wait_for_counter(MC_COUNT_behind_lost_total, 1);
    ck_assert_uint_eq(mc_write_behinds_waiting(process.write_behinds), 0);
    expect_text(child_named("a"), &key, "late");
    end_waiting_puts();
}
END_TEST

/* Nobody reads what a put without room leaves behind: it fails as one through does. */
START_TEST(without_room_stores_through)
{
    mc_cache *cache = open_multitier_without_far(
        "<cache name='l' type='multitier'><cache>a</cache><cache>b</cache><write>behind</write>"
        "<behind_queue>500</behind_queue></cache>");
    const mc_tile_key first = key_at(2, 1, 1), other = key_at(2, 2, 1);
    put_text(cache, &first, "one");
    mc_tile_write put = { .key = other, .data = mc_buf_attach(mc_buf_copy("another", 7), pool) };
    ck_assert_ptr_nonnull(mc_cache_put(cache, &put, 1, &ctx));
    bring_far_back();
    ck_ok(mc_cache_put(cache, &put, 1, &ctx));
    expect_text(child_named("a"), &other, NULL);
    expect_text(child_named("b"), &other, "another");
    wait_for_tile(child_named("b"), &first);
    end_waiting_puts();
}
END_TEST

START_TEST(the_end_waits_for_what_waits)
{
    mc_cache *cache = open_multitier_without_far(BEHIND);
    for (int i = 0; i < 64; i++) {
        const mc_tile_key key = key_at(3, i % 8, i / 8);
        put_text(cache, &key, "text");
    }
    bring_far_back();
    end_waiting_puts();
    ck_assert_uint_eq(mc_counter_value(process.metrics, MC_COUNT_behind_stored_total), 64);
    for (int i = 0; i < 64; i++) {
        const mc_tile_key key = key_at(3, i % 8, i / 8);
        expect_text(child_named("b"), &key, "text");
    }
}
END_TEST

START_TEST(the_end_counts_what_is_lost)
{
    mc_cache *cache = open_multitier_without_far(BEHIND);
    const mc_tile_key key = key_at(2, 1, 1);
    put_text(cache, &key, "lost");
    apr_time_t began = mc_clock_now();
    end_waiting_puts();
    ck_assert(mc_clock_now() - began >= 4 * APR_USEC_PER_SEC);
    ck_assert_uint_eq(mc_counter_value(process.metrics, MC_COUNT_behind_lost_total), 1);
}
END_TEST

/* A slow child that takes no tiles of column 1 (too large, say), and none at all while it is away. */
static _Atomic bool far_away;
static mc_error_kind refusal_kind;
static _Atomic int far_puts;

static mc_error *
put_unless_refused(mc_cache *cache, const mc_tile_write *tiles, int count, mc_ctx *changing)
{
    far_puts++;
    if (far_away)
        return mc_error_create(changing->pool, MC_ERR_IO, "away");
    for (int i = 0; i < count; i++)
        if (tiles[i].key.x == 1)
            return mc_error_create(changing->pool, refusal_kind, "refused");
    return own_ops->put(cache, tiles, count, changing);
}

static mc_cache *
open_multitier_that_refuses(mc_error_kind kind, const char *more)
{
    static mc_cache_ops refusing;
    process.lasting = true;
    process.write_behinds = mc_write_behinds_create();
    mc_cache *cache = cache_of_two(apr_psprintf(pool,
                                                "<cache name='l' type='multitier'><cache>a</cache><cache>b</cache>"
                                                "<write>behind</write>%s</cache>",
                                                more));
    own_ops = child_named("b")->ops;
    refusing = *own_ops;
    refusing.put = put_unless_refused;
    child_named("b")->ops = &refusing;
    refusal_kind = kind;
    far_away = false;
    far_puts = 0;
    return cache;
}

START_TEST(what_the_store_refuses_holds_up_nothing_else)
{
    mc_cache *cache = open_multitier_that_refuses(MC_ERR_IO, "<behind_time>3600</behind_time>");
    const mc_tile_key refused = key_at(2, 1, 1);
    put_text(cache, &refused, "refused");
    while (far_puts == 0)
        usleep(1000);
    for (int i = 0; i < 16; i++) {
        const mc_tile_key key = key_at(3, i % 2 * 2, i / 2);
        put_text(cache, &key, "text");
    }
    wait_for_counter(MC_COUNT_behind_stored_total, 16);
    ck_assert(has_tile(cache, &refused)); /* it waits on */
    ck_assert_uint_eq(mc_counter_value(process.metrics, MC_COUNT_behind_lost_total), 0);
    end_waiting_puts();
    ck_assert_uint_eq(mc_counter_value(process.metrics, MC_COUNT_behind_lost_total), 1);
}
END_TEST

/* A metatile, put as a whole: whatever the store says of the one tile. */
START_TEST(what_the_store_refuses_is_lost_alone)
{
    static const mc_error_kind kinds[] = { MC_ERR_LIMIT, MC_ERR_IO };
    for (int kind = 0; kind < 2; kind++) {
        restart_cache_test();
        const uint64_t stored = mc_counter_value(process.metrics, MC_COUNT_behind_stored_total);
        const uint64_t lost = mc_counter_value(process.metrics, MC_COUNT_behind_lost_total);
        mc_cache *cache = open_multitier_that_refuses(kinds[kind], "<behind_time>5</behind_time>");
        mc_tile_write puts[16];
        for (int i = 0; i < 16; i++)
            puts[i] = (mc_tile_write){ .key = key_at(3, i % 4, i / 4), .data = buf_of_text("text") };
        ck_ok(mc_cache_put(cache, puts, 16, &ctx));
        wait_for_counter(MC_COUNT_behind_stored_total, stored + 12);
        wait_for_counter(MC_COUNT_behind_lost_total, lost + 4);
        for (int i = 0; i < 16; i++)
            ck_assert_int_eq(has_tile(child_named("b"), &puts[i].key), i % 4 != 1);
        end_waiting_puts();
    }
}
END_TEST

/* A seeder, or another server, stores a tile while an older one waits here. */
START_TEST(a_newer_tile_of_others_stays)
{
    mc_cache *cache = open_multitier_that_refuses(MC_ERR_IO, "");
    const mc_tile_key key = key_at(2, 2, 1), other = key_at(2, 3, 1);
    far_away = true;
    put_text(cache, &key, "older");
    put_text(cache, &other, "other");
    const apr_time_t put = apr_time_now();
    while (apr_time_now() <= put + APR_USEC_PER_SEC) /* a put of the last second is stored without a look */
        usleep(1000);
    mc_tile_write newer = { .key = key, .data = buf_of_text("newer") };
    ck_ok(own_ops->put(child_named("b"), &newer, 1, &ctx));
    far_away = false;
    wait_for_tile(child_named("b"), &other);
    end_waiting_puts();
    expect_text(child_named("b"), &key, "newer");
    ck_assert_uint_eq(mc_counter_value(process.metrics, MC_COUNT_behind_stored_total), 1);
    ck_assert_uint_eq(mc_counter_value(process.metrics, MC_COUNT_behind_lost_total), 0);
}
END_TEST

/* Also of tiles of a few bytes: whoever finds no room stores through, and does not wait. */
START_TEST(all_that_waiting_takes_is_counted)
{
    mc_cache *cache = open_multitier_that_refuses(MC_ERR_IO, "<behind_queue>20000</behind_queue>");
    int waiting = 0;
    far_away = true;
    for (bool fits = true; fits && waiting < 1000; waiting += fits) {
        mc_tile_write put = { .key = key_at(5, waiting % 32, waiting / 32), .data = buf_of_text("t") };
        fits = mc_cache_put(cache, &put, 1, &ctx) == MC_OK;
    }
    ck_assert_int_gt(waiting, 10);
    ck_assert_int_lt(waiting, 100);
    ck_assert_uint_le(mc_write_behinds_waiting(process.write_behinds), 20000);
    ck_assert_uint_gt(mc_write_behinds_waiting(process.write_behinds), 15000);
    mc_write_behinds_drain(process.write_behinds); /* as a process does that cannot end in order */
    ck_assert_uint_eq(mc_counter_value(process.metrics, MC_COUNT_behind_lost_total), (uint64_t)waiting);
    far_away = false;
    const mc_tile_key key = key_at(2, 2, 1);
    put_text(cache, &key, "through");
    expect_text(child_named("b"), &key, "through");
    end_waiting_puts();
}
END_TEST

/* Who ends soon, as a seeder, is told by the put what became of it. */
START_TEST(tools_store_through)
{
    mc_cache *cache = open_multitier_without_far(BEHIND);
    process.lasting = false;
    const mc_tile_key key = key_at(2, 1, 1);
    mc_tile_write put = { .key = key, .data = mc_buf_attach(mc_buf_copy("text", 4), pool) };
    ck_assert_ptr_nonnull(mc_cache_put(cache, &put, 1, &ctx));
    bring_far_back();
    ck_ok(mc_cache_put(cache, &put, 1, &ctx));
    expect_text(child_named("b"), &key, "text");
    end_waiting_puts();
}
END_TEST

START_TEST(remembers_what_is_absent)
{
    mc_cache *cache = cache_of_two("<cache name='l' type='multitier'><cache>a</cache><cache>b</cache>"
                                   "<remember_absent>2</remember_absent></cache>");
    mc_tile_key absent = key_at(2, 1, 1), other = key_at(2, 2, 1), rendered = key_at(2, 3, 1);
    const mc_tile_key any = key_at(1, 0, 0);
    put_text(child_named("a"), &any, "any"); /* a store that is not there yet is no store without the tile */
    absent.renderable = other.renderable = false;
    rendered.renderable = true;
    expect_text(cache, &absent, NULL);
    expect_text(cache, &other, NULL);
    expect_text(cache, &rendered, NULL);
    put_text(child_named("b"), &absent, "there"); /* behind its back */
    put_text(child_named("b"), &rendered, "rendered");
    apr_time_t asked = mc_clock_now();
    mc_tile *tile = NULL;
    ck_ok(mc_cache_get(&tile, cache, &absent, &ctx, pool));
    ck_assert(tile == NULL || mc_clock_now() - asked > APR_USEC_PER_SEC);
    expect_text(cache, &rendered, "rendered"); /* another process may have made it */
    put_text(cache, &other, "own");
    expect_text(cache, &other, "own");
    for (int i = 0; i < 200 && tile == NULL; i++) { /* also where it is asked for all the time */
        usleep(100000);
        ck_ok(mc_cache_get(&tile, cache, &absent, &ctx, pool));
    }
    expect_text(cache, &absent, "there");
    ck_assert_int_eq(cache_complaint_of("<cache name='c' type='multitier'><write>behind</write></cache>"), MC_REFUSED);
}
END_TEST

static bool
note_place(void *baton, int x, int y)
{
    apr_array_header_t *seen = baton;
    APR_ARRAY_PUSH(seen, const char *) = apr_psprintf(pool, "%d/%d", x, y);
    return true;
}

/* Of an area of level 2, with commas between. */
static const char *
list_places(mc_cache *cache)
{
    const mc_tile_key key = key_at(2, 0, 0);
    const mc_tile_range area = { 0, 0, 3, 4 };
    apr_array_header_t *seen = apr_array_make(pool, 8, sizeof(const char *));
    ck_assert(mc_cache_lists(cache, &key));
    ck_ok(mc_cache_list(cache, &key, &area, note_place, seen, &ctx));
    return apr_array_pstrcat(pool, seen, ',');
}

/* The children "a" and "c", both of which list their tiles. */
static mc_cache *
cache_of_lists(const char *xml)
{
    return cache_of_two(
        apr_pstrcat(pool, "<cache name='c' type='sqlite3'><dbfile>%s/lc.db</dbfile></cache>", xml, NULL));
}

/* Of a fast child that has forgotten, and a slow one that has lost: all that is removed by a list of it is gone. */
START_TEST(tells_each_tile_of_its_children_once)
{
    static const char *const kinds[] = { "multitier", "fallback" };
    for (int i = 0; i < 2; i++) {
        mc_cache *cache = cache_of_lists(
            apr_psprintf(pool, "<cache name='l' type='%s'><cache>a</cache><cache>c</cache></cache>", kinds[i]));
        const mc_tile_key near = key_at(2, 0, 1), far = key_at(2, 1, 2), both = key_at(2, 2, 2),
                          other = key_at(2, 3, 3);
        put_text(child_named("a"), &near, "near");
        put_text(child_named("c"), &far, "far");
        put_text(child_named("a"), &both, "both");
        put_text(child_named("c"), &both, "both");
        put_text(child_named("c"), &other, "beyond the area");
        ck_assert_str_eq(list_places(cache), "0/1,1/2,2/2");
        ck_assert_ptr_eq(mc_cache_whole(cache, &near), child_named(i == 0 ? "c" : "a"));
        restart_cache_test();
    }
}
END_TEST

START_TEST(a_composite_is_the_child_for_the_level)
{
    mc_cache *cache = cache_of_lists("<cache name='l' type='composite'><cache max-zoom='1'>b</cache>"
                                     "<cache min-zoom='2' max-zoom='2'>c</cache></cache>");
    const mc_tile_key coarse = key_at(1, 1, 1), fine = key_at(2, 1, 1), none = key_at(3, 1, 1);
    put_text(cache, &coarse, "coarse");
    put_text(cache, &fine, "fine");
    ck_assert_str_eq(list_places(cache), "1/1");
    ck_assert(!mc_cache_lists(cache, &coarse)); /* a disk cache does not */
    ck_assert_ptr_eq(mc_cache_whole(cache, &coarse), child_named("b"));
    ck_assert_ptr_eq(mc_cache_whole(cache, &fine), cache); /* SQLite files are found by the composite */
    ck_assert(mc_cache_lists(cache, &none));
    ck_assert_ptr_eq(mc_cache_whole(cache, &none), cache);
}
END_TEST

static mc_error *
refuse_removal(mc_cache *cache, const mc_tile_key *key, mc_ctx *changing)
{
    (void)cache, (void)key;
    return mc_error_create(changing->pool, MC_ERR_IO, "away");
}

/* The tile would come back from there. */
START_TEST(a_removal_that_a_child_does_not_do_is_an_error)
{
    static const char *const kinds[] = { "multitier", "fallback" };
    for (int i = 0; i < 2; i++) {
        mc_cache *cache = cache_of_two(
            apr_psprintf(pool, "<cache name='l' type='%s'><cache>a</cache><cache>b</cache></cache>", kinds[i]));
        const mc_tile_key key = key_at(2, 1, 1);
        put_text(child_named("a"), &key, "tile");
        put_text(child_named("b"), &key, "tile");
        mc_cache_ops away = *child_named("b")->ops;
        away.remove = refuse_removal;
        away.remove_all = NULL;
        child_named("b")->ops = &away;
        ck_fails(IO, mc_cache_remove(cache, &key, &ctx));
        ck_fails(IO, mc_cache_remove_all(cache, &key, 1, &ctx));
        expect_text(child_named("a"), &key, NULL);
        restart_cache_test();
    }
}
END_TEST

static mc_error *
refuse_put(mc_cache *cache, const mc_tile_write *tiles, int count, mc_ctx *changing)
{
    (void)cache, (void)tiles, (void)count;
    return mc_error_create(changing->pool, MC_ERR_IO, "away");
}

/* Readers ask the faster child first. */
START_TEST(an_old_tile_in_a_faster_child_is_replaced)
{
    mc_cache *cache = cache_of_two("<cache name='l' type='multitier'><cache>a</cache><cache>b</cache></cache>");
    const mc_tile_key key = key_at(2, 1, 1);
    mc_tile_write put = { .key = key, .data = mc_buf_attach(mc_buf_copy("newest", 6), pool) };
    put_text(child_named("a"), &key, "old");
    put_text(child_named("b"), &key, "old");
    mc_cache_ops away = *child_named("a")->ops;
    away.remove = refuse_removal;
    away.remove_all = NULL;
    child_named("a")->ops = &away;
    put_text(cache, &key, "new");
    expect_text(cache, &key, "new");
    expect_text(child_named("b"), &key, "new");
    away.put = refuse_put;
    ck_ok(mc_cache_put(cache, &put, 1, &ctx)); /* the log tells */
    expect_text(child_named("b"), &key, "newest");
}
END_TEST

CACHE_MAIN("multitier", copies_what_it_finds, keeps_no_old_copy_of_a_reader, stores_behind,
           what_is_removed_is_not_stored_later, gives_up_in_time, without_room_stores_through,
           the_end_waits_for_what_waits, the_end_counts_what_is_lost, what_the_store_refuses_holds_up_nothing_else,
           what_the_store_refuses_is_lost_alone, a_newer_tile_of_others_stays, all_that_waiting_takes_is_counted,
           tools_store_through, remembers_what_is_absent, tells_each_tile_of_its_children_once,
           a_composite_is_the_child_for_the_level, a_removal_that_a_child_does_not_do_is_an_error,
           an_old_tile_in_a_faster_child_is_replaced)
