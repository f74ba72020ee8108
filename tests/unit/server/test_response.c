#include "unit.h"

#include <apr_strings.h>
#include <string.h>

#include "server/server_private.h"
#include "text/text.h"

static mc_config config;
static mc_http_request http;
static mc_call call;
static mc_http_response response;
static mc_result result;

/* A tile of 2015 with tag 0xabc, asked for with one header. */
static int
ask(const char *name, const char *value)
{
    apr_table_t *headers = apr_table_make(pool, 2);
    if (name != NULL)
        apr_table_setn(headers, name, value);
    config = (mc_config){ .errors = MC_ERRORS_REPORT, .cors = "*" };
    http = (mc_http_request){ .method = "GET", .headers = headers };
    call = (mc_call){ .config = &config, .http = &http };
    response = (mc_http_response){ .headers = apr_table_make(pool, 4) };
    result = (mc_result){ .data = mc_buf_attach(mc_buf_copy("bytes", 5), pool),
                          .mime = "image/png",
                          .mtime = apr_time_from_sec(1420070400),
                          .tag = 0xabc,
                          .lifetime = 300 };
    mc_response_success(&response, &result, &call, pool);
    return response.status;
}

START_TEST(plain_requests_get_all_headers)
{
    ck_assert_int_eq(ask(NULL, NULL), 200);
    ck_assert_str_eq(apr_table_get(response.headers, "ETag"), "\"0000000000000abc\"");
    ck_assert_str_eq(apr_table_get(response.headers, "Last-Modified"), "Thu, 01 Jan 2015 00:00:00 GMT");
    ck_assert_str_eq(apr_table_get(response.headers, "Cache-Control"), "max-age=300");
    ck_assert_str_eq(apr_table_get(response.headers, "Content-Type"), "image/png");
    ck_assert_ptr_nonnull(apr_table_get(response.headers, "Expires"));
    ck_assert_uint_eq(response.body->size, 5);
}
END_TEST

