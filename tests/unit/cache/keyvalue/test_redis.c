/* Tiles in redis: real servers, alone and in a cluster, encrypted, with passwords, stalled and killed; and one that
 * lies. */
#include "cache_fixture.h"

#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "liar_server.h"
#include "memcached_server.h"
#include "redis_server.h"
#include "remote/redis_cluster.h"
#include "remote/stream.h"

static redis_server_process server;

static mc_cache *
redis_store(int port, const char *inner)
{
    return cache_of(apr_psprintf(pool, "<cache name='c' type='redis'><host>127.0.0.1</host><port>%d</port>%s</cache>",
                                 port, inner));
}

static void
start_server(const char *const *options)
{
    server.folder[0] = '\0';
    start_redis(&server, options);
}

static const char *
why_not_got(mc_cache *cache)
{
    mc_tile_key key = key_at(3, 5, 6);
    mc_tile *tile;
    mc_error *error = mc_cache_get(&tile, cache, &key, &ctx, pool);
    ck_assert_msg(error != MC_OK && error->kind == MC_ERR_UNAVAILABLE, "%s", mc_error_chain(error, pool));
    return mc_error_chain(error, pool);
}

START_TEST(redis_conforms)
{
    start_server(NULL);
    conform_cache(redis_store(server.port, ""));
    ask_redis(&server, "FLUSHALL");
    conform_cache(redis_store(server.port, "<memory>60</memory><detect_blank/><database>3</database>"));
    ask_redis(&server, "FLUSHALL");
    conform_cache(cache_of(
        apr_psprintf(pool, "<cache name='c' type='redis'><socket>%s/redis.sock</socket></cache>", server.folder)));
    stop_redis(&server);
}
END_TEST

/* What MapCache stores: the tile, then the time in microseconds, little-endian; for a day. */
START_TEST(values_are_those_of_mapcache)
{
    start_server(NULL);
    mc_cache *cache = redis_store(server.port, "");
    mc_tile_key key = key_at(3, 5, 6), other = key_at(3, 6, 6);
    apr_time_t before = apr_time_now();
    put_text(cache, &key, "tile");
    const char *answer = ask_port(server.port, "GET ts/G/3/6/5/png\r\nPING\r\n", 26, "PONG");
    ck_assert_int_eq(strncmp(answer, "$12\r\ntile", 9), 0);
    int64_t stored;
    memcpy(&stored, answer + 9, 8);
    ck_assert(stored >= before && stored <= apr_time_now());
    long left = strtol(ask_redis(&server, "TTL ts/G/3/6/5/png") + 1, NULL, 10);
    ck_assert(left > 86000 && left <= 86400);
    const int64_t time = INT64_C(1600000000000001);
    char order[] = "*3\r\n$3\r\nSET\r\n$18\r\nts/G/3/6/6/png\r\n$11\r\noldTTTTTTTT\r\n";
    memcpy(strstr(order, "$18"), "$14", 3);
    memcpy(strstr(order, "TTTT"), &time, 8);
    ck_assert_str_eq(ask_port(server.port, order, sizeof(order) - 1, "\r\n"), "+OK\r\n");
    mc_tile *tile;
    ck_ok(mc_cache_get(&tile, cache, &other, &ctx, pool));
    ck_assert_ptr_nonnull(tile);
    ck_assert_int_eq(tile->mtime, INT64_C(1600000000000000));
    ck_assert_uint_eq(tile->data->size, 3);
    ck_assert_int_eq(memcmp(tile->data->data, "old", 3), 0);
    stop_redis(&server);
}
END_TEST

START_TEST(tiles_go_when_they_are_of_no_use)
{
    start_server(NULL);
    mc_cache *cache = redis_store(server.port, ""), *lasting = redis_store(server.port, "<expires>0</expires>");
    mc_tile_write tile = { .key = key_at(3, 5, 6), .data = mc_buf_attach(mc_buf_copy("tile", 4), pool) };
    tile.lifetime = 500;
    ck_ok(mc_cache_put(cache, &tile, 1, &ctx));
    long left = strtol(ask_redis(&server, "TTL ts/G/3/6/5/png") + 1, NULL, 10);
    ck_assert(left > 300 && left <= 500);
    tile.lifetime = 0;
    ck_ok(mc_cache_put(lasting, &tile, 1, &ctx));
    ck_assert_str_eq(ask_redis(&server, "TTL ts/G/3/6/5/png"), ":-1\r\n");
    stop_redis(&server);
}
END_TEST

