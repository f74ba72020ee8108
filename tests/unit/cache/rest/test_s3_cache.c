/* Objects that are signed for, on a store that checks each signature; and where credentials come from. */
#include "cache_fixture.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include "cache/rest/aws_credentials.h"
#include "cache/rest/aws_files.h"
#include "cache/rest/aws_text.h"
#include "cache/rest/s3_upload.h"
#include "http/http.h"
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
    "AWS_CONFIG_FILE",
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

START_TEST(tiles_with_check_sums)
{
    const mc_tile_key key = key_at(1, 1, 0);
    mc_tile *tile;
    mc_cache *cache = bucket_store(KEYS "<checksum>true</checksum>");
    put_text(cache, &key, "123456789");
    ck_assert_ptr_nonnull(strstr(store_order(&server, "log"), "\"x-amz-checksum-crc32c\": \"4waSgw==\""));
    expect_text(cache, &key, "123456789");
    store_order(&server, "damaged/1");
    mc_error *error = mc_cache_get(&tile, cache, &key, &ctx, pool);
    ck_assert_ptr_nonnull(error);
    ck_assert_ptr_nonnull(strstr(error->message, "not the one of its check sum"));
    mc_cache *plain = bucket_store(KEYS "<headers><x-amz-checksum-mode>ENABLED</x-amz-checksum-mode></headers>");
    store_order(&server, "damaged/1");
    ck_fails(UPSTREAM, mc_cache_get(&tile, plain, &key, &ctx, pool)); /* what comes is compared */
    mc_cache *summed =
        bucket_store(KEYS "<headers><x-amz-checksum-mode>ENABLED</x-amz-checksum-mode></headers>"
                          "<operation type='put'><headers><x-amz-checksum-sha256>"
                          "FeKw08M4keuw8e9gnsQZQgwg4yDOlMZfvIwzEkSOsiU=</x-amz-checksum-sha256></headers>"
                          "</operation>");
    put_text(summed, &key, "123456789");
    expect_text(summed, &key, "123456789");
    store_order(&server, "damaged/1");
    ck_fails(UPSTREAM, mc_cache_get(&tile, summed, &key, &ctx, pool));
}
END_TEST

static bool
see_no_tile(void *baton, int x, int y)
{
    (void)baton;
    (void)x;
    (void)y;
    ck_abort_msg("the list is empty");
}

START_TEST(lists_that_never_end_are_errors)
{
    static const char *const circles[] = { "circle/1", "circle/2", "circle/7", "circle/1000000000" };
    mc_cache *cache = bucket_store(KEYS);
    const mc_tile_key level = key_at(3, 0, 0);
    const mc_tile_range all = { 0, 0, 8, 8 };
    for (size_t i = 0; i < sizeof(circles) / sizeof(*circles); i++) {
        store_order(&server, circles[i]);
        mc_error *error = mc_cache_list(cache, &level, &all, see_no_tile, NULL, &ctx);
        ck_assert_ptr_nonnull(error);
        ck_assert_msg(strstr(error->message, "does not go on") != NULL, "%s: %s", circles[i], error->message);
        ck_assert_int_lt(store_requests(&server), i < 3 ? 30 : 1100);
    }
    store_order(&server, "circle/0");
    ck_ok(mc_cache_list(cache, &level, &all, see_no_tile, NULL, &ctx));
}
END_TEST

/* Behind it may be more names: a seeder would store their tiles again, and a count would be too low. */
START_TEST(a_part_of_a_list_is_an_error)
{
    mc_cache *cache = bucket_store(KEYS);
    const mc_tile_key level = key_at(3, 0, 0);
    const mc_tile_range all = { 0, 0, 8, 8 };
    seen_tiles met = { .most = 100 };
    for (int i = 0; i < 12; i++) {
        const mc_tile_key key = key_at(3, i % 8, i / 8);
        put_text(cache, &key, "tile");
    }
    store_order(&server, "page/5");
    ck_ok(mc_cache_list(cache, &level, &all, see_tile, &met, &ctx));
    ck_assert_int_eq(met.count, 12);
    for (int page = 1; page <= 3; page++) {
        store_order(&server, apr_psprintf(pool, "cutlist/%d", page));
        met = (seen_tiles){ .most = 100 };
        mc_error *error = mc_cache_list(cache, &level, &all, see_tile, &met, &ctx);
        ck_assert_msg(error != MC_OK, "page %d: %d tiles", page, met.count);
        ck_assert_ptr_nonnull(strstr(error->message, "a part of one"));
    }
    ck_ok(mc_cache_list(cache, &level, &all, see_tile, &met, &ctx));
}
END_TEST

