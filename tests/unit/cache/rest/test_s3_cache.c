/* Objects that are signed for, on a store that checks each signature; and where credentials come from. */
#include "cache_fixture.h"

#include <pthread.h>

#include "cache/rest/aws_credentials.h"
#include "store_server.h"

#define KEYS "<id>AKIDEXAMPLE</id><secret>wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY</secret><region>eu-test-1</region>"
#define REGION "<region>eu-test-1</region>"

static store_server server;

static const char *const variables[] = {
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_ROLE_ARN",
    "AWS_ROLE_SESSION_NAME",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_ENDPOINT_URL_STS",
    "AWS_SHARED_CREDENTIALS_FILE",
    "AWS_PROFILE",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
    "AWS_EC2_METADATA_SERVICE_ENDPOINT",
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
};

static void
set_up_s3(void)
{
    unit_setup();
    start_cache_test();
    process.metrics = mc_metrics_create();
    server = store_start("s3");
    for (size_t i = 0; i < sizeof(variables) / sizeof(*variables); i++)
        unsetenv(variables[i]);
    setenv("HOME", cache_folder, 1);
    setenv("AWS_EC2_METADATA_DISABLED", "true", 1);
}

static void
tear_down_s3(void)
{
    store_stop(&server);
    mc_metrics_destroy(process.metrics);
    end_cache_test();
    unit_teardown();
}

static mc_cache *
s3_store(const char *template, const char *inner)
{
    return cache_of(apr_psprintf(pool, "<cache name='c' type='s3'><url>http://127.0.0.1:%d/%s</url>%s</cache>",
                                 server.port, template, inner));
}

static mc_cache *
bucket_store(const char *inner)
{
    return s3_store("bucket/{tileset}/{grid}/{z}/{x}/{y}.{ext}", inner);
}

static const char *
server_url(const char *path)
{
    return apr_psprintf(pool, "http://127.0.0.1:%d%s", server.port, path);
}

static const char *
write_test_file(const char *name, const char *text)
{
    const char *path = apr_psprintf(pool, "%s/%s", cache_folder, name);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    ck_assert_int_eq(fclose(file), 0);
    return path;
}

START_TEST(it_conforms)
{
    conform_cache(bucket_store(KEYS));
    conform_cache(s3_store("{tileset}/{grid}/{z}/{x}/{y}.{ext}", /* the bucket is the host */
                           KEYS "<headers><Host>bucket.s3.eu-test-1.amazonaws.com</Host></headers>"));
}
END_TEST

START_TEST(names_of_all_bytes_are_signed)
{
    mc_cache *cache = s3_store("bucket/a b+c/{tileset}/{dim:d}/{z}/{x}/{y}.{ext}",
                               KEYS "<operation type='put'><headers><x-amz-acl>public-read</x-amz-acl>"
                                    "<x-amz-meta-note>  two   blanks </x-amz-meta-note></headers></operation>");
    mc_dimension_value dimension = { "d", "\xc3\xa9~*'()!$&,;=:@ %2F/\x01", true };
    mc_tile_key key = key_at(1, 1, 0);
    key.dimensions = &dimension;
    key.dimension_count = 1;
    put_text(cache, &key, "tile");
    const char *log = store_order(&server, "log");
    ck_assert_ptr_nonnull(strstr(log, "\"x-amz-acl\": \"public-read\""));
    expect_text(cache, &key, "tile");
    ck_assert_ptr_nonnull(strstr(store_order(&server, "list"), "/bucket/a%2Bb%2Bc/ts/%C3%A9~%2A%27%28%29%21%24"));
}
END_TEST

