/* Which tiles a redis has: each once, whatever the server repeats, and none of other programs' keys. */
#include "cache_fixture.h"

#include "cache/place_sorter.h"
#include "redis_server.h"
#include "remote/redis.h"

typedef struct told_places {
    int count, most;
    uint64_t last;
    bool sorted;
} told_places;

static bool
tell_place(void *baton, int x, int y)
{
    told_places *told = baton;
    const uint64_t place = (uint64_t)y << 32 | (unsigned)x;
    told->sorted = told->sorted && (told->count == 0 || place > told->last);
    told->last = place;
    return ++told->count < told->most;
}

/* 5,000 places in a scattered order, most of them several times; `most` in memory. */
static void
sort_many_places(int most)
{
    told_places told = { .most = INT32_MAX, .sorted = true }, few = { .most = 7, .sorted = true };
    mc_place_sorter *sorter = mc_place_sorter_create(most, pool), *other = mc_place_sorter_create(most, pool);
    for (int i = 0; i < 20000; i++) {
        const int place = (int)((uint32_t)i * 2654435761u >> 7) % 5000;
        ck_ok(mc_place_sorter_add(sorter, place % 50 * 40000000, place / 50, pool));
        ck_ok(mc_place_sorter_add(other, i, 0, pool));
    }
    for (int place = 0; place < 5000; place++)
        ck_ok(mc_place_sorter_add(sorter, place % 50 * 40000000, place / 50, pool));
    ck_ok(mc_place_sorter_visit(sorter, tell_place, &told, &ctx));
    ck_assert(told.count == 5000 && told.sorted);
    ck_ok(mc_place_sorter_visit(other, tell_place, &few, &ctx));
    ck_assert(few.count == 7 && few.sorted && few.last == 6);
}

START_TEST(places_are_told_once)
{
    sort_many_places(0);
    sort_many_places(64);
    sort_many_places(4999);
    told_places none = { .most = 1 };
    ck_ok(mc_place_sorter_visit(mc_place_sorter_create(0, pool), tell_place, &none, &ctx));
    ck_assert_int_eq(none.count, 0);
}
END_TEST

static mc_cache *
redis_at(const redis_server_process *server, const char *more)
{
    return cache_of(apr_psprintf(pool, "<cache name='c' type='redis'><host>127.0.0.1</host><port>%d</port>%s</cache>",
                                 server->port, more));
}

static int
count_listed(mc_cache *cache, const mc_tile_key *level)
{
    const mc_tile_range all = { 0, 0, 1000000, 1000000 };
    seen_tiles met = { .most = 100000 };
    ck_assert(mc_cache_lists(cache, level));
    ck_ok(mc_cache_list(cache, level, &all, see_tile, &met, &ctx));
    return met.count;
}

START_TEST(keys_of_others_are_no_tiles)
{
    static const char *const others[] = {
        "ts/G/3/01/2/png",         "ts/G/3/1/2/pngx", "ts/G/3/1/2",      "ts/G/3/9/2/png",
        "ts/G/3/1/99/png",         "ts/G/3/-1/2/png", "ts/G/3/",         "ts/G/3/1/2/3/png",
        "ts/G/31/1/2/png",         "ts/H/3/1/2/png",  "tts/G/3/1/2/png", "ts/G/3/1e0/2/png",
        "ts/G/3/99999999999/2/png"
    };
    redis_server_process server = { .folder = "" };
    start_redis(&server, (const char *const[]){ NULL });
    mc_cache *cache = redis_at(&server, "");
    const mc_tile_key first = key_at(3, 2, 1), second = key_at(3, 7, 7), level = key_at(3, 0, 0);
    put_text(cache, &first, "one");
    put_text(cache, &second, "two");
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
        ask_redis(&server, apr_psprintf(pool, "SET %s x", others[i]));
    char *longer = apr_palloc(pool, 30001);
    memset(longer, '1', 30000);
    longer[30000] = '\0';
    ask_redis(&server, apr_psprintf(pool, "SET ts/G/3/%s x", longer));
    ck_assert_int_eq(count_listed(cache, &level), 2);
    stop_redis(&server);
}
END_TEST

/* More keys than a page has, and a table that the server makes larger and smaller meanwhile. */
START_TEST(all_tiles_are_told_by_pages)
{
    redis_server_process server = { .folder = "" };
    mc_tile_write puts[32 * 32];
    start_redis(&server, (const char *const[]){ NULL });
    mc_cache *cache = redis_at(&server, "");
    for (int i = 0; i < 32 * 32; i++)
        puts[i] = (mc_tile_write){ .key = key_at(5, i % 32, i / 32), .data = buf_of_text("t") };
    ck_ok(mc_cache_put(cache, puts, 32 * 32, &ctx));
    ck_assert_int_eq(count_listed(cache, &puts[0].key), 32 * 32);
    stop_redis(&server);
}
END_TEST

/* Bytes that mean something in a pattern, escaped keys, and keys that are hashes. */
START_TEST(names_are_no_patterns)
{
    static const char *const names[] = { "t[s]*", "t?", "a\\b", "^", "a/b", "%", "t s" };
    redis_server_process server = { .folder = "" };
    start_redis(&server, (const char *const[]){ NULL });
    mc_cache *cache = redis_at(&server, "");
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        mc_tile_key key = key_at(3, (int)i, 1);
        key.tileset = names[i];
        put_text(cache, &key, "text");
    }
    mc_tile_key tile = key_at(3, 1, 1);
    tile.tileset = "tss";
    put_text(cache, &tile, "text");
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        mc_tile_key key = key_at(3, 0, 0);
        key.tileset = names[i];
        ck_assert_int_eq(count_listed(cache, &key), 1);
    }
    tile.tileset = apr_psprintf(pool, "%05000d", 1);
    ck_assert(!mc_cache_lists(cache, &tile));
    stop_redis(&server);
}
END_TEST

START_TEST(who_may_not_list_is_told)
{
    redis_server_process server = { .folder = "" };
    start_redis(&server, (const char *const[]){ NULL });
    ask_redis(&server, "ACL SETUSER reader on >secret ~* +get +mget +set +setex +exists +del +cluster|slots");
    ask_redis(&server, "ACL SETUSER less on >secret ~* +get +mget +scan");
    const mc_tile_range all = { 0, 0, 8, 8 };
    const mc_tile_key level = key_at(3, 0, 0);
    seen_tiles met = { .most = 100000 };
    for (int i = 0; i < 2; i++) {
        mc_cache *cache = redis_at(&server, i == 0 ? "<user>reader</user><password>secret</password>"
                                                   : "<user>less</user><password>secret</password>");
        mc_error *error = mc_cache_list(cache, &level, &all, see_tile, &met, &ctx);
        ck_assert_ptr_nonnull(error);
        ck_assert_ptr_nonnull(strstr(mc_error_chain(error, pool), "NOPERM"));
        ck_assert_ptr_null(strstr(mc_error_chain(error, pool), "secret"));
    }
    stop_redis(&server);
}
END_TEST

CACHE_MAIN("keyvalue_list", places_are_told_once, keys_of_others_are_no_tiles, all_tiles_are_told_by_pages,
           names_are_no_patterns, who_may_not_list_is_told)
