/* Tiles behind HTTP, on a store that keeps, delays, refuses and breaks off as it is told. */
#include "cache_fixture.h"

#include "base/breaker.h"
#include "base/clock.h"
#include "cache/rest/rest_base.h"
#include "store_server.h"

static store_server server;

static void
set_up_store(void)
{
    unit_setup();
    start_cache_test();
    process.metrics = mc_metrics_create();
    server = store_start("rest");
}

static void
tear_down_store(void)
{
    store_stop(&server);
    mc_metrics_destroy(process.metrics);
    end_cache_test();
    unit_teardown();
}

static mc_cache *
rest_store(const char *template, const char *inner)
{
    return cache_of(apr_psprintf(pool, "<cache name='c' type='rest'><url>http://127.0.0.1:%d/%s</url>%s</cache>",
                                 server.port, template, inner));
}

static mc_cache *
plain_store(const char *inner)
{
    return rest_store("t/{tileset}/{grid}/{z}/{x}/{y}.{ext}", inner);
}

START_TEST(it_conforms)
{
    conform_cache(plain_store(""));
    conform_cache(rest_store("u/{tileset}/{grid}/{z}/{inv_x}/{inv_y}.{ext}", "<memory>60</memory>"));
}
END_TEST

START_TEST(clients_are_not_told_our_password)
{
    mc_cache *cache = cache_of("<cache name='c' type='rest'><url>http://maps:ses@me@127.0.0.1:1/{z}/{x}/{y}@2</url>"
                               "<use_redirects>true</use_redirects></cache>");
    const mc_tile_key key = key_at(1, 1, 0);
    const char *url;
    ck_ok(mc_cache_redirect(&url, cache, &key, pool));
    ck_assert_str_eq(url, "http://127.0.0.1:1/1/1/0%402");
}
END_TEST

/* docs/reference/configuration.md 5.11: the example that was seen of MapCache. */
START_TEST(addresses_are_those_of_mapcache)
{
    mc_cache *cache = rest_store("st ore/{tileset}/{grid}/{dim}/{dim:a}/{z}/{x}/{y}.{ext}", "");
    mc_dimension_value dimension = { "a", "A b/1.x", false };
    mc_tile_key key = key_at(1, 1, 0);
    key.tileset = "rs";
    key.dimensions = &dimension;
    key.dimension_count = 1;
    put_text(cache, &key, "tile");
    ck_assert_str_eq(store_order(&server, "list"), "[\"/st+ore/rs/G/%23a%23A+b/1.x/A+b/1.x/1/1/0.png\"]");
    expect_text(cache, &key, "tile");
    ck_ok(mc_cache_remove(cache, &key, &ctx));
    key.dimension_count = 0; /* without dimensions the token stays */
    put_text(cache, &key, "tile");
    ck_assert_str_eq(store_order(&server, "list"), "[\"/st+ore/rs/G/%7Bdim%7D/%7Bdim%3Aa%7D/1/1/0.png\"]");
}
END_TEST

START_TEST(no_value_leads_elsewhere)
{
    static const char *const values[] = { "..", "../../secret", "a/../../b", ".", "./x", "a/.." };
    mc_cache *cache = rest_store("t/{tileset}/{dim:a}/{z}/{x}/{y}.{ext}", "");
    mc_tile_key key = key_at(1, 1, 0);
    mc_tile *tile;
    for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++) {
        mc_dimension_value dimension = { "a", values[i], true };
        key.dimensions = &dimension;
        key.dimension_count = 1;
        ck_fails(INVALID_DIMENSION, mc_cache_get(&tile, cache, &key, &ctx, pool));
    }
    mc_dimension_value good = { "a", "..a/b..\r\nX: y?z#&%2e", true };
    key.dimensions = &good;
    put_text(cache, &key, "kept");
    expect_text(cache, &key, "kept");
    ck_assert_str_eq(store_order(&server, "list"), "[\"/t/ts/..a/b..%0D%0AX%3A+y%3Fz%23%26%252e/1/1/0.png\"]");
    key.dimension_count = 0;
    key.client_named = true;
    key.tileset = "../a/..";
    put_text(cache, &key, "named");
    ck_assert_ptr_nonnull(strstr(store_order(&server, "list"), "\"/t/..%252Fa%252F../"));
}
END_TEST

