/*
 * Microseconds of one stored tile of 16 KB from a web server, by the clock and of the processor, the medians of rounds
 * that take turns: libcurl alone on a kept connection, libcurl with requests that it signs by itself, and the caches
 * "rest" and "s3". `micro_far ADDRESS [rounds [way]]`: the server at ADDRESS, "http://127.0.0.1:8080", takes PUT and
 * GET.
 */
#include <apr_general.h>
#include <apr_hash.h>
#include <apr_strings.h>
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/metrics.h"
#include "cache/cache_base.h"
#include "cache/rest/sigv4.h"
#include "http/http.h"
#include "http/http_address.h"
#include "measure.h"

enum { TILE_BYTES = 16384, ROUND_GETS = 100, ROUNDS_MOST = 1000 };

static mc_level levels[] = { { 1000, 1, 1 } };
static mc_grid grid = { .name = "g", .tile_width = 256, .tile_height = 256, .level_count = 1, .levels = levels };
static const mc_tile_key key = { .tileset = "t", .grid = &grid, .extension = "jpg", .mime = "image/jpeg" };
static uint8_t tile_bytes[TILE_BYTES] = { 0xff, 0xd8, 0xff };
static apr_pool_t *pool;
static mc_process process;
static mc_ctx ctx;

static mc_cache *
create_far_cache(const char *type, const char *address, const char *inner)
{
    mc_node *root;
    mc_build build = { .pool = pool, .diagnostics = mc_diagnostics_create(pool), .caches = apr_hash_make(pool) };
    const char *text = apr_psprintf(
        pool,
        "<mapcache><cache name='c' type='%s'><url>%s/s3/{tileset}/{grid}/{z}/{x}/{y}.{ext}</url>%s</cache></mapcache>",
        type, address, inner);
    exit_on_error(mc_config_parse_text(&root, "micro", text, strlen(text), NULL, pool));
    mc_cache *cache = mc_cache_from_config(root->children, &build);
    exit_on_error(mc_diagnostics_error(build.diagnostics, pool));
    cache->remember = false;
    return cache;
}

/* What libcurl has brought of a tile. */
typedef struct answer_bytes {
    size_t size;
    uint8_t bytes[TILE_BYTES];
} answer_bytes;

static answer_bytes answer;

static size_t
take_answer(char *data, size_t one, size_t size, void *baton)
{
    (void)one;
    (void)baton;
    if (size > sizeof(answer.bytes) - answer.size)
        return 0;
    memcpy(answer.bytes + answer.size, data, size);
    answer.size += size;
    return size;
}

/* One way to get the tile. */
typedef struct far_way {
    const char *name;
    mc_cache *cache; /* NULL: libcurl */
    CURL *easy;
    double clock[ROUNDS_MOST], processor[ROUNDS_MOST];
} far_way;

static void
get_tile_once(const far_way *way)
{
    mc_tile *tile;
    answer.size = 0;
    if (way->cache == NULL) {
        if (curl_easy_perform(way->easy) != CURLE_OK || answer.size != TILE_BYTES)
            exit(1);
        return;
    }
    exit_on_error(mc_cache_get(&tile, way->cache, &key, &ctx, ctx.pool));
    if (tile == NULL || tile->data->size != TILE_BYTES)
        exit(1);
}

/* The headers of a request that was signed before, once: what is sent is what the cache "s3" sends. */
static struct curl_slist *
sign_beforehand(const char *url)
{
    const mc_aws_secret secret = { "AKIDEXAMPLE", "secret", NULL };
    const mc_sigv4 request = {
        .method = "GET", .path = mc_http_path_of(url), .query = "", .region = "eu-test-1", .now = apr_time_now()
    };
    apr_table_t *headers = apr_table_make(pool, 8);
    struct curl_slist *list = NULL;
    apr_table_setn(headers, "Host", mc_http_host_of(url, pool));
    mc_sigv4_sign(headers, &request, &secret, pool);
    const apr_array_header_t *items = apr_table_elts(headers);
    for (int i = 0; i < items->nelts; i++) {
        const apr_table_entry_t *item = &APR_ARRAY_IDX(items, i, apr_table_entry_t);
        list = curl_slist_append(list, apr_pstrcat(pool, item->key, ": ", item->val, NULL));
    }
    return list;
}