/* A value of another kind, and one that no tile cache has stored. */
START_TEST(other_values_are_no_tiles)
{
    start_server(NULL);
    mc_cache *cache = redis_store(server.port, "");
    mc_tile_key key = key_at(3, 5, 6);
    mc_tile *tile;
    ask_redis(&server, "SET ts/G/3/6/5/png 12345678901234567890");
    ck_fails(CORRUPT, mc_cache_get(&tile, cache, &key, &ctx, pool));
    ask_redis(&server, "DEL ts/G/3/6/5/png");
    ask_redis(&server, "LPUSH ts/G/3/6/5/png a");
    expect_text(cache, &key, NULL); /* MGET takes it for nothing, and SETEX replaces it */
    put_text(cache, &key, "tile");
    expect_text(cache, &key, "tile");
    stop_redis(&server);
}
END_TEST

static void
fill_tiles(mc_tile_write *puts, mc_tile_key *keys, int count, int size)
{
    for (int i = 0; i < count; i++) {
        puts[i] = (mc_tile_write){ .key = key_at(5, i % 32, i / 32) };
        keys[i] = puts[i].key;
        puts[i].data = mc_buf_attach(mc_buf_create((size_t)size, (size_t)size), pool);
        ck_ok(mc_buf_reserve(puts[i].data, (size_t)size, pool));
        memset(puts[i].data->data, 'A' + i % 26, (size_t)size);
        puts[i].data->size = (size_t)size;
    }
}

static void
expect_tiles(mc_cache *cache, const mc_tile_write *puts, const mc_tile_key *keys, int count)
{
    mc_tile **tiles = apr_pcalloc(pool, sizeof(*tiles) * (size_t)count);
    ck_ok(mc_cache_get_all(tiles, cache, keys, count, &ctx, pool));
    for (int i = 0; i < count; i++) {
        ck_assert_ptr_nonnull(tiles[i]);
        ck_assert_uint_eq(tiles[i]->data->size, puts[i].data->size);
        ck_assert_int_eq(memcmp(tiles[i]->data->data, puts[i].data->data, puts[i].data->size), 0);
    }
}

/* Commands that the server has carried out since. */
static long
count_calls(const redis_server_process *of, const char *command)
{
    const char *found = strstr(ask_redis(of, "INFO commandstats"), apr_psprintf(pool, "cmdstat_%s:calls=", command));
    return found == NULL ? 0 : strtol(strchr(found, '=') + 1, NULL, 10);
}

START_TEST(all_tiles_of_a_map_come_together)
{
    mc_tile_write puts[700];
    mc_tile_key keys[700];
    start_server(NULL);
    mc_cache *cache = redis_store(server.port, "");
    fill_tiles(puts, keys, 700, 20000);
    ck_ok(mc_cache_put(cache, puts, 700, &ctx));
    expect_tiles(cache, puts, keys, 64);
    ck_assert_int_eq(count_calls(&server, "mget"), 1);
    ck_assert_int_eq(count_calls(&server, "get"), 0);
    expect_tiles(cache, puts, keys, 700);
    stop_redis(&server);
}
END_TEST

START_TEST(passwords_open_the_server)
{
    static const char *const options[] = { "--requirepass", "sesame", "--user", "maps", "on",
                                           ">another",      "~*",     "+@all",  NULL };
    start_server(options);
    conform_cache(redis_store(server.port, "<password>sesame</password>"));
    const char *file = apr_psprintf(pool, "%s/password", server.folder);
    FILE *secret = fopen(file, "w");
    fputs("another\n", secret);
    fclose(secret);
    mc_cache *cache =
        redis_store(server.port, apr_psprintf(pool, "<user>maps</user><password_file>%s</password_file>", file));
    mc_tile_key key = key_at(3, 5, 6);
    put_text(cache, &key, "tile");
    expect_text(cache, &key, "tile");
    const char *why = why_not_got(redis_store(server.port, "<password>mellon</password>"));
    ck_assert_msg(strstr(why, "WRONGPASS") != NULL && strstr(why, "mellon") == NULL, "%s", why);
    ck_assert_ptr_nonnull(strstr(why_not_got(redis_store(server.port, "")), "NOAUTH"));
    ck_assert_ptr_nonnull(
        strstr(why_not_got(redis_store(server.port, "<password>sesame</password><database>99</database>")),
               "DB index is out of range"));
    expect_text(cache, &key, "tile"); /* others' wrong passwords are not ours */
    stop_redis(&server);
}
END_TEST

