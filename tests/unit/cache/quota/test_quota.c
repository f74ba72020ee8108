/* <max_size>: what the books know, what goes and what stays, without the thread; time is set in the books. */
#include "cache_fixture.h"

#include <sys/stat.h>

#include "base/clock.h"
#include "base/hash.h"
#include "cache/quota/quota_private.h"

static const char *const layouts[] = { "tilecache", "arcgis", "worldwind" };
static const char *const kinds[] = { "disk", "sqlite3", "mbtiles" };
enum { TILE_BYTES = 3900, SIDE = 32 /* tiles of level 5 */ };

static mc_cache *
limited(const char *kind, const char *inner)
{
    const bool disk = strcmp(kind, "disk") == 0;
    mc_cache *cache = cache_of(apr_psprintf(
        pool, "<cache name='c' type='%s' %s>%s%s/store%s%s<max_size>1M</max_size></cache>", kind, disk ? inner : "",
        disk ? "<base>" : "<dbfile>", cache_folder, disk ? "</base>" : "</dbfile>", disk ? "" : inner));
    mc_cache_use use = { .tileset = "tiles", .grid = &cache_grid, .extension = "png" };
    mc_uses_add_tileset(cache->uses, &use);
    return cache;
}

/* Bytes that no other tile has. */
static void
put_bytes(mc_cache *cache, int x, int y, int size)
{
    char *bytes = apr_palloc(pool, (size_t)size);
    for (int i = 0; i < size; i++)
        bytes[i] = (char)(x * 31 + y * 17 + i);
    memcpy(bytes, "\x89PNG\r\n\x1a\n", 8);
    snprintf(bytes + 8, 32, "%d/%d", x, y);
    mc_tile_write tile = { .key = key_at(5, x, y), .data = mc_buf_attach(mc_buf_copy(bytes, (size_t)size), pool) };
    ck_ok(mc_cache_put(cache, &tile, 1, &ctx));
}

static void
put_large(mc_cache *cache, int x, int y)
{
    put_bytes(cache, x, y, TILE_BYTES);
}

static void
fill(mc_cache *cache)
{
    for (int x = 0; x < SIDE; x++)
        for (int y = 0; y < SIDE; y++)
            put_large(cache, x, y);
}

static bool
is_stored(mc_cache *cache, int x, int y)
{
    mc_tile_key key = key_at(5, x, y);
    bool exists;
    ck_ok(mc_cache_exists(&exists, cache, &key, &ctx));
    return exists;
}

static int
count_stored(mc_cache *cache)
{
    int count = 0;
    for (int x = 0; x < SIDE; x++)
        for (int y = 0; y < SIDE; y++)
            count += is_stored(cache, x, y);
    return count;
}

/* Runs a statement on the books as another process would; the number of its first column. */
static int64_t
ask(const mc_cache *cache, const char *sql)
{
    mc_handle *books;
    sqlite3_stmt *statement;
    int64_t number;
    ck_ok(mc_books_open(&books, &cache->quota->books, &ctx));
    ck_ok(mc_handle_statement(&statement, books, sql, pool));
    ck_ok(mc_handle_number(&number, books, statement, "test", pool));
    mc_handle_release(books, true);
    return number;
}

static void
settle(mc_cache *cache)
{
    ck_ok(mc_quota_flush(cache->quota, &ctx));
    ck_ok(mc_quota_round(cache->quota, &ctx));
}

/* So much time passes for all blocks, but none for those that are used afterwards. */
static void
let_time_pass(const mc_cache *cache)
{
    (void)ask(cache, "UPDATE blocks SET used = used - 1000, stored = stored - 1000");
}