START_TEST(refusals_are_no_misses)
{
    mc_tile_key key = key_at(1, 1, 0);
    mc_tile *tile;
    mc_cache *wrong = bucket_store("<id>AKIDEXAMPLE</id><secret>another</secret>" REGION);
    mc_error *error = mc_cache_get(&tile, wrong, &key, &ctx, pool);
    ck_assert_ptr_nonnull(strstr(mc_error_chain(error, pool), "SignatureDoesNotMatch"));
    ck_assert_ptr_nonnull(strstr(error->message, "refuses access"));
    ck_assert_ptr_null(strstr(mc_error_chain(error, pool), "another"));
    mc_cache *cache = bucket_store(KEYS);
    store_order(&server, "skew/-4000");
    error = mc_cache_get(&tile, cache, &key, &ctx, pool);
    ck_assert_ptr_nonnull(error);
    ck_assert_msg(strstr(error->message, "clock") != NULL, "%s", error->message);
    store_order(&server, "skew/0");
    expect_text(cache, &key, NULL);
    ck_fails(UPSTREAM,
             mc_cache_get(&tile, bucket_store("<id>a</id><secret>b</secret><region>us-1</region>"), &key, &ctx, pool));
    store_order(&server, "fail/301/1/PermanentRedirect");
    ck_fails(UPSTREAM, mc_cache_get(&tile, cache, &key, &ctx, pool)); /* nobody signs for another address */
}
END_TEST

static void
expect_works(mc_cache *cache)
{
    mc_tile_key key = key_at(1, 1, 0);
    put_text(cache, &key, "tile");
    expect_text(cache, &key, "tile");
}

START_TEST(credentials_of_the_environment_and_of_files)
{
    static const char lines[] = "AKIDEXAMPLE\nwJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY\n";
    static const char sections[] =
        "# comment\n[other]\naws_access_key_id = x\naws_secret_access_key = y\n\n[ tiles ]\r\n"
        "aws_access_key_id=AKIDEXAMPLE\r\n; comment\naws_secret_access_key =  "
        "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY\n"
        "aws_session_token = from a file\n[default]\naws_access_key_id = z\n";
    mc_tile_key key = key_at(1, 1, 0);
    mc_tile *tile;
    setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", 1);
    setenv("AWS_REGION", "eu-test-1", 1);
    expect_works(bucket_store(""));
    store_order(&server, "token/of-the-session");
    setenv("AWS_SESSION_TOKEN", "of-the-session", 1);
    expect_works(bucket_store(""));
    store_order(&server, "token/-");
    const char *file = write_test_file("lines", lines);
    const char *inner = apr_psprintf(pool, "<credentials_file>%s</credentials_file>" REGION, file);
    mc_cache *cache = bucket_store(inner);
    expect_works(cache);
    write_test_file("lines", apr_pstrcat(pool, lines, "a-token\n", NULL)); /* it is read with every request */
    store_order(&server, "token/a-token");
    expect_works(cache);
    ck_assert_int_eq(unlink(file), 0);
    ck_fails(CONFIG, mc_cache_get(&tile, cache, &key, &ctx, pool));
    unsetenv("AWS_ACCESS_KEY_ID");
    ck_fails(CONFIG, mc_cache_get(&tile, bucket_store(""), &key, &ctx, pool)); /* nobody says who asks */
    setenv("AWS_SHARED_CREDENTIALS_FILE", write_test_file("shared", sections), 1);
    ck_fails(CONFIG, mc_cache_get(&tile, bucket_store(""), &key, &ctx, pool)); /* half of a default */
    mc_aws_secret read;
    mc_aws_parse_file(&read, sections, "tiles", pool);
    ck_assert_str_eq(read.id, "AKIDEXAMPLE");
    ck_assert_str_eq(read.key, "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY");
    ck_assert_str_eq(read.token, "from a file");
    write_test_file("shared", apr_pstrcat(pool, "[tiles]\naws_access_key_id = AKIDEXAMPLE\naws_secret_access_key = ",
                                          "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY\n", NULL));
    store_order(&server, "token/-");
    expect_works(bucket_store("<profile>tiles</profile>"));
}
END_TEST

static int
given_credentials(void)
{
    int count = 0;
    for (const char *at = store_order(&server, "log"); (at = strstr(at, "\"path\": \"/")) != NULL; at++)
        count += strncmp(at, "\"path\": \"/\"", 11) == 0 || strncmp(at, "\"path\": \"/container", 19) == 0 ||
                 strncmp(at, "\"path\": \"/latest/meta-data/iam/security-credentials/t", 53) == 0;
    return count;
}