START_TEST(connections_can_be_encrypted)
{
    strcpy(server.folder, "/tmp/mapcache-redis-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(server.folder));
    make_redis_certificates(server.folder);
    int keeper, port = reserve_unused_port(&keeper);
    const char *const encrypted[] = { "--tls-port",
                                      apr_psprintf(pool, "%d", port),
                                      "--tls-cert-file",
                                      "{folder}/server.pem",
                                      "--tls-key-file",
                                      "{folder}/server.key",
                                      "--tls-ca-cert-file",
                                      "{folder}/authority.pem",
                                      "--tls-auth-clients",
                                      "optional",
                                      NULL };
    close(keeper);
    start_redis(&server, encrypted);
    const char *trusting = apr_psprintf(pool,
                                        "<tls>true</tls><tls_authorities>%s/authority.pem</tls_authorities>"
                                        "<timeout>5</timeout>",
                                        server.folder);
    conform_cache(redis_store(port, trusting));
    mc_tile_write puts[300];
    mc_tile_key keys[300];
    mc_cache *cache = redis_store(port, trusting);
    fill_tiles(puts, keys, 300, 70000);
    ck_ok(mc_cache_put(cache, puts, 300, &ctx));
    expect_tiles(cache, puts, keys, 300);
    ck_assert_int_le(strtol(strstr(ask_redis(&server, "INFO clients"), "connected_clients:") + 18, NULL, 10), 3);
    const char *why = why_not_got(redis_store(port, "<tls>true</tls>"));
    ck_assert_msg(strstr(why, "certificate") != NULL, "%s", why);
    why = why_not_got(redis_store(port, apr_pstrcat(pool, trusting, "<tls_name>elsewhere</tls_name>", NULL)));
    ck_assert_msg(strstr(why, "certificate") != NULL, "%s", why);
    ck_assert_ptr_nonnull(why_not_got(redis_store(port, "")));              /* not encrypted where it should be */
    ck_assert_ptr_nonnull(why_not_got(redis_store(server.port, trusting))); /* and the other way round */
    stop_redis(&server);
}
END_TEST

START_TEST(a_cluster_tells_where_its_keys_are)
{
    redis_server_process nodes[3];
    mc_tile_write puts[300];
    mc_tile_key keys[300];
    long found = 0;
    start_redis_cluster(nodes);
    conform_cache(redis_store(nodes[0].port, ""));
    mc_cache *cache = redis_store(nodes[1].port, "");
    fill_tiles(puts, keys, 300, 5000);
    ck_ok(mc_cache_put(cache, puts, 300, &ctx));
    for (int i = 0; i < 3; i++)
        found += strtol(ask_redis(&nodes[i], "DBSIZE") + 1, NULL, 10) > 60;
    ck_assert_int_eq(found, 3);
    expect_tiles(cache, puts, keys, 64);
    for (int i = 0; i < 3; i++)
        ask_redis(&nodes[i], "CONFIG RESETSTAT");
    expect_tiles(cache, puts, keys, 300); /* all is known now: each node is asked for its own keys alone */
    long gets = 0;
    for (int i = 0; i < 3; i++)
        gets += count_calls(&nodes[i], "get");
    ck_assert_int_eq(gets, 300);
    ck_ok(mc_cache_remove_all(cache, keys, 300, &ctx));
    expect_text(cache, &keys[299], NULL);
    for (int i = 0; i < 3; i++)
        stop_redis(&nodes[i]);
}
END_TEST

/* A slot on its way from one server to another: what has gone is asked for there. */
START_TEST(slots_that_move_are_followed)
{
    redis_server_process nodes[3];
    start_redis_cluster(nodes);
    mc_cache *cache = redis_store(nodes[0].port, "");
    mc_tile_key key = key_at(3, 5, 6), missing = key_at(3, 1, 1);
    put_text(cache, &key, "tile");
    int slot = mc_cluster_slot("ts/G/3/6/5/png", 14), from = slot <= 5460 ? 0 : slot <= 10922 ? 1 : 2;
    int to = (from + 1) % 3;
    char ids[3][41];
    for (int i = 0; i < 3; i++)
        snprintf(ids[i], sizeof(ids[i]), "%s", strchr(ask_redis(&nodes[i], "CLUSTER MYID"), '\n') + 1);
    ck_assert_str_eq(ask_redis(&nodes[to], apr_psprintf(pool, "CLUSTER SETSLOT %d IMPORTING %s", slot, ids[from])),
                     "+OK\r\n");
    ck_assert_str_eq(ask_redis(&nodes[from], apr_psprintf(pool, "CLUSTER SETSLOT %d MIGRATING %s", slot, ids[to])),
                     "+OK\r\n");
    ck_assert_str_eq(
        ask_redis(&nodes[from], apr_psprintf(pool, "MIGRATE 127.0.0.1 %d ts/G/3/6/5/png 0 5000", nodes[to].port)),
        "+OK\r\n");
    expect_text(cache, &key, "tile"); /* ASK */
    put_text(cache, &key, "new");
    expect_text(cache, &key, "new");
    for (int i = 0; i < 3; i++)
        ask_redis(&nodes[i], apr_psprintf(pool, "CLUSTER SETSLOT %d NODE %s", slot, ids[to]));
    expect_text(cache, &key, "new"); /* MOVED */
    expect_text(cache, &missing, NULL);
    for (int i = 0; i < 3; i++)
        stop_redis(&nodes[i]);
}
END_TEST

/* The servers of a cluster are asked in turn where the keys are. */
START_TEST(a_lost_seed_is_replaced)
{
    redis_server_process nodes[3];
    start_redis_cluster(nodes);
    mc_cache *cache = redis_store(
        nodes[0].port, apr_psprintf(pool, "<server><host>localhost</host><port>%d</port></server>", nodes[1].port));
    mc_tile_key key = key_at(3, 0, 6);
    ask_redis(&nodes[1], "CONFIG SET cluster-require-full-coverage no");
    ask_redis(&nodes[2], "CONFIG SET cluster-require-full-coverage no");
    for (const char *text = "";; key.x++) { /* a tile that is not on the first server */
        text = apr_psprintf(pool, "ts/G/3/6/%d/png", key.x);
        if (mc_cluster_slot(text, strlen(text)) > 5460)
            break;
    }
    stop_redis(&nodes[0]);
    put_text(cache, &key, "tile");
    expect_text(cache, &key, "tile");
    stop_redis(&nodes[1]);
    stop_redis(&nodes[2]);
    why_not_got(cache);
}
END_TEST

/* A node that goes is known no longer: the others tell who has its slots now. */
START_TEST(a_lost_node_is_replaced)
{
    redis_server_process nodes[3];
    char id[41];
    mc_tile_key key = key_at(3, 0, 6);
    int slot = 0;
    start_redis_cluster(nodes);
    mc_cache *cache = redis_store(nodes[0].port, "");
    for (const char *text = "";; key.x++) { /* a tile of the last server */
        text = apr_psprintf(pool, "ts/G/3/6/%d/png", key.x);
        slot = mc_cluster_slot(text, strlen(text));
        if (slot > 10922)
            break;
    }
    put_text(cache, &key, "tile");
    for (int i = 0; i < 2; i++)
        ask_redis(&nodes[i], "CONFIG SET cluster-require-full-coverage no");
    stop_redis(&nodes[2]);
    mc_tile *tile;
    ck_fails(UNAVAILABLE, mc_cache_get(&tile, cache, &key, &ctx, pool));
    snprintf(id, sizeof(id), "%s", strchr(ask_redis(&nodes[1], "CLUSTER MYID"), '\n') + 1);
    for (int i = 0; i < 2; i++) {
        const char *order = apr_psprintf(pool, "CLUSTER SETSLOT %d NODE %s", slot, id);
        ck_assert_str_eq(ask_redis(&nodes[i], order), "+OK\r\n");
    }
    while (mc_cache_get(&tile, cache, &key, &ctx, pool) != MC_OK)
        usleep(20000);
    ck_assert_ptr_null(tile); /* it was on the other one */
    put_text(cache, &key, "again");
    expect_text(cache, &key, "again");
    stop_redis(&nodes[0]);
    stop_redis(&nodes[1]);
}
END_TEST

START_TEST(a_stalled_server_holds_nobody_up)
{
    start_server(NULL);
    mc_cache *cache = redis_store(server.port, "<timeout>0.6</timeout>");
    mc_tile_key key = key_at(3, 5, 6);
    mc_tile *tile;
    int stopped;
    put_text(cache, &key, "tile");
    kill(server.pid, SIGSTOP);
    ck_assert_int_eq(waitpid(server.pid, &stopped, WUNTRACED), server.pid);
    ctx.deadline = mc_clock_now() + 100000;
    ck_fails(UNAVAILABLE, mc_cache_get(&tile, cache, &key, &ctx, pool)); /* the request's own hurry */
    ctx.deadline = 0;
    apr_time_t begin = mc_clock_now();
    ck_assert_ptr_nonnull(strstr(why_not_got(cache), "no answer in time"));
    ck_assert_int_ge(mc_clock_now() - begin, 600000);
    ck_assert_ptr_nonnull(strstr(why_not_got(cache), "is left alone for a while"));
    kill(server.pid, SIGCONT);
    while (mc_cache_get(&tile, cache, &key, &ctx, pool) != MC_OK)
        usleep(20000);
    expect_text(cache, &key, "tile");
    kill(server.pid, SIGKILL);
    waitpid(server.pid, NULL, 0);
    why_not_got(cache);
    ck_assert_int_eq(system(apr_psprintf(pool, "rm -rf %s", server.folder)), 0);
}
END_TEST

/* A server that is full says so; a tile that was there before is not served as the new one. */
START_TEST(a_full_server_says_so)
{
    static const char *const options[] = { "--maxmemory", "3mb", "--maxmemory-policy", "noeviction", NULL };
    mc_tile_write puts[200];
    mc_tile_key keys[200];
    start_server(options);
    mc_cache *cache = redis_store(server.port, "");
    fill_tiles(puts, keys, 200, 50000);
    mc_error *error = mc_cache_put(cache, puts, 200, &ctx);
    ck_assert_ptr_nonnull(error);
    ck_assert_int_eq(error->kind, MC_ERR_IO);
    ck_assert_msg(strstr(error->message, "cache \"c\" does not take a tile of 50000 bytes: OOM") != NULL, "%s",
                  error->message);
    stop_redis(&server);
}
END_TEST

/* One that does not know AUTH quotes the words that came with it. */
START_TEST(no_message_has_a_password)
{
    static const char *const options[] = { "--rename-command", "AUTH", "", NULL };
    start_server(options);
    const char *why = why_not_got(redis_store(server.port, "<user>maps</user><password>sesame</password>"));
    ck_assert_msg(strstr(why, "unknown command") != NULL && strstr(why, "sesame") == NULL, "%s", why);
    stop_redis(&server);
}
END_TEST

static mc_remote_address
node_at(int port, bool told)
{
    return (mc_remote_address){ .kind = "redis", .host = "127.0.0.1", .port = port, .told = told };
}

static void
count_away(void *baton, const char *name, bool works)
{
    (void)name;
    *(int *)baton += !works;
}

START_TEST(servers_that_nobody_asks_are_not_away)
{
    int away = 0, later = 0;
    const apr_time_t begin = mc_clock_now();
    why_not_got(redis_store(1, ""));
    mc_remotes_visit(process.remotes, begin, count_away, &away);
    mc_remotes_visit(process.remotes, mc_clock_now() + 1, count_away, &later);
    ck_assert(away == 1 && later == 0);
}
END_TEST

/* Addresses of a cluster come and go: neither they nor what a liar says takes the places of others. */
START_TEST(servers_that_are_told_leave_room_for_others)
{
    int told = 0;
    for (int port = 1; port <= 1100; port++) {
        const mc_remote_address address = node_at(port, true);
        told += mc_remote_find(process.remotes, &address) != NULL;
    }
    ck_assert_int_eq(told, 512);
    const mc_remote_address configured = node_at(2000, false), late = node_at(3000, true);
    mc_remote *own = mc_remote_find(process.remotes, &configured);
    ck_assert_ptr_nonnull(own);
    ck_assert_ptr_null(mc_remote_find(process.remotes, &late));
    const mc_remote_call call = { .ctx = &ctx, .pool = pool };
    mc_stream *stream = mc_stream_adopt(own, open("/dev/null", O_RDONLY), &call);
    mc_remotes_forget(process.remotes, mc_clock_now() + 1);
    ck_assert_ptr_nonnull(mc_remote_find(process.remotes, &late));
    ck_assert_ptr_eq(mc_remote_find(process.remotes, &configured), own); /* somebody uses it */
    mc_stream_close(stream);
}
END_TEST

START_TEST(a_cluster_may_name_ever_new_servers)
{
    mc_cluster *cluster = mc_cluster_create(pool);
    mc_cluster_node node = { .host = "127.0.0.1" };
    for (node.port = 1; node.port <= 3 * MC_CLUSTER_NODES_MAX; node.port++) {
        int number = mc_cluster_add(cluster, &node);
        ck_assert_int_ge(number, 0);
        if (node.port == 7)
            mc_cluster_learn(cluster, 100, number);
    }
    ck_assert_int_eq(mc_cluster_node_of(cluster, mc_cluster_find(cluster, 100)).port, 7);
}
END_TEST

/* What a server says of its copies and such is dropped as it comes, however much that is. */
START_TEST(what_nobody_wants_takes_no_memory)
{
    enum { COUNT = 2000, SIZE = 4000 };
    static const char head[] = "$4000\r\n";
    const mc_remote_address address = node_at(1, false);
    const mc_remote_call call = { .ctx = &ctx, .pool = pool };
    int ends[2], budget = COUNT;
    char *value = apr_pcalloc(pool, SIZE + 2);
    memset(value, 'v', SIZE);
    memcpy(value + SIZE, "\r\n", 2);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    pid_t teller = fork();
    if (teller == 0) {
        for (int i = 0; i < COUNT; i++)
            if (send(ends[1], head, sizeof(head) - 1, MSG_NOSIGNAL) < 0 ||
                send(ends[1], value, SIZE + 2, MSG_NOSIGNAL) < 0)
                break;
        _exit(0);
    }
    close(ends[1]);
    mc_stream *stream = mc_stream_adopt(mc_remote_find(process.remotes, &address), ends[0], &call);
    const size_t before = mallinfo2().uordblks;
    ck_ok(mc_resp_skip(stream, COUNT, &budget));
    ck_assert_uint_lt(mallinfo2().uordblks, before + (1 << 20));
    mc_stream_close(stream);
    waitpid(teller, NULL, 0);
}
END_TEST

/* What a get says of a server that answers so. */
static mc_error *
get_at_liar(mc_tile **tile, const char *answer, size_t size, size_t first)
{
    liar_server liar;
    start_liar(&liar, answer, size, first, 1);
    mc_cache *cache = redis_store(liar.port, "");
    mc_tile_key key = key_at(3, 5, 6);
    mc_error *error = mc_cache_get(tile, cache, &key, &ctx, pool);
    mc_remotes_destroy(process.remotes);
    process.remotes = mc_remotes_create();
    stop_liar(&liar);
    return error;
}

#define VALUE "$12\r\ntile\1\2\3\4\5\1\0\0\r\n"

START_TEST(answers_are_read_whatever_their_pieces_are)
{
    static const char whole[] = "*1\r\n" VALUE;
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
        LIE("*1"),
        LIE("*1\r\n"),
        LIE("*1\n" VALUE),
        LIE("ERROR\r\n"),
        LIE("-ERR unknown command\r\n"),
        LIE("-MOVED\r\n"),
        LIE("-MOVED 3999 127.0.0.1:6381\r\n"),
        LIE("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"),
        LIE("*0\r\n"),
        LIE("*2\r\n" VALUE VALUE),
        LIE("*99999999999999999999\r\n" VALUE),
        LIE("*-2\r\n"),
        LIE("*1\r\n" VALUE VALUE),
        LIE(VALUE),
        LIE("*1\r\n*1\r\n" VALUE),
        LIE("*1\r\n:1\r\n"),
        LIE("*1\r\n+OK\r\n"),
        LIE("*1\r\n$12\r\ntile"),
        LIE("*1\r\n$12\r\ntile\1\2\3\4\5\1\0\0xx"),
        LIE("*1\r\n$-2\r\n"),
        LIE("*1\r\n$9999999999\r\nx"),
        LIE("*1\r\n$12 \r\ntile\1\2\3\4\5\1\0\0\r\n"),
        LIE("*1\r\n$\r\n\r\n"),
        LIE("\0"),
    };
    for (size_t i = 0; i < sizeof(lies) / sizeof(*lies); i++) {
        mc_tile *tile = NULL;
        mc_error *error = get_at_liar(&tile, lies[i].bytes, lies[i].size, 0);
        ck_assert_msg(error != MC_OK && error->kind == MC_ERR_UNAVAILABLE && tile == NULL, "lie %zu: %s", i,
                      mc_error_chain(error, pool));
        ck_assert_ptr_nonnull(strstr(mc_error_chain(error, pool), "redis"));
    }
}
END_TEST

