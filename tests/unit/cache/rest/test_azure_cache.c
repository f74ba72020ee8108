/* Blobs of Azure and objects of Google, on a store that checks each signature by the published rules. */
#include "cache_fixture.h"

#include "cache/rest/signed_headers.h"
#include "store_server.h"

#define AZURE                                                                                                          \
    "<id>tileaccount</id><secret>YSBrZXkgb2YgYXp1cmUgdGhhdCBub2JvZHkga25vd3M=</secret><container>c</container>"
#define SAS "<sas>?sv=2022-11-02&amp;sp=rcwd&amp;sig=abc%2B</sas>"
#define GOOGLE "<access>AKIDEXAMPLE</access><secret>wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY</secret>"

static store_server server;

static void
set_up_signed(void)
{
    unit_setup();
    start_cache_test();
    process.metrics = mc_metrics_create();
    unsetenv("AZURE_STORAGE_ACCOUNT");
    unsetenv("AZURE_STORAGE_KEY");
    unsetenv("AZURE_STORAGE_SAS_TOKEN");
}

static void
tear_down_signed(void)
{
    if (process.http != NULL)
        store_stop(&server);
    mc_metrics_destroy(process.metrics);
    end_cache_test();
    unit_teardown();
}

static mc_cache *
signed_store(const char *type, const char *template, const char *inner)
{
    return cache_of(apr_psprintf(pool, "<cache name='c' type='%s'><url>http://127.0.0.1:%d/%s</url>%s</cache>", type,
                                 server.port, template, inner));
}

static void
expect_signed(const char *type, const char *inner)
{
    mc_dimension_value dimension = { "d", "\xc3\xa9~*'()!$&,;=:@ %2F/\x01", true };
    mc_tile_key key = key_at(1, 1, 0);
    mc_tile *tile;
    conform_cache(signed_store(type, "c/{tileset}/{grid}/{z}/{x}/{y}.{ext}", inner));
    key.dimensions = &dimension;
    key.dimension_count = 1;
    key.mime = "image/png";
    mc_cache *cache = signed_store(type, "c/a b+c/{dim:d}/{z}/{x}/{y}.{ext}", inner);
    put_text(cache, &key, "tile");
    expect_text(cache, &key, "tile");
    ck_assert_ptr_nonnull(strstr(store_order(&server, "list"), "/c/a+b%2Bc/%C3%A9~%2A%27%28%29%21%24"));
    store_order(&server, "damaged/1");
    mc_error *damaged = mc_cache_get(&tile, cache, &key, &ctx, pool);
    ck_assert(damaged != MC_OK && strstr(damaged->message, "check sum") != NULL);
    expect_text(cache, &key, "tile");
    mc_cache *wrong = signed_store(type, "c/{z}/{x}/{y}",
                                   mc_replace_all(mc_replace_all(inner, "wJal", "xJal", pool), "YSBr", "YSBs", pool));
    wrong = strstr(inner, "sas") == NULL ? wrong : signed_store(type, "c/{z}/{x}/{y}", "<sas>sig=a</sas>");
    mc_error *error = mc_cache_get(&tile, wrong, &key, &ctx, pool);
    ck_assert(error != MC_OK && error->kind == MC_ERR_UPSTREAM && strstr(error->message, "refuses access") != NULL);
    ck_assert_ptr_null(strstr(mc_error_chain(error, pool), "sig="));
}