static int
count_connections(const char *log)
{
    bool seen[1000] = { false };
    int count = 0;
    for (const char *at = log; (at = strstr(at, "\"connection\": ")) != NULL; at++) {
        int number = atoi(at + 14);
        ck_assert_int_lt(number, 1000);
        count += !seen[number];
        seen[number] = true;
    }
    return count;
}

START_TEST(tiles_of_a_map_come_together)
{
    enum { COUNT = 64, DELAY_MS = 300 };
    mc_cache *cache = plain_store("");
    mc_tile_key keys[COUNT];
    mc_tile *tiles[COUNT];
    mc_tile_write puts[COUNT];
    for (int i = 0; i < COUNT; i++) {
        const char *text = apr_psprintf(pool, "tile %d", i);
        keys[i] = key_at(3, i % 8, i / 8);
        puts[i] = (mc_tile_write){ .key = keys[i], .data = mc_buf_attach(mc_buf_copy(text, strlen(text)), pool) };
    }
    ck_ok(mc_cache_put(cache, puts, 40, &ctx));
    store_order(&server, "log");
    store_order(&server, "delay/300");
    for (int round = 0; round < 2; round++) {
        apr_time_t begin = mc_clock_now();
        ck_ok(mc_cache_get_all(tiles, cache, keys, COUNT, &ctx, pool));
        double seconds = (double)(mc_clock_now() - begin) / APR_USEC_PER_SEC;
        ck_assert_msg(seconds < COUNT * DELAY_MS / 1000.0 / 4, "%g s for what takes 0.3 s at once", seconds);
        for (int i = 0; i < COUNT; i++) {
            ck_assert((tiles[i] != NULL) == (i < 40));
            if (i < 40)
                ck_assert_int_eq(memcmp(tiles[i]->data->data, puts[i].data->data, puts[i].data->size), 0);
        }
    }
    store_order(&server, "delay/0");
    const char *log = store_order(&server, "log");
    ck_assert_int_le(count_connections(log), COUNT); /* the second map found them open */
}
END_TEST

static mc_cache *
layers_of_two(const char *type, const char *inner)
{
    mc_build build = config_build();
    mc_node *node = NULL;
    const char *text = apr_psprintf(
        pool,
        "<mapcache><cache name='near' type='sqlite3'><dbfile>%s/%s.db</dbfile></cache><cache name='far' type='rest'>"
        "<url>http://127.0.0.1:%d/%s/{tileset}/{grid}/{z}/{x}/{y}.{ext}</url></cache><cache name='c' "
        "type='%s'>%s</cache>"
        "</mapcache>",
        cache_folder, type, server.port, type, type, inner);
    mc_cache *cache = NULL;
    ck_ok(mc_config_parse_text(&node, "test.xml", text, strlen(text), NULL, pool));
    for (node = node->children; node != NULL; node = node->next) {
        cache = mc_cache_from_config(node, &build);
        ck_ok(mc_diagnostics_error(build.diagnostics, pool));
        apr_hash_set(build.caches, cache->name, APR_HASH_KEY_STRING, cache);
    }
    return cache;
}

/* Caches made of others ask their far part once for all, and of a multitier only for what the near part has not. */
START_TEST(layers_ask_the_far_part_once)
{
    static const char *const layers[][2] = { { "multitier", "<cache>near</cache><cache>far</cache>" },
                                             { "fallback", "<cache>far</cache><cache>near</cache>" },
                                             { "composite", "<cache max-zoom='5'>far</cache><cache>near</cache>" } };
    for (int i = 0; i < 3; i++) {
        mc_cache *cache = layers_of_two(layers[i][0], layers[i][1]);
        mc_tile_key keys[16];
        mc_tile *tiles[16];
        conform_cache(cache);
        for (int j = 0; j < 16; j++) {
            keys[j] = key_at(4, j, 3);
            if (j != 5)
                put_text(cache, &keys[j], apr_psprintf(pool, "tile %d", j));
        }
        ck_assert(mc_cache_gets_all(cache));
        store_requests(&server);
        store_order(&server, "delay/200");
        apr_time_t begin = mc_clock_now();
        ck_ok(mc_cache_get_all(tiles, cache, keys, 16, &ctx, pool));
        ck_assert(mc_clock_now() - begin < 16 * 200 * 1000 / 2);
        store_order(&server, "delay/0");
        ck_assert_int_eq(store_requests(&server), 16);
        for (int j = 0; j < 16; j++)
            ck_assert((tiles[j] == NULL) == (j == 5));
        ck_assert_int_eq(memcmp(tiles[15]->data->data, "tile 15", 7), 0);
        ck_ok(mc_cache_get_all(tiles, cache, keys, 16, &ctx, pool));
        ck_assert_int_eq(store_requests(&server), i == 0 ? 1 : 16); /* the near part has the others now */
        ck_assert_int_eq(memcmp(tiles[15]->data->data, "tile 15", 7), 0);
    }
}
END_TEST