static void
check_least_recent(int number)
{
    mc_cache *cache = limited(kinds[number], "");
    mc_tile_key key = key_at(5, 9, 17);
    mc_tile *tile;
    fill(cache);
    settle(cache);
    ck_assert_int_eq(count_stored(cache), SIDE * SIDE); /* all of them were just written */
    ck_assert_int_eq(ask(cache, "SELECT count(*) FROM blocks"), 16);
    /* For all but one block, in which somebody has just said to store. */
    (void)ask(cache, "UPDATE blocks SET used = used - 1000, stored = stored - 1000 WHERE x < 24 OR y < 24");
    mc_uses_set_time(cache->uses, apr_time_sec(apr_time_now()) + 1);
    ck_ok(mc_cache_get(&tile, cache, &key, &ctx, pool));
    settle(cache);
    int64_t total;
    ck_ok(mc_quota_total(&total, cache->quota, &ctx));
    ck_assert_int_ge(total, (1 << 20) / 100 * 90); /* never below the low water mark */
    ck_assert_int_le(total, (1 << 20) / 100 * 90 + TILE_BYTES + 4096);
    ck_assert(!cache->quota->removing);
    ck_assert(is_stored(cache, 9, 17) && is_stored(cache, 15, 23));
    ck_assert(is_stored(cache, 31, 31) && !is_stored(cache, 0, 0));
    ck_assert_int_eq(ask(cache, "SELECT value FROM state WHERE name = 'removed'"), SIDE * SIDE - count_stored(cache));
    expect_text(
        cache, &(mc_tile_key){ .tileset = "none", .grid = &cache_grid, .z = 4, .extension = "png", .renderable = true },
        NULL);
}

/* A tile that is larger than what lies between limit and low water mark goes where the limit needs it, and only there.
 */
START_TEST(large_tiles_go_for_the_limit_alone)
{
    enum { LARGE = 190 << 10, TILES = 7, LEFT = 5 };
    for (int i = 0; i < 3; i++) {
        restart_cache_test();
        mc_cache *cache = limited(kinds[i], "");
        int64_t total = 0;
        for (int x = 0; x < TILES; x++)
            put_bytes(cache, x, 1, LARGE);
        settle(cache);
        let_time_pass(cache);
        for (int round = 0; round < 2; round++) {
            settle(cache);
            ck_ok(mc_quota_total(&total, cache->quota, &ctx));
            ck_assert_int_le(total, 1 << 20);
            ck_assert_int_ge(total, (1 << 20) / 100 * 90);
            ck_assert_int_eq(count_stored(cache), LEFT);
            ck_assert(!cache->quota->removing);
        }
    }
}
END_TEST

START_TEST(the_least_recently_used_goes)
{
    for (int i = 0; i < 3; i++) {
        restart_cache_test();
        check_least_recent(i);
    }
}
END_TEST

/* The books have gone, or are of no use: what is there is found, by the same names as those of requests. */
static void
check_found(int number)
{
    static const char *const spoil[] = { "rm %s/store.books %s/store/mapcache.books",
                                         "echo nonsense | tee %s/store.books > %s/store/mapcache.books" };
    const char *kind = number < 3 ? "disk" : kinds[1 + number % 2], *layout = number < 3 ? layouts[number] : "";
    mc_cache *cache = limited(kind, number < 3 ? apr_psprintf(pool, "layout='%s'", layout) : "");
    for (int x = 0; x < 10; x++)
        put_large(cache, x, 3);
    settle(cache);
    const int64_t blocks = ask(cache, "SELECT count(*) FROM blocks"),
                  bytes = ask(cache, "SELECT value FROM state WHERE name = 'bytes'");
    ck_assert_int_eq(blocks, 2);
    for (int way = 0; way < 2; way++) {
        mc_handles_destroy(process.handles);
        process.handles = mc_handles_create(16);
        run_shell(apr_psprintf(pool, "{ mkdir -p %s/store; %s; } 2> /dev/null; true", cache_folder,
                               mc_replace_all(spoil[way], "%s", cache_folder, pool)));
        settle(cache);
        ck_assert_int_eq(ask(cache, "SELECT count(*) FROM blocks"), blocks);
        ck_assert_int_eq(ask(cache, "SELECT value FROM state WHERE name = 'bytes'"), bytes);
        mc_tile_key key = key_at(5, 3, 3);
        mc_tile *tile;
        ck_ok(mc_cache_get(&tile, cache, &key, &ctx, pool));
        mc_uses_set_time(cache->uses, 2000000000 + way);
        ck_ok(mc_cache_get(&tile, cache, &key, &ctx, pool));
        ck_ok(mc_quota_flush(cache->quota, &ctx));
        ck_assert_int_eq(ask(cache, "SELECT count(*) FROM blocks"), blocks); /* the request's block is the survey's */
    }
}