/* The examples of the specification, and of CRC-16 of XMODEM. */
START_TEST(slots_are_those_of_the_specification)
{
    ck_assert_int_eq(mc_cluster_slot("123456789", 9), 0x31c3);
    ck_assert_int_eq(mc_cluster_slot("{user1000}.following", 20), mc_cluster_slot("user1000", 8));
    ck_assert_int_eq(mc_cluster_slot("foo{}{bar}", 10), 8363);
    ck_assert_int_eq(mc_cluster_slot("foo{{bar}}zap", 13), mc_cluster_slot("{bar", 4));
    ck_assert_int_eq(mc_cluster_slot("foo{bar}{zap}", 13), mc_cluster_slot("bar", 3));
    mc_cluster_node node;
    int slot;
    ck_assert(mc_cluster_redirection(&slot, &node, "MOVED 3999 127.0.0.1:6381"));
    ck_assert(slot == 3999 && node.port == 6381 && strcmp(node.host, "127.0.0.1") == 0);
    ck_assert(mc_cluster_redirection(&slot, &node, "ASK 0 ::1:6381") && strcmp(node.host, "::1") == 0);
    ck_assert(mc_cluster_redirection(&slot, &node, "MOVED 3999 :6381") && node.host[0] == '\0');
    static const char *const none[] = { "MOVED",     "MOVED 1",    "MOVED x a:1", "MOVED -1 a:1",    "MOVED 16384 a:1",
                                        "MOVED 1 a", "MOVED 1 a:", "MOVED 1 a:0", "MOVED 1 a:65536", "MOVED 1 a:1x" };
    for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++)
        ck_assert_msg(!mc_cluster_redirection(&slot, &node, none[i]), "%s", none[i]);
}
END_TEST