START_TEST(no_more_connections_than_configured)
{
    mc_cache *cache = plain_store("<connections>5</connections>");
    mc_tile_key keys[30];
    mc_tile *tiles[30];
    for (int i = 0; i < 30; i++)
        keys[i] = key_at(3, i % 8, i / 8);
    ck_ok(mc_cache_get_all(tiles, cache, keys, 30, &ctx, pool));
    const char *log = store_order(&server, "log");
    ck_assert_int_le(count_connections(log), 5);
    ck_assert_int_ge(count_connections(log), 2);
}
END_TEST

/* More than are asked for together; far more than there are connections. */
START_TEST(many_tiles_come_in_parts)
{
    enum { MANY = 600 };
    mc_cache *cache = plain_store("");
    mc_tile_write *puts = apr_pcalloc(pool, sizeof(*puts) * MANY);
    mc_tile_key *keys = apr_pcalloc(pool, sizeof(*keys) * MANY);
    mc_tile **tiles = apr_pcalloc(pool, sizeof(*tiles) * MANY);
    for (int i = 0; i < MANY; i++) {
        const char *text = apr_psprintf(pool, "tile %d", i);
        keys[i] = key_at(5, i % 32, i / 32);
        puts[i] = (mc_tile_write){ .key = keys[i], .data = mc_buf_attach(mc_buf_copy(text, strlen(text)), pool) };
    }
    ck_ok(mc_cache_put(cache, puts, MANY, &ctx));
    ck_ok(mc_cache_get_all(tiles, cache, keys, MANY, &ctx, pool));
    for (int i = 0; i < MANY; i++) {
        ck_assert(tiles[i] != NULL && tiles[i]->data->size == puts[i].data->size);
        ck_assert_int_eq(memcmp(tiles[i]->data->data, puts[i].data->data, puts[i].data->size), 0);
    }
    ck_ok(mc_cache_remove_all(cache, keys, MANY, &ctx));
    ck_assert_str_eq(store_order(&server, "list"), "[]");
}
END_TEST

START_TEST(a_metatile_begins_with_its_last_tile)
{
    mc_cache *cache = plain_store("<busy_retries>0</busy_retries>");
    mc_tile_write puts[16];
    bool exists;
    for (int i = 0; i < 16; i++)
        puts[i] = (mc_tile_write){ .key = key_at(3, i % 4, i / 4), .data = mc_buf_attach(mc_buf_copy("t", 1), pool) };
    store_order(&server, "fail/500/1");
    ck_fails(UNAVAILABLE, mc_cache_put(cache, puts, 16, &ctx));
    ck_ok(mc_cache_exists(&exists, cache, &puts[0].key, &ctx));
    ck_assert(!exists);
    puts[15].key = puts[0].key; /* of a tile that comes twice the last one counts */
    puts[15].data = mc_buf_attach(mc_buf_copy("last", 4), pool);
    ck_ok(mc_cache_put(cache, puts, 16, &ctx));
    expect_text(cache, &puts[0].key, "last");
}
END_TEST