static CURL *
open_curl(const char *url, bool signs)
{
    CURL *easy = curl_easy_init();
    curl_easy_setopt(easy, CURLOPT_URL, url);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_answer);
    if (signs) {
        curl_easy_setopt(easy, CURLOPT_AWS_SIGV4, "aws:amz:eu-test-1:s3");
        curl_easy_setopt(easy, CURLOPT_USERPWD, "AKIDEXAMPLE:secret");
    }
    return easy;
}

static void
measure_round(far_way *way, int round)
{
    double clock = read_clock_us(CLOCK_MONOTONIC), processor = read_clock_us(CLOCK_PROCESS_CPUTIME_ID);
    for (int i = 0; i < ROUND_GETS; i++) {
        get_tile_once(way);
        apr_pool_clear(ctx.pool);
    }
    way->clock[round] = (read_clock_us(CLOCK_MONOTONIC) - clock) / ROUND_GETS;
    way->processor[round] = (read_clock_us(CLOCK_PROCESS_CPUTIME_ID) - processor) / ROUND_GETS;
}

static double
median_of(double *values, int count)
{
    qsort(values, (size_t)count, sizeof(*values), compare_doubles);
    return values[count / 2];
}

static void
measure_far_ways(const char *address, int rounds, const char *wanted)
{
    static far_way ways[] = { { .name = "libcurl" },
                              { .name = "libcurl, signed" },
                              { .name = "libcurl, signing" },
                              { .name = "rest" },
                              { .name = "s3" } };
    enum { PLAIN, SIGNED, SIGNING, REST, S3 };
    const char *url = apr_pstrcat(pool, address, "/s3/t/g/0/0/0.jpg", NULL);
    struct curl_slist *headers = sign_beforehand(url);
    ways[PLAIN].easy = open_curl(url, false);
    ways[SIGNED].easy = open_curl(url, false);
    curl_easy_setopt(ways[SIGNED].easy, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(ways[SIGNED].easy, CURLOPT_ACCEPT_ENCODING, "gzip");
    ways[SIGNING].easy = open_curl(url, true);
    ways[REST].cache = create_far_cache("rest", address, "");
    ways[S3].cache =
        create_far_cache("s3", address, "<id>AKIDEXAMPLE</id><secret>secret</secret><region>eu-test-1</region>");
    const mc_tile_write write = { .key = key, .data = mc_buf_attach(mc_buf_copy(tile_bytes, TILE_BYTES), pool) };
    exit_on_error(mc_cache_put(ways[REST].cache, &write, 1, &ctx));
    apr_pool_create(&ctx.pool, pool);
    for (int round = -1; round < rounds; round++) /* the first one makes the connections */
        for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++)
            if (wanted == NULL || strcmp(wanted, ways[i].name) == 0)
                measure_round(&ways[i], round < 0 ? 0 : round);
    for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
        printf("%-20s %8.1f us by the clock %8.1f us of the processor\n", ways[i].name,
               median_of(ways[i].clock, rounds), median_of(ways[i].processor, rounds));
        curl_easy_cleanup(ways[i].easy);
    }
    curl_slist_free_all(headers);
}

int
main(int argc, char **argv)
{
    int rounds = argc > 2 ? atoi(argv[2]) : 100;
    if (argc < 2 || rounds < 1 || rounds > ROUNDS_MOST)
        return 1;
    apr_initialize();
    apr_pool_create(&pool, NULL);
    process = (mc_process){ .http = mc_http_create(16), .metrics = mc_metrics_create() };
    ctx = (mc_ctx){ .pool = pool, .process = &process, .log = &mc_log_stderr };
    measure_far_ways(argv[1], rounds, argc > 3 ? argv[3] : NULL);
    mc_http_destroy(process.http);
    mc_metrics_destroy(process.metrics);
    apr_terminate();
    return 0;
}