START_TEST(a_bucket_of_another_region_is_named)
{
    const mc_tile_key key = key_at(1, 1, 0);
    mc_tile *tile;
    static const char *const inner[] = { "<id>AKIDEXAMPLE</id><secret>b</secret><region>us-1</region>", KEYS };
    for (int i = 0; i < 2; i++) {
        if (i == 1)
            store_order(&server, "fail/307/1/TemporaryRedirect");
        mc_error *error = mc_cache_get(&tile, bucket_store(inner[i]), &key, &ctx, pool);
        ck_assert_ptr_nonnull(error);
        ck_assert_msg(strstr(error->message, "lies in another region") != NULL, "%s", error->message);
        ck_assert_ptr_nonnull(strstr(mc_error_chain(error, pool), i == 0 ? "eu-test-1" : "TemporaryRedirect"));
    }
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
    write_test_file("lines", apr_pstrcat(pool, lines, "a-token\n", NULL));
    store_order(&server, "token/a-token"); /* the file is read at once: the store says that the old ones have ended */
    expect_works(cache);
    ck_assert_int_eq(unlink(file), 0);
    const apr_time_t begin = mc_clock_now();
    mc_error *error;
    while ((error = mc_cache_get(&tile, cache, &key, &ctx, pool)) == MC_OK) /* it is looked at once a second */
        ck_assert_int_lt(mc_clock_now() - begin, 60 * APR_USEC_PER_SEC);
    ck_assert_int_eq(error->kind, MC_ERR_CONFIG);
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
    mc_aws_texts_forget();
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

#define ID "aws_access_key_id = AKIDEXAMPLE\n"
#define SECRET "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY\n"
#define ROLE "role_arn = arn:aws:iam::1:role/tiles\nrole_session_name = tests\nexternal_id = a b+c\n"

static void
write_config_files(const char *config, const char *credentials)
{
    mc_aws_texts_forget();
    setenv("AWS_CONFIG_FILE", write_test_file("config", config), 1);
    setenv("AWS_SHARED_CREDENTIALS_FILE", write_test_file("credentials", credentials), 1);
}

/* The error of a get with these keys. */
static const char *
why_no_credentials(const char *inner)
{
    const mc_tile_key key = key_at(1, 1, 0);
    mc_tile *tile;
    mc_error *error = mc_cache_get(&tile, bucket_store(inner), &key, &ctx, pool);
    ck_assert_ptr_nonnull(error);
    ck_assert_int_eq(error->kind, MC_ERR_CONFIG);
    ck_assert_ptr_nonnull(strstr(error->message, "cache \"c\""));
    return mc_error_chain(error, pool);
}

START_TEST(profiles_of_both_files)
{
    mc_aws_profile profile = { .found = false };
    mc_aws_profile_parse(&profile,
                         "[default]\nregion = other\n[profile tiles]\nregion = eu-test-1\ns3 =\n  region = nested\n"
                         "\tendpoint_url = nested\nendpoint_url = http://store\naws_access_key_id = half\n",
                         "tiles", pool);
    ck_assert_str_eq(profile.region, "eu-test-1");
    ck_assert_str_eq(profile.endpoint, "http://store");
    ck_assert(profile.found && profile.secret.id == NULL && profile.unsupported == NULL);
    write_config_files("[profile tiles]\nregion = eu-test-1\naws_access_key_id = x\naws_secret_access_key = y\n",
                       "[tiles]\n" ID SECRET);
    expect_works(bucket_store("<profile>tiles</profile>")); /* the file of credentials goes first */
    setenv("AWS_PROFILE", "tiles", 1);
    expect_works(bucket_store(""));
    write_config_files("[profile tiles]\nregion = eu-test-1\n" ID SECRET, "");
    expect_works(bucket_store(""));
    setenv("AWS_ACCESS_KEY_ID", "x", 1); /* of somebody else: the configuration names the profile */
    setenv("AWS_SECRET_ACCESS_KEY", "y", 1);
    expect_works(bucket_store("<profile>tiles</profile>"));
}
END_TEST

START_TEST(roles_of_profiles)
{
    setenv("AWS_ENDPOINT_URL_STS", server_url("/"), 1);
    write_config_files("[profile tiles]\nregion = eu-test-1\nsource_profile = base\n" ROLE, "[base]\n" ID SECRET);
    mc_cache *cache = bucket_store("<profile>tiles</profile>");
    expect_works(cache);
    expect_works(cache);
    ck_assert_int_eq(given_credentials(), 1); /* they are kept */
    write_config_files("[profile own]\nregion = eu-test-1\nsource_profile = own\n" ID SECRET ROLE, "");
    expect_works(bucket_store("<profile>own</profile>"));
    setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", 1);
    write_config_files("[profile env]\nregion = eu-test-1\ncredential_source = Environment\n" ROLE, "");
    expect_works(bucket_store("<profile>env</profile>"));
    write_config_files("[profile web]\nregion = eu-test-1\nweb_identity_token_file = /nowhere\n" ROLE, "");
    write_config_files(apr_psprintf(pool, "[profile web]\nregion = eu-test-1\nweb_identity_token_file = %s\n" ROLE,
                                    write_test_file("identity", "a.web+identity/token==\n")),
                       "");
    expect_works(bucket_store("<profile>web</profile>"));
}
END_TEST

START_TEST(profiles_that_give_no_credentials)
{
    static const char *const wrong[][2] = {
        { "[profile p]\nregion = r\ncredential_process = /bin/false\n", "by credential_process" },
        { "[profile p]\nregion = r\nsso_session = s\nsso_account_id = 1\n", "by sso_account_id" },
        { "[profile p]\nregion = r\nsource_profile = p\n" ROLE, "too many others, or of itself" },
        { "[profile p]\nsource_profile = q\n" ROLE "[profile q]\nsource_profile = p\n" ROLE, "or of itself" },
        { "[profile p]\nsource_profile = gone\n" ROLE, "profile gone is neither in" },
        { "[profile p]\n" ROLE, "neither source_profile nor credential_source" },
        { "[profile p]\ncredential_source = Moon\n" ROLE, "credential_source that is not to be had" },
        { "[profile p]\nsource_profile = q\n" ROLE "[profile q]\nregion = r\n", "profile q has no credentials" },
        { "[profile p]\nmfa_serial = m\nsource_profile = default\n" ROLE "[default]\n" ID SECRET, "by mfa_serial" },
        { "[default]\n" ID SECRET, "profile p is neither in" },
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        write_config_files(wrong[i][0], "");
        const char *why = why_no_credentials("<profile>p</profile>" REGION);
        ck_assert_msg(strstr(why, wrong[i][1]) != NULL, "%s: %s", wrong[i][1], why);
        usleep(i >= 2 && i <= 8 ? 1050 * 1000 : 0); /* so long a failure is remembered */
    }
    write_config_files("[profile p]\n" ID, ""); /* as AWS's programs have it, the next source is asked */
    ck_assert_ptr_nonnull(strstr(why_no_credentials("<profile>p</profile>" REGION), "a container or the machine"));
    write_config_files("[default]\ncredential_process = /bin/false\n", "");
    ck_assert_ptr_nonnull(strstr(why_no_credentials(REGION), "credential_process"));
}
END_TEST

/* What a test puts as one object: aws lives as long as the pool. */
static mc_s3_upload
make_upload(void)
{
    mc_aws_options *aws = apr_pcalloc(pool, sizeof(*aws));
    aws->region = "eu-test-1";
    aws->chain.fixed = (mc_aws_secret){ "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", NULL };
    return (mc_s3_upload){ "n", server_url("/bucket/a%20b.pmtiles"), "application/vnd.pmtiles", aws };
}

static const char *
write_file_of_size(size_t size)
{
    const char *path = write_test_file("large", "begin");
    ck_assert_int_eq(truncate(path, (off_t)size), 0);
    return path;
}

START_TEST(files_are_uploaded_in_parts)
{
    const mc_s3_upload upload = make_upload();
    ck_ok(mc_s3_upload_file(&upload, write_file_of_size(1000), &ctx, pool));
    ck_assert_ptr_null(strstr(store_order(&server, "log"), "uploadId"));
    ck_assert_ptr_nonnull(strstr(store_order(&server, "list"), "/bucket/a%20b.pmtiles"));
    const char *large = write_file_of_size(2 * (size_t)MC_S3_PART_BYTES + 1);
    store_order(&server, "fail/503/2/SlowDown");
    ck_ok(mc_s3_upload_file(&upload, large, &ctx, pool));
    ck_assert_ptr_nonnull(strstr(store_order(&server, "log"), "partNumber=3"));
    ck_assert_str_eq(store_order(&server, "parts"), "[]");
    mc_error *error = mc_s3_upload_file(&upload, write_file_of_size(0), &ctx, pool);
    ck_assert(error != MC_OK && error->kind == MC_ERR_IO);
}
END_TEST

static bool
has_gone_at_last(void *baton)
{
    return ++*(int *)baton > 5;
}

/* What was there stays, and nothing is left behind. */
START_TEST(uploads_that_fail_leave_nothing)
{
    const mc_s3_upload upload = make_upload();
    int looks = 0;
    ck_ok(mc_s3_upload_file(&upload, write_file_of_size(1000), &ctx, pool));
    const char *large = write_file_of_size(2 * (size_t)MC_S3_PART_BYTES + 1);
    store_order(&server, "badpart/2");
    ck_fails(UPSTREAM, mc_s3_upload_file(&upload, large, &ctx, pool));
    ck_assert_str_eq(store_order(&server, "parts"), "[]");
    store_order(&server, "badpart/0");
    store_order(&server, "delay/300"); /* an interrupt while a part is under way */
    ctx.abandoned = has_gone_at_last;
    ctx.abandoned_baton = &looks;
    mc_error *error = mc_s3_upload_file(&upload, large, &ctx, pool);
    ck_assert_ptr_nonnull(error);
    ctx.abandoned = NULL;
    store_order(&server, "delay/0");
    ck_assert_str_eq(store_order(&server, "parts"), "[]");
    ck_assert_ptr_nonnull(strstr(store_order(&server, "log"), "\"method\": \"DELETE\""));
    mc_http_reply reply;
    const mc_http_call call = { .method = "GET", .url = server_url("/bucket/a%20b.pmtiles"), .max_response = 4096 };
    store_order(&server, "plain/1");
    ck_ok(mc_http_send(&reply, process.http, &call, &ctx, pool));
    ck_assert_int_eq(reply.body->size, 1000);
}
END_TEST

/* The answer to a completion is lost. Who asks again hears that there is no such upload, whether or not it was made. */
START_TEST(uploads_whose_end_is_not_known)
{
    const mc_s3_upload upload = make_upload();
    const char *large = write_file_of_size(2 * (size_t)MC_S3_PART_BYTES + 1);
    store_order(&server, "lost/1");
    ck_fails(UPSTREAM, mc_s3_upload_file(&upload, large, &ctx, pool));
    store_order(&server, "late/1");
    ck_ok(mc_s3_upload_file(&upload, large, &ctx, pool));
    write_file_of_size(2 * (size_t)MC_S3_PART_BYTES + 1);
    int file = open(large, O_WRONLY | O_CLOEXEC);
    ck_assert_int_eq(pwrite(file, "other", 5, MC_S3_PART_BYTES), 5);
    close(file);
    store_order(&server, "lost/1"); /* an older object of the same size is there */
    ck_fails(UPSTREAM, mc_s3_upload_file(&upload, large, &ctx, pool));
    store_order(&server, "late/1");
    ck_ok(mc_s3_upload_file(&upload, large, &ctx, pool));
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
        tiles_with_check_sums,
        lists_that_never_end_are_errors,
        a_part_of_a_list_is_an_error,
        a_bucket_of_another_region_is_named,
        files_are_uploaded_in_parts,
        uploads_that_fail_leave_nothing,
        uploads_whose_end_is_not_known,
        profiles_of_both_files,
        roles_of_profiles,
        profiles_that_give_no_credentials,
        containers_are_not_asked_on_other_machines,
        credentials_are_renewed_before_their_end,
        many_threads_ask_once,
        a_source_that_is_away_costs_the_deadline_at_most,
        what_is_wrong_is_said_when_the_file_is_read,
    };
    return unit_run_between("s3_cache", tests, (int)(sizeof(tests) / sizeof(*tests)), set_up_s3, tear_down_s3);
}