START_TEST(headers_go_with_their_operation)
{
    const char *file = apr_psprintf(pool, "%s/headers", cache_folder);
    run_shell("printf 'X-File: one\\nno header\\nX-Other: \\t two \\r\\n' >%s/headers");
    mc_cache *cache = plain_store(
        apr_psprintf(pool,
                     "<headers><X-All>all</X-All><Host>tiles.example</Host></headers><header_file>%s</header_file>"
                     "<operation type='PUT'><headers><X-Put>put</X-Put><X-All>of put</X-All></headers></operation>"
                     "<operation type='get'><headers><X-Get>get</X-Get></headers></operation>",
                     file));
    mc_tile_key key = key_at(1, 1, 0);
    mc_tile *tile;
    key.mime = "image/png";
    put_text(cache, &key, "tile");
    const char *log = store_order(&server, "log");
    static const char *const wanted[] = { "\"x-put\": \"put\"",          "\"x-all\": \"of put\"",
                                          "\"host\": \"tiles.example\"", "\"x-file\": \"one\"",
                                          "\"x-other\": \"two\"",        "\"content-type\": \"image/png\"" };
    for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++)
        ck_assert_msg(strstr(log, wanted[i]) != NULL, "%s in %s", wanted[i], log);
    ck_assert_ptr_null(strstr(log, "x-get"));
    expect_text(cache, &key, "tile");
    log = store_order(&server, "log");
    ck_assert_ptr_nonnull(strstr(log, "\"x-get\": \"get\""));
    ck_assert_ptr_nonnull(strstr(log, "\"x-all\": \"all\""));
    ck_assert_ptr_null(strstr(log, "x-put"));
    ck_assert_int_eq(unlink(file), 0); /* it is read with every request */
    ck_fails(IO, mc_cache_get(&tile, cache, &key, &ctx, pool));
}
END_TEST

START_TEST(the_time_of_a_tile_is_that_of_the_store)
{
    mc_cache *cache = plain_store("");
    mc_tile_key key = key_at(1, 1, 0);
    mc_tile *tile;
    put_text(cache, &key, "tile");
    ck_ok(mc_cache_get(&tile, cache, &key, &ctx, pool));
    ck_assert(tile->mtime > apr_time_now() - 600 * APR_USEC_PER_SEC && tile->mtime <= apr_time_now());
}
END_TEST

/* Each answer that is no tile, and what is made of it: only what says that there is none lets one be rendered. */
START_TEST(only_what_is_absent_is_a_miss)
{
    static const struct {
        const char *order;
        mc_error_kind kind;
        const char *words;
    } bad[] = {
        { "fail/403/1/AccessDenied", MC_ERR_UPSTREAM, "refuses access" },
        { "fail/401/1", MC_ERR_UPSTREAM, "refuses access" },
        { "fail/404/1/NoSuchBucket", MC_ERR_UPSTREAM, "status 404" },
        { "fail/400/1", MC_ERR_UPSTREAM, "status 400" },
        { "fail/416/1", MC_ERR_UPSTREAM, "status 416" },
        { "fail/429/9", MC_ERR_UNAVAILABLE, "asked too much" },
        { "fail/503/9", MC_ERR_UNAVAILABLE, "asked too much" },
        { "fail/500/9", MC_ERR_UNAVAILABLE, "fails" },
        { "half/9", MC_ERR_UNAVAILABLE, "cannot be reached" },
        { "unframed/1", MC_ERR_UPSTREAM, "half of one" },
        { "html/1", MC_ERR_UPSTREAM, "a page" },
    };
    mc_cache *cache = plain_store("<busy_retries>1</busy_retries>");
    mc_tile_key key = key_at(1, 1, 0), other = key_at(1, 0, 0);
    mc_tile *tile;
    put_text(cache, &key, "a tile as large as this");
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        store_order(&server, bad[i].order);
        mc_error *error = mc_cache_get(&tile, cache, &key, &ctx, pool);
        ck_assert_msg(error != MC_OK && error->kind == bad[i].kind && strstr(error->message, bad[i].words) != NULL &&
                          strstr(error->message, "\"c\"") != NULL && strstr(error->message, "127.0") == NULL,
                      "%s: %s", bad[i].order, error == MC_OK ? "no error" : mc_error_chain(error, pool));
        store_order(&server, "fail/200/0");
        store_order(&server, "half/0");
        expect_text(cache, &key, "a tile as large as this");
    }
    expect_text(cache, &other, NULL); /* 404 with a page */
    store_order(&server, "fail/410/1");
    expect_text(cache, &key, NULL);
    cache = plain_store("<absent>404 403</absent>");
    store_order(&server, "fail/403/1/AccessDenied");
    expect_text(cache, &key, NULL);
    store_order(&server, "fail/403/1/SignatureDoesNotMatch");
    ck_fails(UPSTREAM, mc_cache_get(&tile, cache, &key, &ctx, pool));
}
END_TEST

