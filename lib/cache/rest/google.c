/*
 * The cache "google": objects of Google's Cloud Storage, by its interoperable interface: version 2 of AWS's signature,
 * with HMAC-SHA1 (Amazon S3 Developer Guide, "Signing and Authenticating REST Requests"), as MapCache signs.
 */
#include <apr_strings.h>
#include <string.h>

#include "cache/rest/rest_base.h"
#include "cache/rest/signed_headers.h"
#include "digest/digest.h"
#include "text/text.h"

/* What follows a bucket in the name of its host. */
#define GOOGLE_BUCKETS ".storage.googleapis.com"

typedef struct google_cache {
    mc_rest_cache rest;
    const char *access, *secret;
} google_cache;

#define GOOGLE_FIELD(field) offsetof(google_cache, field)
static const mc_key google_keys[] = {
    MC_REST_KEYS,
    MC_KEY_LINE("access", GOOGLE_FIELD(access), "Access key of the interoperable interface (HMAC key).",
                .flags = MC_KEY_REQUIRED),
    MC_KEY_LINE("secret", GOOGLE_FIELD(secret), "Secret of the access key.", .flags = MC_KEY_REQUIRED),
    MC_KEY_END,
};

/* Of "bucket.storage.googleapis.com" the bucket, which stands before the path in what is signed; else "". */
static const char *
bucket_of_host(const char *host, apr_pool_t *pool)
{
    size_t size = strcspn(host, ":"), length = strlen(GOOGLE_BUCKETS);
    if (size <= length || strncasecmp(host + size - length, GOOGLE_BUCKETS, length) != 0)
        return "";
    return apr_pstrcat(pool, "/", apr_pstrmemdup(pool, host, size - length), NULL);
}

const char *
mc_google_string_to_sign(const mc_rest_request *request, apr_pool_t *pool)
{
    bool dated = apr_table_get(request->headers, "x-amz-date") != NULL;
    return apr_pstrcat(pool, request->method, "\n", mc_signed_value(request->headers, "Content-MD5"), "\n",
                       mc_signed_value(request->headers, "Content-Type"), "\n",
                       dated ? "" : mc_signed_value(request->headers, "Date"), "\n",
                       mc_signed_lines(request->headers, "x-amz-", "x-goog-", pool),
                       bucket_of_host(request->host, pool), request->path, NULL);
}

const char *
mc_google_signature(const char *text, const char *secret, apr_pool_t *pool)
{
    uint8_t digest[MC_SHA1_BYTES];
    mc_hmac_sha1(digest, secret, strlen(secret), text, strlen(text));
    return mc_base64_text(digest, sizeof(digest), pool);
}

void
mc_google_authorize(mc_rest_request *request, const char *access, const char *secret, apr_pool_t *pool)
{
    apr_table_setn(request->headers, "x-amz-date", mc_http_date(apr_time_sec(request->now), pool));
    const char *signature = mc_google_signature(mc_google_string_to_sign(request, pool), secret, pool);
    apr_table_setn(request->headers, "Authorization", apr_pstrcat(pool, "AWS ", access, ":", signature, NULL));
}

static mc_error *
sign_google(mc_rest_request *request, const mc_rest_cache *rest, const void *secret, apr_pool_t *pool)
{
    const google_cache *cache = (const google_cache *)rest;
    (void)secret;
    if (request->body != NULL) {
        uint8_t digest[MC_MD5_BYTES];
        mc_md5(digest, request->body, request->body_size);
        apr_table_setn(request->headers, "Content-MD5", mc_base64_text(digest, sizeof(digest), pool));
    }
    mc_google_authorize(request, cache->access, cache->secret, pool);
    return MC_OK;
}

static int
leading_parts_google(const mc_rest_cache *cache)
{
    const char *header = apr_table_get(cache->headers[MC_REST_LIST], "Host");
    const char *host = header == NULL ? strstr(cache->url, "://") + 3 : header;
    char name[256];
    apr_cpystrn(name, host, sizeof(name));
    name[strcspn(name, "/:")] = '\0';
    size_t size = strlen(name), length = strlen(GOOGLE_BUCKETS);
    return size > length && strcasecmp(name + size - length, GOOGLE_BUCKETS) == 0 ? 0 : 1;
}

static const char *
list_query_google(const char *prefix, const char *after, apr_pool_t *pool)
{
    const char *more =
        *after == '\0' ? "" : apr_pstrcat(pool, "marker=", mc_url_encode(after, NULL, true, false, pool), "&", NULL);
    return apr_pstrcat(pool, more, "max-keys=1000&prefix=", mc_url_encode(prefix, NULL, true, false, pool), NULL);
}

static const mc_rest_lister google_lister = {
    leading_parts_google, list_query_google, "ListBucketResult", "Contents", "Key", "Size", "NextMarker"
};

static const mc_rest_signer google_signer = { NULL, sign_google, NULL };

static mc_cache *
google_from_config(const mc_node *node, mc_build *build)
{
    google_cache *cache = apr_pcalloc(build->pool, sizeof(*cache));
    cache->rest.signer = &google_signer;
    cache->rest.lister = &google_lister;
    return mc_rest_read(&cache->rest, &mc_cache_google, node, build) ? &cache->rest.base.cache : NULL;
}

const mc_cache_ops mc_cache_google = {
    MC_KIND("google", google_keys, google_from_config, "Tiles as objects of Google's Cloud Storage."),
    MC_REST_LISTING_OPS,
};
