/*
 * Microseconds of 1, 16 and 64 stored tiles of 16 KB from a server of keys and values or a database: one call of its
 * usual C client (hiredis, libmemcached, libpq) for tiles whose keys and statements are ready, and one call of our
 * cache. Pairs that take turns, by the clock and of the processor: medians, and the fastest tenth.
 * `micro_clients redis|memcache PORT [pairs]`, `micro_clients postgresql CONNECTION [pairs]`.
 */
#include <apr_general.h>
#include <apr_hash.h>
#include <apr_strings.h>
#include <hiredis/hiredis.h>
#include <libmemcached/memcached.h>
#include <libpq-fe.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/metrics.h"
#include "cache/cache_base.h"
#include "cache/postgresql/postgresql_array.h"
#include "cache/postgresql/postgresql_sql.h"
#include "measure.h"
#include "remote/remote.h"

enum { TILE_BYTES = 16384, TILES_MOST = 64, PAIRS_MOST = 10000, VALUE_MORE = 8 /* the time behind each tile */ };

static mc_level levels[] = { { 1000, TILES_MOST, 1 } };
static mc_grid grid = { .name = "g", .tile_width = 256, .tile_height = 256, .level_count = 1, .levels = levels };
static uint8_t tile_bytes[TILE_BYTES] = { 0xff, 0xd8, 0xff };
static mc_tile_key tile_keys[TILES_MOST];
static const char *key_texts[TILES_MOST + 1]; /* the first one is redis' verb */
static size_t key_sizes[TILES_MOST + 1];
static apr_pool_t *pool;
static mc_process process;
static mc_ctx ctx;

static void
exit_unless(bool fine, const char *what)
{
    if (fine)
        return;
    fprintf(stderr, "micro_clients: %s\n", what);
    exit(1);
}

/* --- the usual clients: all tiles by one request; what they bring is counted, and given back -----------------------
 */

typedef struct usual_client {
    const char *type, *name;
    void *(*open)(const char *where);
    size_t (*get)(void *client, int count); /* bytes of all tiles, without what stands behind them */
} usual_client;

static void *
open_hiredis(const char *where)
{
    redisContext *redis = redisConnect("127.0.0.1", atoi(where));
    exit_unless(redis != NULL && redis->err == 0, "hiredis cannot connect");
    return redis;
}

static size_t
get_by_hiredis(void *client, int count)
{
    size_t size = 0;
    redisReply *reply = redisCommandArgv(client, count + 1, key_texts, key_sizes);
    exit_unless(reply != NULL && reply->type == REDIS_REPLY_ARRAY, "hiredis has no answer");
    for (size_t i = 0; i < reply->elements; i++)
        size += reply->element[i]->len - VALUE_MORE;
    freeReplyObject(reply);
    return size;
}

static void *
open_libmemcached(const char *where)
{
    memcached_st *memcached = memcached_create(NULL);
    memcached_behavior_set(memcached, MEMCACHED_BEHAVIOR_TCP_NODELAY, 1);
    exit_unless(memcached_server_add(memcached, "127.0.0.1", (in_port_t)atoi(where)) == MEMCACHED_SUCCESS,
                "libmemcached cannot connect");
    return memcached;
}

static size_t
get_by_libmemcached(void *client, int count)
{
    memcached_return_t status;
    memcached_result_st *result;
    size_t size = 0;
    uint32_t flags;
    if (count == 1) {
        char *value = memcached_get(client, key_texts[1], key_sizes[1], &size, &flags, &status);
        exit_unless(value != NULL, "libmemcached has no answer");
        free(value);
        return size - VALUE_MORE;
    }
    exit_unless(memcached_mget(client, key_texts + 1, key_sizes + 1, (size_t)count) == MEMCACHED_SUCCESS,
                "libmemcached cannot ask");
    while ((result = memcached_fetch_result(client, NULL, &status)) != NULL) {
        size += memcached_result_length(result) - VALUE_MORE;
        memcached_result_free(result);
    }
    return size;
}

