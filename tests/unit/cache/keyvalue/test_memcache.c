/* Tiles in memcached: real servers, stopped and killed ones, and one that lies. */
#include "cache_fixture.h"

#include <arpa/inet.h>
#include <signal.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "liar_server.h"
#include "memcached_server.h"
#include "remote/memcached.h"

static pid_t server;
static int port;

static mc_cache *
store_at(const int *ports, int count, const char *inner)
{
    const char *servers = "";
    for (int i = 0; i < count; i++)
        servers = apr_psprintf(pool, "%s<server><host>127.0.0.1</host><port>%d</port></server>", servers, ports[i]);
    return cache_of(apr_pstrcat(pool, "<cache name='c' type='memcache'>", servers, inner, "</cache>", NULL));
}

static mc_cache *
store_with(const char *inner)
{
    return store_at(&port, 1, inner);
}

static void
start_server(void)
{
    server = start_memcached(&port);
}

static void
stop_server(void)
{
    stop_memcached(server);
}

START_TEST(memcache_conforms)
{
    start_server();
    conform_cache(store_with(""));
    ask_port(port, "flush_all\r\n", 11, "\r\n");
    conform_cache(store_with("<memory>60</memory><detect_blank/>"));
    int ports[3] = { port };
    pid_t others[2] = { start_memcached(&ports[1]), start_memcached(&ports[2]) };
    ask_port(port, "flush_all\r\n", 11, "\r\n");
    conform_cache(store_at(ports, 3, ""));
    stop_memcached(others[0]);
    stop_memcached(others[1]);
    stop_server();
}
END_TEST

/* What MapCache stores: the tile, then the time in microseconds, little-endian. */
START_TEST(values_are_those_of_mapcache)
{
    start_server();
    mc_cache *cache = store_with("<detect_blank/>");
    mc_tile_key key = key_at(3, 5, 6), other = key_at(3, 6, 6), blank = key_at(3, 7, 6);
    const uint8_t colour[4] = { 1, 2, 3, 255 };
    apr_time_t before = apr_time_now();
    put_text(cache, &key, "tile");
    const char *answer = ask_port(port, "get ts/G/3/6/5/png\r\n", 20, "END\r\n");
    ck_assert_int_eq(strncmp(answer, "VALUE ts/G/3/6/5/png 0 12\r\ntile", 31), 0);
    int64_t stored;
    memcpy(&stored, answer + 31, 8);
    ck_assert(stored >= before && stored <= apr_time_now());
    put_colour(cache, &blank, colour);
    answer = ask_port(port, "get ts/G/3/6/7/png\r\n", 20, "END\r\n");
    ck_assert_int_eq(memcmp(answer, "VALUE ts/G/3/6/7/png 0 13\r\n#\1\2\3\xff", 32), 0);
    const int64_t time = INT64_C(1600000000000001);
    char order[] = "set ts/G/3/6/6/png 0 0 11\r\noldTTTTTTTT\r\n";
    memcpy(strstr(order, "TTTT"), &time, 8);
    ck_assert_str_eq(ask_port(port, order, sizeof(order) - 1, "\r\n"), "STORED\r\n");
    mc_tile *tile;
    ck_ok(mc_cache_get(&tile, cache, &other, &ctx, pool));
    ck_assert_ptr_nonnull(tile);
    ck_assert_int_eq(tile->mtime, INT64_C(1600000000000000));
    ck_assert_uint_eq(tile->data->size, 3);
    ck_assert_int_eq(memcmp(tile->data->data, "old", 3), 0);
    ck_ok(mc_cache_get(&tile, cache, &blank, &ctx, pool));
    ck_assert(tile->blank && memcmp(tile->bgra, colour, 4) == 0);
    stop_server();
}
END_TEST

/* Values that no tile cache has stored are never served. */
START_TEST(other_values_are_no_tiles)
{
    static const char *const values[] = { "",
                                          "a",
                                          "12345678",
                                          ("\x89PNG....IEND\xae"
                                           "B`\x82"),
                                          "tile\0\0\0\0\0\0\0\0",
                                          "tile\xff\xff\xff\xff\xff\xff\xff\x7f" };
    static const size_t sizes[] = { 0, 1, 8, 16, 12, 12 };
    start_server();
    mc_cache *cache = store_with("");
    mc_tile_key key = key_at(3, 5, 6);
    for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++) {
        char order[200];
        int head = snprintf(order, sizeof(order), "set ts/G/3/6/5/png 0 0 %zu\r\n", sizes[i]);
        memcpy(order + head, values[i], sizes[i]);
        memcpy(order + head + sizes[i], "\r\n", 2);
        ck_assert_str_eq(ask_port(port, order, (size_t)head + sizes[i] + 2, "\r\n"), "STORED\r\n");
        mc_tile *tile;
        ck_fails(CORRUPT, mc_cache_get(&tile, cache, &key, &ctx, pool));
    }
    stop_server();
}
END_TEST