/* A level among others, in pages of seven names, by a template whose numbers stand in another order. */
static void
expect_lists(const char *type, const char *inner)
{
    static const char *const templates[] = { "l/{tileset}/{grid}/{z}/{x}/{y}.{ext}",
                                             "m/{tileset}-{inv_y}_{inv_x}&amp;{dim:d}/{z} {y}.{ext}",
                                             "n/{x}/{tileset}/{y}/{z}" };
    store_order(&server, "page/7");
    for (size_t i = 0; i < sizeof(templates) / sizeof(*templates); i++) {
        mc_cache *cache = signed_store(type, templates[i], inner);
        mc_dimension_value dimension = { "d", "a<b>&+ c", false };
        mc_tile_key level = key_at(3, 0, 0);
        const mc_tile_range part = { 1, 0, 5, 4 }, all = { 0, 0, 8, 8 };
        seen_tiles met = { .most = 1000 };
        int64_t bytes, tiles;
        level.dimensions = &dimension;
        level.dimension_count = 1;
        ck_assert(mc_cache_lists(cache, &level));
        for (int j = 0; j < 80; j++) {
            mc_tile_key key = level;
            key.z = j < 64 ? 3 : 2;
            key.x = j < 64 ? j % 8 : j % 4;
            key.y = j < 64 ? j / 8 : (j - 64) / 4;
            put_text(cache, &key, "tile!");
            key.tileset = "tsx"; /* begins with the same letters */
            put_text(cache, &key, "other");
        }
        ck_ok(mc_cache_list(cache, &level, &part, see_tile, &met, &ctx));
        ck_assert_int_eq(met.count, 16);
        for (int j = 0; j < 16; j++)
            ck_assert_int_eq(met.places[j / 4][1 + j % 4], 1);
        met = (seen_tiles){ .most = 9 };
        ck_ok(mc_cache_list(cache, &level, &all, see_tile, &met, &ctx));
        ck_assert_int_eq(met.count, 9);
        ck_ok(cache->ops->measure(&bytes, &tiles, cache, &level, &ctx));
        ck_assert_int_eq(tiles, 80);
        ck_assert_int_eq(bytes, 400);
        store_order(&server, "fail/403/1/AccessDenied");
        ck_fails(UPSTREAM, mc_cache_list(cache, &level, &all, see_tile, &met, &ctx));
    }
    mc_tile_key key = key_at(3, 0, 0);
    ck_assert(!mc_cache_lists(signed_store(type, "c/{tileset}/{z}/{x}{y}", inner), &key));
    ck_assert(!mc_cache_lists(signed_store(type, "c/{tileset}/{z}/{x}", inner), &key));
    ck_assert(!mc_cache_lists(signed_store(type, "{x}/{tileset}/{z}/{y}", inner), &key)); /* the bucket is no name */
    store_order(&server, "page/1000");
}

START_TEST(stores_are_listed)
{
    static const char *const stores[][2] = { { "azure", AZURE }, { "google", GOOGLE }, { "azure", SAS } };
    for (int i = 0; i < 3; i++) {
        server = store_start(stores[i][0]);
        expect_lists(stores[i][0], stores[i][1]);
        if (i < 2)
            store_stop(&server);
    }
}
END_TEST

START_TEST(s3_is_listed)
{
    server = store_start("s3");
    expect_lists("s3", "<id>AKIDEXAMPLE</id><secret>wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY</secret><region>eu-test-1"
                       "</region>");
}
END_TEST

START_TEST(azure_with_the_key_of_the_account)
{
    server = store_start("azure");
    expect_signed("azure", AZURE);
    expect_signed("azure",
                  AZURE "<operation type='put'><headers><x-ms-access-tier>Cool</x-ms-access-tier>"
                        "<Content-Encoding>identity</Content-Encoding><Cache-Control>max-age=60</Cache-Control>"
                        "</headers></operation><headers><x-ms-client-request-id> a  b </x-ms-client-request-id>"
                        "</headers>");
    setenv("AZURE_STORAGE_ACCOUNT", "tileaccount", 1);
    setenv("AZURE_STORAGE_KEY", "YSBrZXkgb2YgYXp1cmUgdGhhdCBub2JvZHkga25vd3M=", 1);
    conform_cache(signed_store("azure", "e/{tileset}/{grid}/{z}/{x}/{y}", ""));
}
END_TEST

START_TEST(azure_with_a_shared_access_signature)
{
    server = store_start("azure");
    expect_signed("azure", SAS);
    mc_tile_key key = key_at(1, 1, 0);
    mc_tile *tile;
    mc_cache *cache = signed_store("azure", "c/{z}/{x}/{y}", SAS "<busy_retries>0</busy_retries>");
    put_text(cache, &key, "a tile as large as this");
    store_order(&server, "half/1"); /* the signature is in no message, whoever writes it */
    mc_error *error = mc_cache_get(&tile, cache, &key, &ctx, pool);
    ck_assert(error != MC_OK && strstr(mc_error_chain(error, pool), "sig=") == NULL);
    store_order(&server, "fail/404/1/ContainerNotFound");
    ck_fails(UPSTREAM, mc_cache_get(&tile, cache, &key, &ctx, pool));
}
END_TEST