START_TEST(what_was_there_before_is_found)
{
    for (int i = 0; i < 5; i++) {
        restart_cache_test();
        check_found(i);
    }
}
END_TEST

/* A survey that was cut off goes on behind its place; dimensions have series of their own. */
static void
check_dimensions(int number)
{
    mc_cache *cache = limited(kinds[number], "");
    mc_dimension_value values[] = { { "time", "2020.01", false }, { "height", "a/b", false } };
    mc_tile_key key = key_at(3, 1, 1);
    key.dimensions = values;
    key.dimension_count = 2;
    put_text(cache, &key, "one");
    values[0].value = "2021";
    put_text(cache, &key, "two");
    settle(cache);
    ck_assert_int_eq(ask(cache, "SELECT count(*) FROM blocks"), 2);
    (void)ask(cache, "DELETE FROM blocks");
    (void)ask(cache, "DELETE FROM state WHERE name IN ('surveyed', 'survey')");
    settle(cache);
    ck_assert_int_eq(ask(cache, "SELECT count(*) FROM blocks"), 2);
    ck_assert_int_eq(ask(cache, "SELECT count(*) FROM series"), 2); /* the same names as before */
    let_time_pass(cache);
    cache->max_size = 1;
    settle(cache);
    expect_text(cache, &key, NULL);
    values[0].value = "2020.01";
    expect_text(cache, &key, NULL);
}

START_TEST(dimensions_are_found)
{
    for (int i = 0; i < 2; i++) {
        restart_cache_test();
        check_dimensions(i);
    }
}
END_TEST

/* Of <deduplicate>: a content goes with its last tile, and not before. */
static void
check_shared(int number)
{
    const char *kind = number == 0 ? "sqlite3" : "mbtiles";
    mc_cache *cache = limited(kind, "<deduplicate>true</deduplicate>");
    mc_tile_key one = key_at(5, 1, 1), other = key_at(5, 20, 20);
    put_text(cache, &one, "the same");
    put_text(cache, &other, "the same");
    settle(cache);
    let_time_pass(cache);
    expect_text(cache, &other, "the same");
    mc_quota_removal removal = { .may = 1 << 30, .must = 1 << 30 };
    one.renderable = other.renderable = true;
    ck_ok(cache->quota->store->evict(&removal, cache, &one, 1, &ctx));
    ck_assert_int_eq(removal.gone.tiles, 1);
    expect_text(cache, &other, "the same");
    run_shell("test $(sqlite3 %s/store 'select count(*) from images') = 1");
    ck_ok(cache->quota->store->evict(&removal, cache, &other, 1, &ctx));
    ck_assert_int_eq(removal.gone.tiles, 2);
    run_shell("test $(sqlite3 %s/store 'select count(*) from images') = 0");
}

START_TEST(shared_contents_go_last)
{
    for (int i = 0; i < 2; i++) {
        restart_cache_test();
        check_shared(i);
    }
}
END_TEST