START_TEST(preconditions_follow_rfc_9110)
{
    static const struct {
        const char *name, *value;
        int status;
    } cases[] = {
        { "If-None-Match", "\"0000000000000abc\"", 304 },
        { "If-None-Match", "W/\"0000000000000abc\"", 304 },
        { "If-None-Match", "\"x\", \"0000000000000abc\"", 304 },
        { "If-None-Match", "*", 304 },
        { "If-None-Match", "\"0000000000000abd\"", 200 },
        { "If-None-Match", "\"", 200 },
        { "If-None-Match", "0000000000000abc", 200 },
        { "If-Modified-Since", "Thu, 01 Jan 2015 00:00:00 GMT", 304 },
        { "If-Modified-Since", "Fri, 02 Jan 2015 00:00:00 GMT", 304 },
        { "If-Modified-Since", "Wed, 31 Dec 2014 23:59:59 GMT", 200 },
        { "If-Modified-Since", "Thu, 01 Jan 2099 00:00:00 GMT", 200 },
        { "If-Modified-Since", "yesterday", 200 },
        { "If-Unmodified-Since", "Wed, 31 Dec 2014 23:59:59 GMT", 412 },
        { "If-Unmodified-Since", "Thu, 01 Jan 2015 00:00:00 GMT", 200 },
        { "If-Match", "\"0000000000000abc\"", 200 },
        { "If-Match", "\"0000000000000abd\"", 412 },
        { "If-Match", "*", 200 },
        { "If-Match", "W/\"0000000000000abc\"", 412 },
        { "If-Match", "W/\"0000000000000abc\", \"0000000000000abc\"", 200 },
        { "If-Match", "\"0000000000000abc-gzip\"", 200 },
        { "If-None-Match", "\"0000000000000abc-gzip\"", 304 },
        { "If-None-Match", "W/\"0000000000000abc-br\"", 304 },
        { "If-None-Match", "\"0000000000000abc-zip\"", 200 },
        { "If-None-Match", "\"0000000000000abc0\"", 200 },
        { "If-None-Match", "\"a, \\\" , \"0000000000000abc\"", 304 },
        { "If-None-Match", ",, ,\"0000000000000abc\"", 304 },
        { "If-None-Match", "W/", 200 },
        { "If-None-Match", "", 200 },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        ck_assert_msg(ask(cases[i].name, cases[i].value) == cases[i].status, "%s: %s gives %d", cases[i].name,
                      cases[i].value, response.status);
}
END_TEST

START_TEST(a_304_has_a_tag_and_no_body)
{
    ck_assert_int_eq(ask("If-None-Match", "\"0000000000000abc\""), 304);
    ck_assert_ptr_null(response.body);
    ck_assert_ptr_null(apr_table_get(response.headers, "Content-Type"));
    ck_assert_str_eq(apr_table_get(response.headers, "ETag"), "\"0000000000000abc\"");
}
END_TEST

START_TEST(what_was_found_unchanged_still_has_to_be_what_is_expected)
{
    ask("If-None-Match", "\"0000000000000abc\"");
    result.unmodified = true;
    result.data = NULL;
    apr_table_setn((apr_table_t *)http.headers, "If-Match", "\"0000000000000abd\"");
    response = (mc_http_response){ .headers = apr_table_make(pool, 4) };
    mc_response_success(&response, &result, &call, pool);
    ck_assert_int_eq(response.status, 412);
    apr_table_unset((apr_table_t *)http.headers, "If-Match");
    response = (mc_http_response){ .headers = apr_table_make(pool, 4) };
    mc_response_success(&response, &result, &call, pool);
    ck_assert_int_eq(response.status, 304);
}
END_TEST

START_TEST(expired_tiles_have_an_age_and_no_lifetime)
{
    ask(NULL, NULL);
    result.lifetime = 60; /* of another tile of the same map */
    result.age = 4000000000;
    result.cache_control = "public";
    response = (mc_http_response){ .headers = apr_table_make(pool, 4) };
    mc_response_success(&response, &result, &call, pool);
    ck_assert_str_eq(apr_table_get(response.headers, "Cache-Control"), "max-age=0, must-revalidate, public");
    ck_assert_str_eq(apr_table_get(response.headers, "Age"), "4000000000");
    ck_assert_ptr_null(apr_table_get(response.headers, "Expires"));
}
END_TEST

START_TEST(preflights_grant_names_within_reason)
{
    ask("Origin", "https://maps.example");
    config.services = apr_array_make(pool, 0, sizeof(void *));
    apr_table_t *headers = (apr_table_t *)http.headers;
    char *many = apr_palloc(pool, 100001);
    memset(many, ',', 100000);
    for (int i = 0; i < 100000; i += 4)
        memcpy(many + i, "x-a", 3);
    many[100000] = '\0';
    apr_table_setn(headers, "Access-Control-Request-Method", "GET");
    apr_table_setn(headers, "Access-Control-Request-Headers", many);
    response = (mc_http_response){ .headers = apr_table_make(pool, 4) };
    mc_response_options(&response, &call, pool);
    ck_assert_int_eq(response.status, 204);
    ck_assert_str_eq(apr_table_get(response.headers, "Allow"), "GET, HEAD, POST, OPTIONS");
    ck_assert_str_eq(apr_table_get(response.headers, "Access-Control-Allow-Methods"), "GET, HEAD, POST");
    ck_assert_uint_lt(strlen(apr_table_get(response.headers, "Access-Control-Allow-Headers")), 1500);
    apr_table_setn(headers, "Access-Control-Request-Headers", "x-b, a\r\nSet-Cookie: c, \x01");
    response = (mc_http_response){ .headers = apr_table_make(pool, 4) };
    mc_response_options(&response, &call, pool);
    const char *granted = apr_table_get(response.headers, "Access-Control-Allow-Headers");
    ck_assert_ptr_nonnull(strstr(granted, "Authorization"));
    ck_assert_ptr_nonnull(strstr(granted, ", x-b"));
    ck_assert_ptr_null(strpbrk(granted, "\r\n\x01:"));
}
END_TEST

START_TEST(origins_are_echoed_only_when_listed)
{
    ask("Origin", "https://maps.example");
    mc_response_cors(&response, &call, pool);
    ck_assert_str_eq(apr_table_get(response.headers, "Access-Control-Allow-Origin"), "*");
    config.cors = "https://other.example https://maps.example";
    mc_response_cors(&response, &call, pool);
    ck_assert_str_eq(apr_table_get(response.headers, "Access-Control-Allow-Origin"), "https://maps.example");
    ck_assert_str_eq(apr_table_get(response.headers, "Vary"), "Origin");
    ask("Origin", "https://maps.example");
    config.cors = "https://maps.example.evil";
    mc_response_cors(&response, &call, pool);
    ck_assert_ptr_null(apr_table_get(response.headers, "Access-Control-Allow-Origin"));
    ask("Origin", "https://maps.example");
    config.cors = NULL;
    mc_response_cors(&response, &call, pool);
    ck_assert_ptr_null(apr_table_get(response.headers, "Access-Control-Allow-Origin"));
}
END_TEST

START_TEST(errors_hide_their_causes_and_keep_their_status)
{
    mc_log quiet = { MC_LOG_EMERG, NULL, NULL };
    ctx.log = &quiet;
    ask(NULL, NULL);
    mc_error *cause = mc_error_create(pool, MC_ERR_IO, "/secret/path");
    mc_error *error = mc_error_wrap(pool, cause, MC_ERR_UPSTREAM, "the origin <failed> %%n");
    mc_response_failure(&response, error, &call, &ctx, pool);
    ck_assert_int_eq(response.status, 502);
    ck_assert_uint_eq(response.body->size, strlen("the origin <failed> %n"));
    ck_assert_int_eq(memcmp(response.body->data, "the origin <failed> %n", response.body->size), 0);
    config.errors = MC_ERRORS_LOG;
    response = (mc_http_response){ .headers = apr_table_make(pool, 4) };
    mc_response_failure(&response, error, &call, &ctx, pool);
    ck_assert_int_eq(response.status, 502);
    ck_assert_ptr_null(response.body);
}
END_TEST

START_TEST(empty_images_carry_the_message_in_one_header_line)
{
    mc_log quiet = { MC_LOG_EMERG, NULL, NULL };
    apr_hash_t *formats = apr_hash_make(pool);
    ctx.log = &quiet;
    ask(NULL, NULL);
    mc_format_builtins(formats, pool);
    config.errors = MC_ERRORS_EMPTY_IMG;
    config.default_format = apr_hash_get(formats, "mixed", APR_HASH_KEY_STRING);
    response = (mc_http_response){ .headers = apr_table_make(pool, 4) };
    mc_response_failure(&response, mc_error_create(pool, MC_ERR_NOT_FOUND, "no\r\nSet-Cookie: x"), &call, &ctx, pool);
    ck_assert_int_eq(response.status, 404);
    ck_assert_ptr_null(strpbrk(apr_table_get(response.headers, "X-Mapcache-Error"), "\r\n"));
    ck_assert_str_eq(apr_table_get(response.headers, "Content-Type"), "image/png");
    int width, height;
    ck_ok(mc_image_size(&width, &height, response.body->data, response.body->size, pool));
    ck_assert_int_eq(width, 256);
}
END_TEST

UNIT_MAIN("response", plain_requests_get_all_headers, preconditions_follow_rfc_9110, a_304_has_a_tag_and_no_body,
          what_was_found_unchanged_still_has_to_be_what_is_expected, expired_tiles_have_an_age_and_no_lifetime,
          preflights_grant_names_within_reason, origins_are_echoed_only_when_listed,
          errors_hide_their_causes_and_keep_their_status, empty_images_carry_the_message_in_one_header_line)