START_TEST(credentials_that_are_asked_for)
{
    setenv("AWS_ROLE_ARN", "arn:aws:iam::1:role/tiles", 1);
    setenv("AWS_ROLE_SESSION_NAME", "tests", 1);
    setenv("AWS_WEB_IDENTITY_TOKEN_FILE", write_test_file("identity", "a.web+identity/token==\n"), 1);
    setenv("AWS_ENDPOINT_URL_STS", server_url("/"), 1);
    expect_works(bucket_store(REGION));
    expect_works(bucket_store(REGION));
    ck_assert_int_eq(given_credentials(), 1); /* they are kept */
    unsetenv("AWS_ROLE_ARN");
    setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", server_url("/container"), 1);
    setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", write_test_file("authorization", "container token\n"), 1);
    expect_works(bucket_store(REGION));
    expect_works(bucket_store(REGION));
    ck_assert_int_eq(given_credentials(), 1);
    unsetenv("AWS_CONTAINER_CREDENTIALS_FULL_URI");
    unsetenv("AWS_EC2_METADATA_DISABLED");
    setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", server_url(""), 1);
    expect_works(bucket_store(REGION));
    expect_works(bucket_store(REGION));
    ck_assert_int_eq(given_credentials(), 1);
    store_order(&server, "token/ended"); /* sooner than it was said */
    expect_works(bucket_store(REGION));
    ck_assert_int_eq(given_credentials(), 1);
}
END_TEST