START_TEST(what_passes_is_asked_again)
{
    mc_cache *cache = plain_store("");
    mc_tile_key keys[8];
    mc_tile *tiles[8];
    for (int i = 0; i < 8; i++) {
        keys[i] = key_at(3, i, 0);
        put_text(cache, &keys[i], "tile");
    }
    store_requests(&server);
    store_order(&server, "fail/503/5/SlowDown");
    ck_ok(mc_cache_get_all(tiles, cache, keys, 8, &ctx, pool));
    for (int i = 0; i < 8; i++)
        ck_assert_ptr_nonnull(tiles[i]);
    ck_assert_int_eq(store_requests(&server), 13); /* only those that were refused */
    store_order(&server, "retry/3600");            /* it wants to be left alone for longer than anybody waits */
    store_order(&server, "fail/503/1/SlowDown");
    apr_time_t begin = mc_clock_now();
    ck_fails(UNAVAILABLE, mc_cache_get_all(tiles, cache, keys, 8, &ctx, pool));
    ck_assert(mc_clock_now() - begin < 5 * APR_USEC_PER_SEC);
}
END_TEST

START_TEST(a_store_that_says_nothing_costs_the_deadline_at_most)
{
    mc_cache *cache = plain_store("");
    mc_tile_key key = key_at(1, 1, 0);
    mc_tile *tile;
    put_text(cache, &key, "tile");
    store_order(&server, "stall/1");
    apr_time_t begin = mc_clock_now();
    ctx.deadline = begin + 1500 * 1000;
    ck_fails(TIMEOUT, mc_cache_get(&tile, cache, &key, &ctx, pool));
    ck_assert(mc_clock_now() - begin >= 1400 * 1000 && mc_clock_now() - begin < 30 * APR_USEC_PER_SEC);
    ctx.deadline = 0;
    expect_text(cache, &key, "tile");
}
END_TEST

START_TEST(a_store_that_is_away_is_left_alone_and_comes_back)
{
    mc_cache *cache = plain_store("<busy_retries>0</busy_retries>");
    mc_tile_key key = key_at(1, 1, 0);
    mc_tile *tile;
    put_text(cache, &key, "tile");
    store_requests(&server);
    store_order(&server, "fail/500/3");
    for (int i = 0; i < MC_BREAKER_FAILURES; i++)
        ck_fails(UNAVAILABLE, mc_cache_get(&tile, cache, &key, &ctx, pool));
    mc_error *error = mc_cache_get(&tile, cache, &key, &ctx, pool);
    ck_assert(error != MC_OK && error->kind == MC_ERR_UNAVAILABLE && strstr(error->message, "left alone") != NULL);
    ck_assert_int_eq(store_requests(&server), MC_BREAKER_FAILURES);
    usleep((useconds_t)MC_BREAKER_PAUSE + 100 * 1000);
    expect_text(cache, &key, "tile");
}
END_TEST

START_TEST(what_is_wrong_is_said_when_the_file_is_read)
{
    static const char *const refused[] = {
        "<cache name='c' type='rest'/>",
        "<cache name='c' type='rest'><url>http://host</url></cache>",
        "<cache name='c' type='rest'><url>ftp://host/{z}</url></cache>",
        "<cache name='c' type='rest'><url>http://{dim:a}.host/{z}</url></cache>",
        "<cache name='c' type='rest'><url>http://h/{z}</url><absent>404 200</absent></cache>",
        "<cache name='c' type='rest'><url>http://h/{z}</url><absent>503</absent></cache>",
        "<cache name='c' type='rest'><url>http://h/{z}</url><absent>404.5</absent></cache>",
        "<cache name='c' type='rest'><url>http://h/{z}</url><operation/></cache>",
        "<cache name='c' type='rest'><url>http://h/{z}</url><operation type='post'/></cache>",
        "<cache name='c' type='rest'><url>http://h/{z}</url><timeout>0</timeout></cache>",
        "<cache name='c' type='rest'><url>http://h/{z}</url><connection_timeout>x</connection_timeout></cache>",
    };
    for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++)
        ck_assert_msg(cache_complaint_of(refused[i]) == MC_REFUSED, "%s", refused[i]);
}
END_TEST

