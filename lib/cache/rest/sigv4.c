#include "cache/rest/sigv4.h"

#include <apr_strings.h>
#include <stdio.h>
#include <string.h>

#include "cache/rest/signed_headers.h"
#include "digest/digest.h"

enum { SCOPE_BYTES = 256, DATE_BYTES = 32, DAY_SIZE = 8 /* of a date */ };

/* The key of a day, a region and a service. It is the same for all tiles of a day: the last one is kept. */
static void
derive_signing_key(uint8_t key[MC_SHA256_BYTES], const char *secret, const char *day, const char *region,
                   const char *service, apr_pool_t *pool)
{
    static _Thread_local char kept_scope[SCOPE_BYTES];
    static _Thread_local uint8_t kept_key[MC_SHA256_BYTES];
    char scope[SCOPE_BYTES];
    int size = snprintf(scope, sizeof(scope), "AWS4%s\n%s\n%s\n%s", secret, day, region, service);
    bool keeps = size > 0 && (size_t)size < sizeof(scope);
    if (keeps && strcmp(scope, kept_scope) == 0) {
        memcpy(key, kept_key, sizeof(kept_key));
        return;
    }
    const char *first = apr_pstrcat(pool, "AWS4", secret, NULL);
    mc_hmac_sha256(key, first, strlen(first), day, strlen(day));
    mc_hmac_sha256(key, key, MC_SHA256_BYTES, region, strlen(region));
    mc_hmac_sha256(key, key, MC_SHA256_BYTES, service, strlen(service));
    mc_hmac_sha256(key, key, MC_SHA256_BYTES, "aws4_request", 12);
    if (keeps) {
        memcpy(kept_scope, scope, (size_t)size + 1);
        memcpy(kept_key, key, sizeof(kept_key));
    }
}

/* "20130524T000000Z"; that of the last second is kept. */
static const char *
signing_date(apr_time_t now, apr_pool_t *pool)
{
    static _Thread_local apr_time_t kept_second = -1;
    static _Thread_local char kept_date[DATE_BYTES];
    if (apr_time_sec(now) != kept_second) {
        apr_time_exp_t time;
        apr_time_exp_gmt(&time, now);
        apr_snprintf(kept_date, sizeof(kept_date), "%04d%02d%02dT%02d%02d%02dZ", time.tm_year + 1900, time.tm_mon + 1,
                     time.tm_mday, time.tm_hour, time.tm_min, time.tm_sec);
        kept_second = apr_time_sec(now);
    }
    return apr_pstrmemdup(pool, kept_date, strlen(kept_date));
}

static const char *
sha256_text(const void *data, size_t size, apr_pool_t *pool)
{
    static const char of_nothing[] = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    if (size == 0)
        return of_nothing;
    uint8_t digest[MC_SHA256_BYTES];
    char *text = apr_palloc(pool, MC_SHA256_HEX);
    mc_sha256(digest, data, size);
    mc_hex_text(text, digest, sizeof(digest));
    return text;
}

void
mc_sigv4_sign(apr_table_t *headers, const mc_sigv4 *request, const mc_aws_secret *secret, apr_pool_t *pool)
{
    const char *service = request->service == NULL ? "s3" : request->service, *lines, *names;
    const char *date = signing_date(request->now, pool), *day = apr_pstrmemdup(pool, date, DAY_SIZE);
    const char *body = request->unsigned_body ? "UNSIGNED-PAYLOAD"
                                              : sha256_text(request->body == NULL ? "" : request->body,
                                                            request->body == NULL ? 0 : request->body_size, pool);
    apr_table_setn(headers, "x-amz-date", date);
    apr_table_setn(headers, "x-amz-content-sha256", body);
    if (secret->token != NULL)
        apr_table_setn(headers, "x-amz-security-token", secret->token);
    mc_signed_texts(&lines, &names, headers, pool);
    const char *canonical = apr_pstrcat(pool, request->method, "\n", request->path, "\n", request->query, "\n", lines,
                                        "\n", names, "\n", body, NULL);
    const char *scope = apr_pstrcat(pool, day, "/", request->region, "/", service, "/aws4_request", NULL);
    const char *to_sign = apr_pstrcat(pool, "AWS4-HMAC-SHA256\n", date, "\n", scope, "\n",
                                      sha256_text(canonical, strlen(canonical), pool), NULL);
    uint8_t key[MC_SHA256_BYTES];
    char signature[MC_SHA256_HEX];
    derive_signing_key(key, secret->key, day, request->region, service, pool);
    mc_hmac_sha256(key, key, sizeof(key), to_sign, strlen(to_sign));
    mc_hex_text(signature, key, sizeof(key));
    apr_table_setn(headers, "Authorization",
                   apr_pstrcat(pool, "AWS4-HMAC-SHA256 Credential=", secret->id, "/", scope, ",SignedHeaders=", names,
                               ",Signature=", signature, NULL));
}