/* Seconds that a key has left; -1: it stays. */
static long
time_left(const char *key)
{
    const char *order = apr_psprintf(pool, "mg %s t\r\n", key);
    const char *answer = ask_port(port, order, strlen(order), "\r\n");
    ck_assert_int_eq(strncmp(answer, "HD t", 4), 0);
    return strtol(answer + 4, NULL, 10);
}

START_TEST(tiles_go_when_they_are_of_no_use)
{
    static const int lifetimes[] = { 0, 1000, MC_MEMCACHED_EXPIRY_MAX, 400 * 24 * 3600 };
    start_server();
    mc_cache *cache = store_with(""), *shortly = store_with("<expires>5000</expires>");
    mc_tile_write tile = { .key = key_at(3, 5, 6), .data = mc_buf_attach(mc_buf_copy("tile", 4), pool) };
    for (size_t i = 0; i < sizeof(lifetimes) / sizeof(*lifetimes); i++) {
        tile.lifetime = lifetimes[i];
        ck_ok(mc_cache_put(cache, &tile, 1, &ctx));
        long left = time_left("ts/G/3/6/5/png");
        ck_assert_msg(lifetimes[i] == 0 ? left == -1 : left <= lifetimes[i] + 2 && left > lifetimes[i] - 200, "%ld",
                      left);
        ck_ok(mc_cache_put(shortly, &tile, 1, &ctx));
        left = time_left("ts/G/3/6/5/png");
        ck_assert(lifetimes[i] != 0 || (left > 4800 && left <= 5002));
    }
    stop_server();
}
END_TEST

START_TEST(all_tiles_of_a_map_come_in_one_round_trip)
{
    liar_server liar;
    mc_tile_key keys[64];
    mc_tile *tiles[64] = { NULL };
    start_liar(&liar, "END\r\n", 5, 0, 100);
    mc_cache *cache = store_at(&liar.port, 1, "");
    for (int i = 0; i < 64; i++)
        keys[i] = key_at(3, i % 8, i / 8);
    ck_assert(mc_cache_gets_all(cache));
    ck_ok(mc_cache_get_all(tiles, cache, keys, 64, &ctx, pool));
    ck_assert_int_eq(liar.asked, 1);
    mc_remotes_destroy(process.remotes);
    process.remotes = mc_remotes_create();
    stop_liar(&liar);
    start_server();
    cache = store_with("");
    for (int i = 0; i < 64; i += 3)
        put_text(cache, &keys[i], apr_psprintf(pool, "tile %d", i));
    ck_ok(mc_cache_get_all(tiles, cache, keys, 64, &ctx, pool));
    for (int i = 0; i < 64; i++)
        if (i % 3 == 0)
            ck_assert_int_eq(memcmp(tiles[i]->data->data, apr_psprintf(pool, "tile %d", i), tiles[i]->data->size), 0);
        else
            ck_assert_ptr_null(tiles[i]);
    stop_server();
}
END_TEST

/* Hundreds of keys, and tiles of megabytes together: in as many requests as that takes. */
START_TEST(many_and_large_tiles_are_parted)
{
    enum { MANY = 700 };
    start_server();
    mc_cache *cache = store_with("");
    mc_tile_write *puts = apr_pcalloc(pool, sizeof(*puts) * MANY);
    mc_tile_key keys[MANY];
    mc_tile *tiles[MANY] = { NULL };
    for (int i = 0; i < MANY; i++) {
        puts[i].key = keys[i] = key_at(5, i % 32, i / 32);
        puts[i].data = mc_buf_attach(mc_buf_create(20000, 20000), pool);
        ck_ok(mc_buf_reserve(puts[i].data, 20000, pool));
        memset(puts[i].data->data, 'A' + i % 26, 20000);
        puts[i].data->size = 20000;
    }
    ck_ok(mc_cache_put(cache, puts, MANY, &ctx));
    ck_ok(mc_cache_get_all(tiles, cache, keys, MANY, &ctx, pool));
    for (int i = 0; i < MANY; i++) {
        ck_assert_ptr_nonnull(tiles[i]);
        ck_assert_uint_eq(tiles[i]->data->size, 20000);
        ck_assert_int_eq(memcmp(tiles[i]->data->data, puts[i].data->data, 20000), 0);
    }
    stop_server();
}
END_TEST