/* How many complaints there are of tilesets that use the cache; `second` may be NULL. */
static int
complaints_of_uses(const char *template, const char *second, bool dimensions)
{
    mc_build build = config_build();
    const char *xml = apr_psprintf(pool, "<cache name='c' type='rest'><url>http://h/%s</url></cache>", template);
    mc_node *node = config_elements(xml);
    mc_cache *cache = mc_cache_from_config(node, &build);
    const mc_cache_use first = { "ts", &cache_grid, dimensions, "png", false },
                       other = { second, &cache_grid, dimensions, "png", false };
    ck_assert_ptr_nonnull(cache);
    mc_cache_used_by(cache, &first, node, &build);
    mc_cache_used_by(cache, &first, node, &build);
    if (second != NULL)
        mc_cache_used_by(cache, &other, node, &build);
    return build.diagnostics->complaints->nelts;
}

START_TEST(tiles_that_would_overwrite_each_other_are_told_of)
{
    ck_assert_int_eq(complaints_of_uses("{tileset}/{grid}/{z}/{x}/{y}", "b", false), 0);
    ck_assert_int_eq(complaints_of_uses("{grid}/{z}/{x}/{inv_y}", "b", false), 1);
    ck_assert_int_eq(complaints_of_uses("{tileset}/{x}/{y}", NULL, false), 1);
    ck_assert_int_eq(complaints_of_uses("{tileset}/{z}/{y}", NULL, false), 1);
    ck_assert_int_eq(complaints_of_uses("{tileset}/{z}/{x}", NULL, false), 1);
    ck_assert_int_eq(complaints_of_uses("{tileset}/{z}/{x}/{y}", NULL, true), 1);
    ck_assert_int_eq(complaints_of_uses("{tileset}/{dim:a}/{z}/{x}/{y}", NULL, true), 0);
}
END_TEST

/* Whether a server can be reached is asked for a tile as the tileset has them. */
START_TEST(the_tile_that_is_asked_for_first_has_the_extension_of_its_tileset)
{
    mc_cache *cache = plain_store("");
    const mc_cache_use use = { "photos", &cache_grid, false, "jpg", false };
    mc_build build = config_build();
    mc_cache_used_by(cache, &use, config_elements("<cache/>"), &build);
    ck_ok(cache->ops->reach(cache, &ctx));
    ck_assert_ptr_nonnull(strstr(store_order(&server, "log"), "/t/photos/G/0/0/0.jpg"));
}
END_TEST

START_TEST(transparent_tiles_are_not_stored)
{
    static const uint8_t nothing[4] = { 0 };
    mc_cache *cache = plain_store("<detect_blank/>");
    mc_tile_key key = key_at(3, 5, 6);
    put_text(cache, &key, "older");
    put_colour(cache, &key, nothing);
    expect_text(cache, &key, NULL);
    ck_assert_str_eq(store_order(&server, "list"), "[]");
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = { it_conforms,
                                   clients_are_not_told_our_password,
                                   addresses_are_those_of_mapcache,
                                   no_value_leads_elsewhere,
                                   tiles_of_a_map_come_together,
                                   layers_ask_the_far_part_once,
                                   no_more_connections_than_configured,
                                   a_metatile_begins_with_its_last_tile,
                                   many_tiles_come_in_parts,
                                   headers_go_with_their_operation,
                                   the_time_of_a_tile_is_that_of_the_store,
                                   only_what_is_absent_is_a_miss,
                                   what_passes_is_asked_again,
                                   a_store_that_says_nothing_costs_the_deadline_at_most,
                                   a_store_that_is_away_is_left_alone_and_comes_back,
                                   what_is_wrong_is_said_when_the_file_is_read,
                                   tiles_that_would_overwrite_each_other_are_told_of,
                                   the_tile_that_is_asked_for_first_has_the_extension_of_its_tileset,
                                   transparent_tiles_are_not_stored };
    return unit_run_between("rest_cache", tests, (int)(sizeof(tests) / sizeof(*tests)), set_up_store, tear_down_store);
}