START_TEST(redis_configurations_are_checked)
{
    static const char *const wrong[] = {
        "",
        "<port>6379</port>",
        "<host>a</host><port>0</port>",
        "<host>a</host><port>x</port>",
        "<host>a</host><user>b</user>",
        "<host>a</host><password_file>/nowhere/at/all</password_file>",
        "<server><port>1</port></server>",
        "<socket>/a</socket><tls>true</tls>",
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
        ck_assert_int_eq(cache_complaint_of(apr_psprintf(pool, "<cache name='c' type='redis'>%s</cache>", wrong[i])),
                         MC_REFUSED);
}
END_TEST

CACHE_MAIN("redis", redis_conforms, values_are_those_of_mapcache, tiles_go_when_they_are_of_no_use,
           other_values_are_no_tiles, all_tiles_of_a_map_come_together, passwords_open_the_server,
           connections_can_be_encrypted, a_cluster_tells_where_its_keys_are, slots_that_move_are_followed,
           a_lost_seed_is_replaced, a_lost_node_is_replaced, a_stalled_server_holds_nobody_up, a_full_server_says_so,
           no_message_has_a_password, servers_that_nobody_asks_are_not_away,
           servers_that_are_told_leave_room_for_others, a_cluster_may_name_ever_new_servers,
           what_nobody_wants_takes_no_memory, answers_are_read_whatever_their_pieces_are,
           answers_that_are_none_give_no_tile, slots_are_those_of_the_specification, redis_configurations_are_checked)