START_TEST(a_tile_that_is_too_large_says_so)
{
    enum { LARGE = 3 << 20 };
    start_server();
    mc_cache *cache = store_with("");
    mc_tile_key large = key_at(3, 1, 1), small = key_at(3, 2, 1);
    put_text(cache, &large, "old");
    mc_tile_write puts[] = { { .key = small, .data = mc_buf_attach(mc_buf_copy("small", 5), pool) },
                             { .key = large, .data = mc_buf_attach(mc_buf_create(LARGE, LARGE), pool) } };
    ck_ok(mc_buf_reserve(puts[1].data, LARGE, pool));
    memset(puts[1].data->data, 'x', LARGE);
    puts[1].data->size = LARGE;
    mc_error *error = mc_cache_put(cache, puts, 2, &ctx);
    ck_assert_ptr_nonnull(error);
    ck_assert_int_eq(error->kind, MC_ERR_IO);
    ck_assert_ptr_nonnull(strstr(error->message, "cache \"c\" does not take a tile of 3145728 bytes"));
    ck_assert_ptr_nonnull(strstr(error->message, "too large"));
    expect_text(cache, &large, NULL); /* not what was there before */
    expect_text(cache, &small, "small");
    stop_server();
}
END_TEST

START_TEST(a_stalled_server_holds_nobody_up)
{
    start_server();
    mc_cache *cache = store_with("<timeout>0.6</timeout>");
    mc_tile_key key = key_at(3, 1, 1);
    mc_tile *tile;
    int stopped;
    put_text(cache, &key, "tile");
    kill(server, SIGSTOP);
    ck_assert_int_eq(waitpid(server, &stopped, WUNTRACED), server);
    ctx.deadline = mc_clock_now() + 100000;
    apr_time_t begin = mc_clock_now();
    ck_fails(UNAVAILABLE, mc_cache_get(&tile, cache, &key, &ctx, pool)); /* the request's own hurry */
    ck_assert_int_ge(mc_clock_now() - begin, 100000);
    ctx.deadline = 0;
    begin = mc_clock_now();
    ck_fails(UNAVAILABLE, mc_cache_get(&tile, cache, &key, &ctx, pool));
    ck_assert_int_ge(mc_clock_now() - begin, 600000);
    begin = mc_clock_now();
    mc_error *error = mc_cache_get(&tile, cache, &key, &ctx, pool); /* at once: the server is left alone */
    ck_assert_ptr_nonnull(strstr(mc_error_chain(error, pool), "is left alone for a while"));
    kill(server, SIGCONT);
    while (mc_cache_get(&tile, cache, &key, &ctx, pool) != MC_OK)
        usleep(20000);
    expect_text(cache, &key, "tile");
    stop_server();
}
END_TEST

/* Where every request has little time, none of them alone says that the server is away. */
START_TEST(many_late_answers_tell_of_the_server)
{
    start_server();
    mc_cache *cache = store_with("");
    mc_tile_key key = key_at(3, 1, 1);
    mc_error *error = MC_OK;
    mc_tile *tile;
    int stopped, asked = 0;
    put_text(cache, &key, "tile");
    kill(server, SIGSTOP);
    ck_assert_int_eq(waitpid(server, &stopped, WUNTRACED), server);
    do {
        ctx.deadline = mc_clock_now() + 20000;
        error = mc_cache_get(&tile, cache, &key, &ctx, pool);
        ck_assert_ptr_nonnull(error);
        ck_assert_int_lt(++asked, 20);
    } while (strstr(mc_error_chain(error, pool), "is left alone for a while") == NULL);
    ck_assert_int_gt(asked, 4);
    ctx.deadline = 0;
    stop_server();
}
END_TEST

START_TEST(a_server_that_goes_is_replaced_by_the_next)
{
    int ports[2];
    pid_t servers[2] = { start_memcached(&ports[0]), start_memcached(&ports[1]) };
    mc_cache *cache = store_at(ports, 2, "");
    mc_tile_key keys[64];
    int first = 0;
    for (int i = 0; i < 64; i++) {
        keys[i] = key_at(3, i % 8, i / 8);
        put_text(cache, &keys[i], "tile");
        const char *key = apr_psprintf(pool, "ts/G/3/%d/%d/png", keys[i].y, keys[i].x);
        first += mc_memcached_server_of(key, strlen(key), 2) == 0;
    }
    ck_assert(first > 10 && first < 54);
    mc_tile *tiles[64] = { NULL };
    stop_memcached(servers[0]);
    ck_ok(mc_cache_get_all(tiles, cache, keys, 64, &ctx, pool));
    int found = 0;
    for (int i = 0; i < 64; i++)
        found += tiles[i] != NULL;
    ck_assert_int_eq(found, 64 - first);
    for (int i = 0; i < 64; i++) {
        put_text(cache, &keys[i], "again");
        expect_text(cache, &keys[i], "again");
    }
    stop_memcached(servers[1]);
    mc_tile *tile;
    ck_fails(UNAVAILABLE, mc_cache_get(&tile, cache, &keys[0], &ctx, pool));
}
END_TEST