/* What is deleted by mapcache itself counts no more; empty folders go with the last tile, and come again. */
START_TEST(removals_are_measured)
{
    mc_cache *cache = limited("disk", "");
    mc_tile_key key = key_at(5, 3, 3);
    put_large(cache, 3, 3);
    put_large(cache, 4, 4);
    settle(cache);
    const int64_t both = ask(cache, "SELECT value FROM state WHERE name = 'bytes'");
    ck_assert_int_ge(both, 2 * TILE_BYTES);
    ck_ok(mc_cache_remove(cache, &key, &ctx));
    settle(cache);
    ck_assert_int_eq(ask(cache, "SELECT value FROM state WHERE name = 'bytes'"), both / 2);
    let_time_pass(cache);
    cache->max_size = 1;
    settle(cache);
    ck_assert_int_eq(ask(cache, "SELECT value FROM state WHERE name = 'bytes'"), 0);
    run_shell("test -z \"$(find %s/store -name 004)\"");
    put_large(cache, 3, 3);
    ck_assert(is_stored(cache, 3, 3));
}
END_TEST

/* As behind a folder that the server may not search: the tile stays, and all others go on being kept to the limit. */
START_TEST(what_cannot_be_looked_at_stops_no_round)
{
    mc_cache *cache = limited("disk", "");
    put_large(cache, 3, 3);
    put_large(cache, 20, 20);
    run_shell(
        "folder=$(find %s/store -name 003) && rm -r \"$folder\" && ln -s 003 \"$folder\""); /* ELOOP, also for root */
    settle(cache);
    ck_assert(is_stored(cache, 20, 20));
    let_time_pass(cache);
    cache->max_size = 1;
    settle(cache);
    ck_assert(!is_stored(cache, 20, 20));
    run_shell("rm $(find %s/store -name 003)");
}
END_TEST

START_TEST(one_keeper_at_a_time)
{
    mc_cache *cache = limited("disk", "");
    bool mine;
    const apr_int64_t now = apr_time_sec(apr_time_now());
    apr_cpystrn(cache->quota->holder, "me", sizeof(cache->quota->holder));
    ck_ok(mc_quota_renew(&mine, cache->quota, &ctx));
    ck_assert(mine);
    (void)ask(cache, "UPDATE state SET value = 'other' WHERE name = 'holder'");
    ck_ok(mc_quota_renew(&mine, cache->quota, &ctx));
    ck_assert(!mine);
    (void)ask(cache, apr_psprintf(pool, "UPDATE state SET value = %" APR_INT64_T_FMT " WHERE name = 'until'", now - 1));
    ck_ok(mc_quota_renew(&mine, cache->quota, &ctx)); /* its holder has died */
    ck_assert(mine);
    (void)ask(cache, "UPDATE state SET value = 'other' WHERE name = 'holder'");
    (void)ask(cache,
              apr_psprintf(pool, "UPDATE state SET value = %" APR_INT64_T_FMT " WHERE name = 'until'", now + 9999));
    ck_ok(mc_quota_renew(&mine, cache->quota, &ctx)); /* of a clock that was set back since */
    ck_assert(mine);
}
END_TEST

static bool
is_end_near(void *baton)
{
    int *looks = baton;
    return (*looks)-- <= 0;
}

/* Wherever a round is cut off: the lease is given back, and what is left to do is done by the next round. */
START_TEST(a_round_that_is_cut_off_gives_its_lease_back)
{
    mc_cache *cache = limited("disk", "");
    int cut = 0, cut_below_limit = 0;
    fill(cache);
    settle(cache);
    let_time_pass(cache);
    for (int i = 0; i < 100; i++) {
        int looks = i;
        mc_ctx own = ctx;
        own.abandoned = is_end_near;
        own.abandoned_baton = &looks;
        mc_error *error = mc_quota_round(cache->quota, &own);
        cut += error != MC_OK;
        cut_below_limit += error != MC_OK && count_stored(cache) < SIDE * SIDE;
        ck_assert_int_eq(ask(cache, "SELECT sum(value) FROM state WHERE name = 'until'"), 0);
    }
    ck_assert_int_gt(cut, 0);
    ck_assert_int_gt(cut_below_limit, 0);
    settle(cache);
    ck_assert_int_le(ask(cache, "SELECT value FROM state WHERE name = 'bytes'"), 1 << 20);
    ck_assert_int_eq(ask(cache, "SELECT value FROM state WHERE name = 'removed'"), SIDE * SIDE - count_stored(cache));
}
END_TEST