START_TEST(google_with_an_hmac_key)
{
    server = store_start("google");
    expect_signed("google", GOOGLE);
    expect_signed("google", GOOGLE "<operation type='put'><headers><x-amz-acl>public-read</x-amz-acl>"
                                   "<x-goog-meta-b>b</x-goog-meta-b></headers></operation>");
}
END_TEST

static const char *
example_signature(const char *method, const char *host, const char *path, const char *const *headers)
{
    mc_rest_request request = { .method = method, .host = host, .path = path, .headers = apr_table_make(pool, 4) };
    for (; *headers != NULL; headers += 2)
        apr_table_setn(request.headers, headers[0], headers[1]);
    return mc_google_signature(mc_google_string_to_sign(&request, pool), "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
                               pool);
}

/* Amazon S3 Developer Guide, "Authentication Examples": GET, PUT and DELETE of an object. */
START_TEST(google_signs_the_examples_of_the_guide)
{
    static const char *const get[] = { "Date", "Tue, 27 Mar 2007 19:36:42 +0000", NULL };
    static const char *const put[] = { "Content-Type", "image/jpeg", "Date", "Tue, 27 Mar 2007 21:15:45 +0000", NULL };
    static const char *const delete[] = { "Date", "Tue, 27 Mar 2007 21:20:27 +0000", "x-amz-date",
                                          "Tue, 27 Mar 2007 21:20:26 +0000", NULL };
    static const char path[] = "/johnsmith/photos/puppy.jpg";
    ck_assert_str_eq(example_signature("GET", "s3.amazonaws.com", path, get), "bWq2s1WEIj+Ydj0vQ697zp+IXMU=");
    ck_assert_str_eq(example_signature("PUT", "s3.amazonaws.com", path, put), "MyyxeRY7whkBe+bq8fHCL/2kKUg=");
    ck_assert_str_eq(example_signature("DELETE", "s3.amazonaws.com", path, delete), "R4dJ53KECjStyBO5iTBJZ4XVOaI=");
    ck_assert_str_eq(example_signature("GET", "johnsmith.storage.googleapis.com:443", "/photos/puppy.jpg", get),
                     "bWq2s1WEIj+Ydj0vQ697zp+IXMU=");
}
END_TEST

static bool
loads(const char *type, const char *inner)
{
    mc_build build = config_build();
    const char *xml = apr_psprintf(pool, "<cache name='c' type='%s'><url>https://h/{z}</url>%s</cache>", type, inner);
    return mc_cache_from_config(config_elements(xml), &build) != NULL && build.diagnostics->refused == 0;
}

START_TEST(what_is_wrong_is_said_when_the_file_is_read)
{
    ck_assert(loads("azure", AZURE) && loads("azure", SAS) && loads("google", GOOGLE));
    ck_assert(!loads("azure", "<id>a</id>"));
    ck_assert(!loads("azure", "<secret>YQ==</secret>"));
    ck_assert(!loads("azure", "<id>a</id><secret>YQ=</secret>"));
    ck_assert(!loads("azure", "<id>a</id><secret>Y!==</secret>"));
    ck_assert(!loads("azure", "<sas>sv=1</sas>"));
    ck_assert(!loads("google", "<access>a</access>"));
    ck_assert(!loads("google", "<secret>a</secret>"));
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        stores_are_listed,
        s3_is_listed,
        azure_with_the_key_of_the_account,
        azure_with_a_shared_access_signature,
        google_with_an_hmac_key,
        google_signs_the_examples_of_the_guide,
        what_is_wrong_is_said_when_the_file_is_read,
    };
    return unit_run_between("azure_cache", tests, (int)(sizeof(tests) / sizeof(*tests)), set_up_signed,
                            tear_down_signed);
}