/* Whoever answers gets the token of the container, and says what tiles are signed with. */
START_TEST(containers_are_not_asked_on_other_machines)
{
    static const char *const elsewhere[][2] = {
        { "AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://192.0.2.1/container" },
        { "AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://127.0.0.1@192.0.2.1/" },
        { "AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://localhost.example.org/" },
        { "AWS_CONTAINER_CREDENTIALS_FULL_URI", "file:///etc/passwd" },
        { "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "@192.0.2.1/" },
        { "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", ".example.org/" },
    };
    const mc_tile_key key = key_at(1, 1, 0);
    mc_tile *tile;
    for (size_t i = 0; i < sizeof(elsewhere) / sizeof(*elsewhere); i++) {
        setenv(elsewhere[i][0], elsewhere[i][1], 1);
        mc_error *error = mc_cache_get(&tile, bucket_store(REGION), &key, &ctx, pool);
        ck_assert_ptr_nonnull(error);
        const char *why = mc_error_chain(error, pool);
        ck_assert_msg(error->kind == MC_ERR_CONFIG && strstr(why, "another machine") != NULL, "%s: %s", elsewhere[i][1],
                      why);
        unsetenv(elsewhere[i][0]);
    }
}
END_TEST

START_TEST(credentials_are_renewed_before_their_end)
{
    unsetenv("AWS_EC2_METADATA_DISABLED");
    setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", server_url(""), 1);
    store_order(&server, "life/8");
    mc_cache *cache = bucket_store(REGION);
    expect_works(cache);
    ck_assert_int_eq(given_credentials(), 1);
    sleep(6); /* the last quarter of their life */
    store_order(&server, "sources/503");
    expect_works(cache); /* there are no new ones, the old ones are still good */
    store_order(&server, "sources/200");
    usleep(1100 * 1000); /* so long nobody asks again */
    expect_works(cache);
    ck_assert_int_eq(given_credentials(), 1);
}
END_TEST

typedef struct reader {
    pthread_t thread;
    mc_cache *cache;
    bool worked;
} reader;

static void *
read_one_tile(void *baton)
{
    reader *me = baton;
    apr_allocator_t *allocator;
    apr_pool_t *own;
    MC_ASSERT(apr_allocator_create(&allocator) == APR_SUCCESS);
    MC_ASSERT(apr_pool_create_unmanaged_ex(&own, NULL, allocator) == APR_SUCCESS);
    apr_allocator_owner_set(allocator, own);
    mc_ctx mine = ctx;
    mc_tile_key key = key_at(1, 1, 0);
    mc_tile *tile;
    mine.pool = own;
    me->worked = mc_cache_get(&tile, me->cache, &key, &mine, own) == MC_OK;
    apr_pool_destroy(own);
    return NULL;
}

START_TEST(many_threads_ask_once)
{
    enum { READERS = 12 };
    reader readers[READERS];
    unsetenv("AWS_EC2_METADATA_DISABLED");
    setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", server_url(""), 1);
    store_order(&server, "delay/100");
    mc_cache *cache = bucket_store(REGION);
    for (int i = 0; i < READERS; i++) {
        readers[i].cache = cache;
        ck_assert_int_eq(pthread_create(&readers[i].thread, NULL, read_one_tile, &readers[i]), 0);
    }
    for (int i = 0; i < READERS; i++) {
        pthread_join(readers[i].thread, NULL);
        ck_assert(readers[i].worked);
    }
    store_order(&server, "delay/0");
    ck_assert_int_eq(given_credentials(), 1);
}
END_TEST

START_TEST(a_source_that_is_away_costs_the_deadline_at_most)
{
    mc_tile_key key = key_at(1, 1, 0);
    mc_tile *tile;
    unsetenv("AWS_EC2_METADATA_DISABLED");
    setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", server_url(""), 1);
    mc_cache *cache = bucket_store(REGION);
    store_order(&server, "stall/1");
    apr_time_t begin = mc_clock_now();
    ctx.deadline = begin + 1200 * 1000;
    ck_fails(UNAVAILABLE, mc_cache_get(&tile, cache, &key, &ctx, pool));
    ck_assert(mc_clock_now() - begin < 20 * APR_USEC_PER_SEC);
    ctx.deadline = 0;
    int before = store_requests(&server);
    ck_assert_int_ge(before, 1);
    ck_fails(UNAVAILABLE, mc_cache_get(&tile, cache, &key, &ctx, pool)); /* at once: it is left alone for a while */
    ck_assert_int_eq(store_requests(&server), 0);
    usleep(1100 * 1000);
    expect_works(cache);
}
END_TEST

static bool
is_refused(const char *url, const char *inner)
{
    mc_build build = config_build();
    const char *xml = apr_psprintf(pool, "<cache name='c' type='s3'><url>%s</url>%s</cache>", url, inner);
    return mc_cache_from_config(config_elements(xml), &build) == NULL && build.diagnostics->refused == 1;
}

START_TEST(what_is_wrong_is_said_when_the_file_is_read)
{
    ck_assert(is_refused("https://h/{z}", "<id>a</id>" REGION));
    ck_assert(is_refused("https://h/{z}", "<secret>a</secret>" REGION));
    ck_assert(is_refused("https://h/{z}", "<id>a</id><secret>b</secret>"));
    ck_assert(is_refused("https://h/{z}", "<region>a/b</region>"));
    ck_assert(is_refused("http://h/{z}", REGION "<unsigned_payload>true</unsigned_payload>"));
    ck_assert(!is_refused("https://h/{z}", REGION "<unsigned_payload>true</unsigned_payload>"));
    ck_assert(!is_refused("https://bucket.s3.eu-west-1.amazonaws.com/{z}", ""));
    ck_assert(!is_refused("https://s3.amazonaws.com/bucket/{z}", ""));
    ck_assert(!is_refused("https://s3.dualstack.eu-west-1.amazonaws.com/bucket/{z}", ""));
    ck_assert(is_refused("https://h.amazonaws.com/bucket/{z}", ""));
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        it_conforms,
        names_of_all_bytes_are_signed,
        refusals_are_no_misses,
        credentials_of_the_environment_and_of_files,
        credentials_that_are_asked_for,
        containers_are_not_asked_on_other_machines,
        credentials_are_renewed_before_their_end,
        many_threads_ask_once,
        a_source_that_is_away_costs_the_deadline_at_most,
        what_is_wrong_is_said_when_the_file_is_read,
    };
    return unit_run_between("s3_cache", tests, (int)(sizeof(tests) / sizeof(*tests)), set_up_s3, tear_down_s3);
}