/* A keeper was killed between removing and writing that down: what it has removed is not removed twice. */
START_TEST(what_a_killed_keeper_has_removed_counts)
{
    mc_cache *cache = limited("disk", "");
    fill(cache);
    settle(cache);
    let_time_pass(cache);
    (void)ask(cache, "UPDATE blocks SET used = used - 1000 WHERE x < 16");
    run_shell("rm -r $(find %s/store -type d -path '*/05/000/000/00[0-9]' -o -type d -path '*/05/000/000/01[0-5]')");
    ck_assert_int_eq(count_stored(cache), SIDE * SIDE / 2);
    settle(cache);
    const int64_t bytes = ask(cache, "SELECT value FROM state WHERE name = 'bytes'");
    ck_assert_int_le(bytes, 1 << 20);
    ck_assert_int_ge(bytes, (1 << 20) / 100 * 90);
    ck_assert_int_eq(bytes, (int64_t)count_stored(cache) * 4096);
}
END_TEST

START_TEST(uses_of_the_future_are_uses_of_now)
{
    mc_cache *cache = limited("disk", "");
    put_large(cache, 3, 3);
    (void)ask(cache, "UPDATE blocks SET used = used + 100000, stored = stored + 100000");
    settle(cache);
    const apr_int64_t now = apr_time_sec(apr_time_now());
    ck_assert_int_le(ask(cache, "SELECT max(used) FROM blocks"), now);
    ck_assert_int_le(ask(cache, "SELECT max(stored) FROM blocks"), now);
}
END_TEST

/* The books are held while tiles of the store are removed: whatever the paths of both are, nobody waits for himself. */
START_TEST(books_and_store_have_locks_of_their_own)
{
    enum { LOCKS = 64 /* that files share by the hashes of their paths */ };
    const char *store, *books;
    int number = 0;
    do {
        store = apr_psprintf(pool, "%s/store%d", cache_folder, number++);
        books = apr_pstrcat(pool, store, ".books", NULL);
    } while (mc_hash64(store, strlen(store), 0) % LOCKS != mc_hash64(books, strlen(books), 0) % LOCKS);
    mc_cache *cache = cache_of(
        apr_psprintf(pool, "<cache name='c' type='sqlite3'><dbfile>%s</dbfile><max_size>1M</max_size></cache>", store));
    put_large(cache, 1, 1);
    settle(cache);
    let_time_pass(cache);
    cache->max_size = 1;
    ctx.deadline = mc_clock_now() + 10 * APR_USEC_PER_SEC;
    settle(cache);
    ctx.deadline = 0;
    ck_assert(!is_stored(cache, 1, 1));
}
END_TEST

/* Rows that nobody of us has written: no tile outside of the cache is touched, and the rows go. */
START_TEST(hostile_books_harm_nothing)
{
    mc_cache *cache = limited("disk", "");
    put_large(cache, 3, 3);
    settle(cache);
    (void)ask(cache, "INSERT INTO series VALUES(99, '../../x', '..', '../..', 'png/../../..', 0)");
    (void)ask(cache, "INSERT INTO blocks(series, z, x, y, used, bytes, changed) VALUES(99, -5, 1, 1, 1, 1, 0),"
                     " (99, 99999, 1, 1, 1, 1, 0), (99, 3, -1, 2147483640, 1, 1, 0)");
    (void)ask(cache, "INSERT INTO series VALUES(98, '../out', 'G', '', 'png', 0)");
    (void)ask(cache, "INSERT INTO blocks(series, z, x, y, used, bytes, changed) VALUES(98, 5, 0, 0, 1, 1, 0)");
    run_shell("mkdir -p %s/out/G/05/000/000/000/000/000 && : > %s/out/G/05/000/000/000/000/000/000.png");
    cache->max_size = 1;
    let_time_pass(cache);
    settle(cache);
    ck_assert_int_eq(ask(cache, "SELECT count(*) FROM blocks"), 0);
    run_shell("test -f %s/out/G/05/000/000/000/000/000/000.png");
}
END_TEST