/* What a get says of a server that answers so. */
static mc_error *
get_at_liar(mc_tile **tile, const char *answer, size_t size, size_t first)
{
    liar_server liar;
    start_liar(&liar, answer, size, first, 1);
    mc_cache *cache = store_at(&liar.port, 1, "");
    mc_tile_key key = key_at(3, 5, 6);
    mc_error *error = mc_cache_get(tile, cache, &key, &ctx, pool);
    mc_remotes_destroy(process.remotes);
    process.remotes = mc_remotes_create();
    stop_liar(&liar);
    return error;
}

#define HEAD "VALUE ts/G/3/6/5/png 0 12\r\n"
#define BODY "tile\1\2\3\4\5\1\0\0\r\n"

START_TEST(answers_are_read_whatever_their_pieces_are)
{
    static const char whole[] = HEAD BODY "END\r\n";
    for (size_t first = 0; first < sizeof(whole) - 1; first++) {
        mc_tile *tile;
        ck_ok(get_at_liar(&tile, whole, sizeof(whole) - 1, first));
        ck_assert_ptr_nonnull(tile);
        ck_assert_uint_eq(tile->data->size, 4);
    }
}
END_TEST

START_TEST(answers_that_are_none_give_no_tile)
{
#define LIE(text)                                                                                                      \
    {                                                                                                                  \
        text, sizeof(text) - 1                                                                                         \
    }
    static const struct {
        const char *bytes;
        size_t size;
    } lies[] = {
        LIE(""),
        LIE("END"),
        LIE("END\n"),
        LIE("ERROR\r\n"),
        LIE("SERVER_ERROR out of memory\r\n"),
        LIE("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"),
        LIE("-ERR unknown command\r\n"),
        LIE("VALUE another/key 0 12\r\n" BODY "END\r\n"),
        LIE(HEAD BODY HEAD BODY "END\r\n"),
        LIE(HEAD BODY "END\r\nEND\r\n"),
        LIE(HEAD BODY),
        LIE(HEAD "tile"),
        LIE(HEAD "tile\1\2\3\4\5\1\0\0xxEND\r\n"),
        LIE("VALUE ts/G/3/6/5/png 0 -1\r\n" BODY "END\r\n"),
        LIE("VALUE ts/G/3/6/5/png 0 99999999999999999999\r\n" BODY "END\r\n"),
        LIE("VALUE ts/G/3/6/5/png 0 4000000000\r\n" BODY "END\r\n"),
        LIE("VALUE ts/G/3/6/5/png 0 12 \r\n" BODY "END\r\n"),
        LIE("VALUE ts/G/3/6/5/png 0\r\n" BODY "END\r\n"),
        LIE("VALUE ts/G/3/6/5/pn\0g 0 12\r\n" BODY "END\r\n"),
        LIE("VALUE "),
    };
    for (size_t i = 0; i < sizeof(lies) / sizeof(*lies); i++) {
        mc_tile *tile = NULL;
        mc_error *error = get_at_liar(&tile, lies[i].bytes, lies[i].size, 0);
        ck_assert_msg(error != MC_OK && error->kind == MC_ERR_UNAVAILABLE && tile == NULL, "lie %zu", i);
        ck_assert_ptr_nonnull(strstr(mc_error_chain(error, pool), "memcached at 127.0.0.1:"));
    }
    char endless[40000];
    memset(endless, 'x', sizeof(endless));
    mc_tile *tile;
    ck_fails(UNAVAILABLE, get_at_liar(&tile, endless, sizeof(endless), 0));
}
END_TEST