static void *
open_libpq(const char *where)
{
    mc_postgresql_sql sql;
    PGconn *connection = PQconnectdb(where);
    exit_unless(PQstatus(connection) == CONNECTION_OK, PQerrorMessage(connection));
    mc_postgresql_statements(&sql, "mapcache_tiles", pool);
    const Oid one[] = { MC_POSTGRES_TEXT, MC_POSTGRES_TEXT, MC_POSTGRES_TEXT,
                        MC_POSTGRES_INT4, MC_POSTGRES_INT4, MC_POSTGRES_INT4 };
    const Oid all[] = { MC_POSTGRES_TEXT, MC_POSTGRES_TEXT, MC_POSTGRES_TEXT, MC_POSTGRES_INT4 };
    PQclear(PQprepare(connection, "one", sql.get, 6, one));
    PQclear(PQprepare(connection, "all", sql.get_all, 4, all));
    return connection;
}

/* The statements and parameters of our own cache. */
static size_t
get_by_libpq(void *client, int count)
{
    static int columns[TILES_MOST], rows[TILES_MOST];
    static const char zero[4];
    static const int formats[] = { 0, 0, 0, 1, 1, 1 };
    static mc_postgres_param x[TILES_MOST + 1], y[TILES_MOST + 1]; /* made once */
    for (int i = 0; i < count; i++)
        columns[i] = i;
    if (x[count].value == NULL)
        x[count] = mc_postgres_int_array(columns, count, pool), y[count] = mc_postgres_int_array(rows, count, pool);
    const bool one = count == 1;
    const char *const values[] = { "t", "g", "", zero, one ? zero : x[count].value, one ? zero : y[count].value };
    const int sizes[] = { 1, 1, 0, 4, one ? 4 : x[count].size, one ? 4 : y[count].size };
    size_t size = 0;
    PGresult *result = PQexecPrepared(client, one ? "one" : "all", 6, values, sizes, formats, 1);
    exit_unless(PQresultStatus(result) == PGRES_TUPLES_OK, PQresultErrorMessage(result));
    for (int i = 0; i < PQntuples(result); i++)
        size += (size_t)PQgetlength(result, i, one ? 0 : 2);
    PQclear(result);
    return size;
}

static const usual_client usual_clients[] = {
    { "redis", "hiredis, MGET", open_hiredis, get_by_hiredis },
    { "memcache", "libmemcached", open_libmemcached, get_by_libmemcached },
    { "postgresql", "libpq, our statement", open_libpq, get_by_libpq },
};

/* --- our cache ---------------------------------------------------------------------------------------------------- */

static mc_cache *
create_client_cache(const char *type, const char *where)
{
    mc_node *root;
    mc_build build = { .pool = pool, .diagnostics = mc_diagnostics_create(pool), .caches = apr_hash_make(pool) };
    const char *place = apr_psprintf(pool, "<host>127.0.0.1</host><port>%s</port>", where);
    if (strcmp(type, "memcache") == 0)
        place = apr_psprintf(pool, "<server>%s</server>", place);
    else if (strcmp(type, "postgresql") == 0)
        place = apr_psprintf(pool, "<connection>%s</connection>", where);
    const char *text = apr_psprintf(pool, "<mapcache><cache name='c' type='%s'>%s</cache></mapcache>", type, place);
    exit_on_error(mc_config_parse_text(&root, "micro", text, strlen(text), NULL, pool));
    mc_cache *cache = mc_cache_from_config(root->children, &build);
    exit_on_error(mc_diagnostics_error(build.diagnostics, pool));
    cache->remember = false;
    return cache;
}

static void
store_client_tiles(mc_cache *cache)
{
    mc_tile_write writes[TILES_MOST] = { 0 };
    key_texts[0] = "MGET";
    for (int i = 0; i < TILES_MOST; i++) {
        tile_keys[i] = (mc_tile_key){
            .tileset = "t", .grid = &grid, .x = i, .extension = "jpg", .mime = "image/jpeg", .renderable = true
        };
        key_texts[i + 1] = apr_psprintf(pool, "t/g/0/0/%d/jpg", i);
        writes[i] =
            (mc_tile_write){ .key = tile_keys[i], .data = mc_buf_attach(mc_buf_copy(tile_bytes, TILE_BYTES), pool) };
    }
    for (int i = 0; i <= TILES_MOST; i++)
        key_sizes[i] = strlen(key_texts[i]);
    exit_on_error(mc_cache_put(cache, writes, TILES_MOST, &ctx));
}