START_TEST(uses_wait_until_they_are_taken)
{
    mc_cache *cache = limited("disk", "");
    mc_tile_key key = key_at(5, 3, 3);
    mc_use taken[4];
    mc_uses_set_time(cache->uses, 100);
    mc_uses_note(cache->uses, &key, &ctx);
    ck_assert(mc_uses_waiting(cache->uses));
    ck_assert_int_eq(mc_uses_take(cache->uses, taken, 4, pool), 1);
    ck_assert(taken[0].time == 100 && taken[0].block.x == 0 && taken[0].block.y == 0 && !taken[0].changed);
    mc_uses_note(cache->uses, &key, &ctx); /* in the same step of time */
    ck_assert(!mc_uses_waiting(cache->uses));
    ck_assert_int_eq(mc_uses_take(cache->uses, taken + 1, 3, pool), 0);
    mc_uses_give_back(cache->uses, taken, 1);
    ck_assert_int_eq(mc_uses_take(cache->uses, taken, 4, pool), 1);
    mc_uses_set_time(cache->uses, 200);
    mc_uses_note(cache->uses, &key, &ctx);
    key.x = 8;
    mc_uses_change(cache->uses, &key, &ctx);
    ck_assert_int_eq(mc_uses_take(cache->uses, taken, 4, pool), 2);
    ck_assert(taken[0].changed != taken[1].changed);
    for (int i = 0; i < 100000; i++) { /* more blocks than the table has: what does not fit is left out */
        key.x = i * 8;
        mc_uses_note(cache->uses, &key, &ctx);
    }
    int all = 0, some;
    while ((some = mc_uses_take(cache->uses, taken, 4, pool)) == 4)
        all += some;
    ck_assert_int_gt(all + some, 10000);
    key.x = 80000000;
    mc_uses_note(cache->uses, &key, &ctx); /* there is room again */
    ck_assert_int_eq(mc_uses_take(cache->uses, taken, 4, pool), 1);
}
END_TEST

START_TEST(nonsense_is_refused)
{
    static const char *const bad[] = {
        "<cache name='c' type='disk'><base>/tmp/x</base><max_size>0</max_size></cache>",
        "<cache name='c' type='disk'><base>/tmp/x</base><max_size>20</max_size></cache>",
        "<cache name='c' type='disk'><base>/tmp/x</base><max_size>20 bananas</max_size></cache>",
        "<cache name='c' type='disk'><base>/tmp/x</base><max_size>-1G</max_size></cache>",
        "<cache name='c' type='disk' "
        "layout='template'><template>/{tileset}/{z}/{x}/{y}</template><max_size>1G</max_size></cache>",
        "<cache name='c' "
        "type='sqlite3'><dbfile>/tmp/x.db</dbfile><immutable>true</immutable><max_size>1G</max_size></cache>",
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        ck_assert_int_eq(cache_complaint_of(bad[i]), MC_REFUSED);
}
END_TEST

CACHE_MAIN("quota", the_least_recently_used_goes, large_tiles_go_for_the_limit_alone, what_was_there_before_is_found,
           dimensions_are_found, shared_contents_go_last, removals_are_measured,
           what_cannot_be_looked_at_stops_no_round, one_keeper_at_a_time, a_round_that_is_cut_off_gives_its_lease_back,
           what_a_killed_keeper_has_removed_counts, uses_of_the_future_are_uses_of_now, hostile_books_harm_nothing,
           books_and_store_have_locks_of_their_own, uses_wait_until_they_are_taken, nonsense_is_refused)