/* A multitier of an sqlite cache and a memcache, the first of them first or last. */
static mc_cache *
tiers_at(int far_port, bool near_first)
{
    mc_node *root;
    mc_build build = config_build();
    const char *text =
        apr_psprintf(pool,
                     "<mapcache><cache name='near' type='sqlite3'><dbfile>%s/near.db</dbfile></cache><cache name='far' "
                     "type='memcache'>"
                     "<server><host>127.0.0.1</host><port>%d</port></server></cache><cache name='c' "
                     "type='multitier'><cache>%s</cache>"
                     "<cache>%s</cache></cache></mapcache>",
                     cache_folder, far_port, near_first ? "near" : "far", near_first ? "far" : "near");
    mc_cache *cache = NULL;
    ck_ok(mc_config_parse_text(&root, "test.xml", text, strlen(text), NULL, pool));
    for (mc_node *node = root->children; node != NULL; node = node->next) {
        cache = mc_cache_from_config(node, &build);
        ck_assert_ptr_nonnull(cache);
        apr_hash_set(build.caches, cache->name, APR_HASH_KEY_STRING, cache);
    }
    return cache;
}

START_TEST(a_near_tier_spares_the_far_one)
{
    mc_tile_key keys[64];
    mc_tile *tiles[64] = { NULL };
    liar_server liar;
    start_server();
    mc_cache *cache = tiers_at(port, true), *far = store_with("");
    conform_cache(cache);
    ask_port(port, "flush_all\r\n", 11, "\r\n");
    run_shell("rm -f %s/near.db*");
    for (int i = 0; i < 64; i++) {
        keys[i] = key_at(3, i % 8, i / 8);
        if (i % 2 == 0)
            put_text(far, &keys[i], apr_psprintf(pool, "tile %d", i));
    }
    ck_assert(mc_cache_gets_all(cache));
    ck_ok(mc_cache_get_all(tiles, cache, keys, 64, &ctx, pool));
    for (int i = 0; i < 64; i++)
        ck_assert(i % 2 == 0 ? tiles[i] != NULL && tiles[i]->data->data[5] == '0' + (i < 10 ? i : i / 10)
                             : tiles[i] == NULL);
    stop_server();
    mc_tile_key copied[32], missing = keys[1];
    for (int i = 0; i < 32; i++)
        copied[i] = keys[2 * i];
    ck_ok(mc_cache_get_all(tiles, cache, copied, 32, &ctx, pool)); /* all of them are near by now */
    ck_assert_int_eq(tiles[31]->data->data[5], '6');
    ck_fails(UNAVAILABLE, mc_cache_get(tiles, cache, &missing, &ctx, pool)); /* it may be there */
    cache = tiers_at(port, false);                                           /* the one that is away comes first */
    expect_text(cache, &keys[0], "tile 0");
    ck_ok(mc_cache_get(tiles, cache, &missing, &ctx, pool)); /* the last one has all tiles */
    ck_assert_ptr_null(tiles[0]);
    ck_ok(mc_cache_get_all(tiles, cache, &missing, 1, &ctx, pool));
    ck_assert_ptr_null(tiles[0]);
    bool there = true;
    ck_ok(mc_cache_exists(&there, cache, &missing, &ctx)); /* so that a seeder goes on, too */
    ck_assert(!there);
    ck_ok(mc_cache_exists(&there, cache, &keys[0], &ctx));
    ck_assert(there);
    start_liar(&liar, "END\r\n", 5, 0, 100);
    ck_ok(mc_cache_get_all(tiles, tiers_at(liar.port, true), keys, 64, &ctx, pool));
    ck_assert_int_eq(liar.asked, 1); /* for those that are missing, together */
    mc_remotes_destroy(process.remotes);
    process.remotes = mc_remotes_create();
    stop_liar(&liar);
}
END_TEST

START_TEST(memcache_configurations_are_checked)
{
    ck_assert_int_eq(cache_complaint_of("<cache name='c' type='memcache'/>"), MC_REFUSED);
    ck_assert_int_eq(cache_complaint_of("<cache name='c' type='memcache'><server><host>a</host></server></cache>"),
                     MC_REFUSED);
    ck_assert_int_eq(cache_complaint_of("<cache name='c' type='memcache'><server><port>1</port></server></cache>"),
                     MC_REFUSED);
    ck_assert_int_eq(
        cache_complaint_of("<cache name='c' type='memcache'><server><host>a</host><port>99999</port></server></cache>"),
        MC_REFUSED);
}
END_TEST

CACHE_MAIN("memcache", memcache_conforms, values_are_those_of_mapcache, other_values_are_no_tiles,
           tiles_go_when_they_are_of_no_use, all_tiles_of_a_map_come_in_one_round_trip, many_and_large_tiles_are_parted,
           a_tile_that_is_too_large_says_so, a_stalled_server_holds_nobody_up, many_late_answers_tell_of_the_server,
           a_server_that_goes_is_replaced_by_the_next, answers_are_read_whatever_their_pieces_are,
           answers_that_are_none_give_no_tile, a_near_tier_spares_the_far_one, memcache_configurations_are_checked)
