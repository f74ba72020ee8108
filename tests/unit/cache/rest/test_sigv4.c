/* The examples of the Amazon S3 API Reference, "Signature Calculations for the Authorization Header: Transferring
 * Payload in a Single Chunk". */
#include "unit.h"

#include <apr_strings.h>

#include "cache/rest/sigv4.h"

static const mc_aws_secret example = { "AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", NULL };

/* 2013-05-24T00:00:00Z */
#define EXAMPLE_TIME apr_time_from_sec(1369353600)

static void
expect_signature(apr_table_t *headers, const mc_sigv4 *request, const mc_aws_secret *secret, const char *names,
                 const char *signature)
{
    const char *wanted =
        apr_pstrcat(pool, "AWS4-HMAC-SHA256 Credential=", secret->id,
                    "/20130524/us-east-1/s3/aws4_request,SignedHeaders=", names, ",Signature=", signature, NULL);
    mc_sigv4_sign(headers, request, secret, pool);
    ck_assert_str_eq(apr_table_get(headers, "Authorization"), wanted);
    ck_assert_str_eq(apr_table_get(headers, "x-amz-date"), "20130524T000000Z");
}

static mc_sigv4
example_request(const char *method, const char *path, const char *query)
{
    return (mc_sigv4){ .method = method, .path = path, .query = query, .region = "us-east-1", .now = EXAMPLE_TIME };
}

static apr_table_t *
example_headers(void)
{
    apr_table_t *headers = apr_table_make(pool, 4);
    apr_table_setn(headers, "Host", "examplebucket.s3.amazonaws.com");
    return headers;
}

START_TEST(a_get_of_an_object)
{
    apr_table_t *headers = example_headers();
    mc_sigv4 request = example_request("GET", "/test.txt", "");
    apr_table_setn(headers, "Range", "bytes=0-9");
    expect_signature(headers, &request, &example, "host;range;x-amz-content-sha256;x-amz-date",
                     "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
}
END_TEST

START_TEST(a_put_of_an_object)
{
    apr_table_t *headers = example_headers();
    mc_sigv4 request = example_request("PUT", "/test%24file.text", "");
    request.body = "Welcome to Amazon S3.";
    request.body_size = 21;
    apr_table_setn(headers, "x-amz-storage-class", "REDUCED_REDUNDANCY");
    apr_table_setn(headers, "Date", " Fri, 24 May  2013 00:00:00 GMT ");
    expect_signature(headers, &request, &example, "date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class",
                     "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
    ck_assert_str_eq(apr_table_get(headers, "x-amz-content-sha256"),
                     "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072");
}
END_TEST

START_TEST(questions_about_a_bucket)
{
    mc_sigv4 request = example_request("GET", "/", "lifecycle=");
    expect_signature(example_headers(), &request, &example, "host;x-amz-content-sha256;x-amz-date",
                     "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
    request.query = "max-keys=2&prefix=J";
    expect_signature(example_headers(), &request, &example, "host;x-amz-content-sha256;x-amz-date",
                     "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}
END_TEST

START_TEST(a_session_and_an_unsigned_body)
{
    apr_table_t *headers = example_headers();
    mc_aws_secret session = example;
    mc_sigv4 request = example_request("PUT", "/a", "");
    session.token = "a/token+of=a session";
    request.body = "any";
    request.body_size = 3;
    request.unsigned_body = true;
    mc_sigv4_sign(headers, &request, &session, pool);
    ck_assert_str_eq(apr_table_get(headers, "x-amz-content-sha256"), "UNSIGNED-PAYLOAD");
    ck_assert_str_eq(apr_table_get(headers, "x-amz-security-token"), session.token);
    ck_assert_ptr_nonnull(strstr(apr_table_get(headers, "Authorization"),
                                 "SignedHeaders=host;x-amz-content-sha256;x-amz-date;x-amz-security-token,"));
}
END_TEST

UNIT_MAIN("sigv4", a_get_of_an_object, a_put_of_an_object, questions_about_a_bucket, a_session_and_an_unsigned_body)