static size_t
get_by_cache(mc_cache *cache, int count)
{
    mc_tile *tiles[TILES_MOST] = { NULL };
    size_t size = 0;
    if (count == 1)
        exit_on_error(mc_cache_get(tiles, cache, tile_keys, &ctx, ctx.pool));
    else
        exit_on_error(mc_cache_get_all(tiles, cache, tile_keys, count, &ctx, ctx.pool));
    for (int i = 0; i < count; i++)
        size += tiles[i] == NULL ? 0 : tiles[i]->data->size;
    apr_pool_clear(ctx.pool);
    return size;
}

/* --- pairs -------------------------------------------------------------------------------------------------------- */

typedef struct client_times {
    double clock[PAIRS_MOST], processor[PAIRS_MOST];
} client_times;

static void
measure_client_call(client_times *times, int pair, const usual_client *usual, void *client, mc_cache *cache, int count)
{
    double clock = read_clock_us(CLOCK_MONOTONIC), processor = read_clock_us(CLOCK_PROCESS_CPUTIME_ID);
    size_t size = cache == NULL ? usual->get(client, count) : get_by_cache(cache, count);
    times->processor[pair] = read_clock_us(CLOCK_PROCESS_CPUTIME_ID) - processor;
    times->clock[pair] = read_clock_us(CLOCK_MONOTONIC) - clock;
    exit_unless(size == (size_t)count * TILE_BYTES, "tiles are missing");
}

/* The fastest tenth is what others on the machine have left alone. */
static void
print_compared(const char *what, double *ours, double *theirs, int count)
{
    qsort(ours, (size_t)count, sizeof(*ours), compare_doubles);
    qsort(theirs, (size_t)count, sizeof(*theirs), compare_doubles);
    const int tenth = count / 10, half = count / 2;
    printf("  %-13s fastest tenth %6.0f and %6.0f us: %.2f; median %6.0f and %6.0f us: %.2f\n", what, ours[tenth],
           theirs[tenth], ours[tenth] / theirs[tenth], ours[half], theirs[half], ours[half] / theirs[half]);
}

static void
measure_clients(const usual_client *usual, void *client, mc_cache *cache, int pairs)
{
    static client_times theirs, ours;
    static const int counts[] = { 1, 16, TILES_MOST };
    for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++) {
        for (int pair = -5; pair < pairs; pair++) { /* the first ones make connections */
            const int at = pair < 0 ? 0 : pair;
            measure_client_call(&theirs, at, usual, client, NULL, counts[i]);
            measure_client_call(&ours, at, usual, client, cache, counts[i]);
        }
        printf("%s, %d tiles, ours and %s\n", usual->type, counts[i], usual->name);
        print_compared("by the clock", ours.clock, theirs.clock, pairs);
        print_compared("of processor", ours.processor, theirs.processor, pairs);
    }
}

int
main(int argc, char **argv)
{
    const int pairs = argc > 3 ? atoi(argv[3]) : 300;
    const usual_client *usual = NULL;
    for (size_t i = 0; argc > 2 && i < sizeof(usual_clients) / sizeof(*usual_clients); i++)
        if (strcmp(usual_clients[i].type, argv[1]) == 0)
            usual = &usual_clients[i];
    if (usual == NULL || pairs < 1 || pairs > PAIRS_MOST)
        return 1;
    mallopt(M_TRIM_THRESHOLD, 4 << 20); /* as in our servers: lib/server/runtime.c */
    mallopt(M_MMAP_THRESHOLD, 1 << 20);
    apr_initialize();
    apr_pool_create(&pool, NULL);
    process = (mc_process){ .remotes = mc_remotes_create(),
                            .postgres = mc_postgres_create(4, 1, 60 * APR_USEC_PER_SEC, false),
                            .metrics = mc_metrics_create() };
    ctx = (mc_ctx){ .pool = pool, .process = &process, .log = &mc_log_stderr };
    mc_cache *cache = create_client_cache(argv[1], argv[2]);
    store_client_tiles(cache);
    apr_pool_create(&ctx.pool, pool);
    measure_clients(usual, usual->open(argv[2]), cache, pairs);
    apr_terminate();
    return 0;
}
