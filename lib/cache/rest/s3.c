/* The cache "s3": objects of Amazon S3 and of stores that speak its language. */
#include <apr_strings.h>
#include <string.h>

#include "base/bytes.h"
#include "cache/rest/aws_options.h"
#include "cache/rest/rest_base.h"
#include "cache/rest/signed_headers.h"
#include "digest/digest.h"
#include "text/text.h"

typedef struct s3_cache {
    mc_rest_cache rest;
    mc_aws_options aws;
    bool unsigned_payload, bucket_in_host, checksum;
} s3_cache;

#define S3_FIELD(field) offsetof(s3_cache, field)
static const mc_key s3_keys[] = {
    MC_REST_KEYS,
    MC_AWS_KEYS(S3_FIELD(aws), 0),
    MC_KEY_BOOL("bucket_in_host", S3_FIELD(bucket_in_host),
                "The host's name is that of the bucket; else the path begins with the bucket. Only for listing: names "
                "of amazonaws.com say it themselves.",
                .flags = MC_KEY_OURS, .fallback = "false"),
    MC_KEY_BOOL(
        "checksum", S3_FIELD(checksum),
        "Tiles are stored with a CRC-32C, which the store checks and keeps, and asked for with their check sums: "
        "a tile that is another one is an error. Not every store of S3's kind takes the headers.",
        .flags = MC_KEY_OURS, .fallback = "false"),
    MC_KEY_BOOL("unsigned_payload", S3_FIELD(unsigned_payload),
                "Tiles are not hashed before they are stored: TLS proves that they are whole. Only for https.",
                .flags = MC_KEY_OURS, .fallback = "false"),
    MC_KEY_END,
};

static mc_error *
prepare_s3(const void **secret, mc_rest_cache *rest, mc_ctx *ctx, apr_pool_t *pool)
{
    const mc_aws_secret *found;
    MC_TRY(mc_aws_credentials(&found, &((s3_cache *)rest)->aws.chain, ctx, pool));
    *secret = found;
    return MC_OK;
}

/* In base64. */
static const char *
crc32c_text(const void *data, size_t size, apr_pool_t *pool)
{
    uint8_t sum[4];
    (void)mc_store_big32(sum, mc_crc32c(data, size));
    return mc_base64_text(sum, sizeof(sum), pool);
}

static mc_error *
sign_s3(mc_rest_request *request, const mc_rest_cache *rest, const void *secret, apr_pool_t *pool)
{
    const s3_cache *cache = (const s3_cache *)rest;
    const mc_sigv4 what = {
        .method = request->method,
        .path = request->path,
        .query = request->query,
        .body = request->body,
        .body_size = request->body_size,
        .unsigned_body = cache->unsigned_payload && request->body != NULL,
        .region = cache->aws.region,
        .now = request->now,
    };
    if (cache->checksum && request->body != NULL)
        apr_table_setn(request->headers, MC_REST_CRC32C, crc32c_text(request->body, request->body_size, pool));
    else if (cache->checksum && *request->query == '\0' && strcmp(request->method, "GET") == 0)
        apr_table_setn(request->headers, "x-amz-checksum-mode", "ENABLED");
    mc_sigv4_sign(request->headers, &what, secret, pool);
    return MC_OK;
}

static bool
renew_s3(mc_rest_cache *rest, const void *secret, const char *code)
{
    return mc_aws_options_renew(&((s3_cache *)rest)->aws, secret, code);
}

/* Of "bucket.s3.region.amazonaws.com", by the header where there is one. */
static bool
is_bucket_in_host(const s3_cache *cache)
{
    const char *header = apr_table_get(cache->rest.headers[MC_REST_LIST], "Host");
    const char *host = header == NULL ? strstr(cache->rest.url, "://") + 3 : header;
    const char *end = host + strcspn(host, "/");
    const char *service = strstr(host, ".s3.");
    if (service == NULL)
        service = strstr(host, ".s3-");
    const char *amazon = strstr(host, ".amazonaws.com");
    return cache->bucket_in_host || (service != NULL && amazon != NULL && service < end && amazon < end);
}

static int
leading_parts_s3(const mc_rest_cache *rest)
{
    return is_bucket_in_host((const s3_cache *)rest) ? 0 : 1;
}

static const char *
list_query_s3(const char *prefix, const char *after, apr_pool_t *pool)
{
    const char *more =
        *after == '\0'
            ? ""
            : apr_pstrcat(pool, "continuation-token=", mc_url_encode(after, NULL, true, false, pool), "&", NULL);
    return apr_pstrcat(pool, more, "list-type=2&max-keys=1000&prefix=", mc_url_encode(prefix, NULL, true, false, pool),
                       NULL);
}

static const mc_rest_lister s3_lister = {
    leading_parts_s3, list_query_s3, "ListBucketResult", "Contents", "Key", "Size", "NextContinuationToken"
};

static const mc_rest_signer s3_signer = { prepare_s3, sign_s3, renew_s3 };

static bool
check_s3(s3_cache *cache, const mc_node *node, mc_build *build)
{
    if (!mc_aws_options_complete(&cache->aws, cache->rest.base.cache.name, cache->rest.url, node, build))
        return false;
    if (cache->unsigned_payload && strncasecmp(cache->rest.url, "https://", 8) != 0) {
        mc_complain(build->diagnostics, MC_REFUSED, mc_node_child(node, "unsigned_payload"),
                    "tiles that are not signed need https");
        return false;
    }
    return true;
}

static mc_cache *
s3_from_config(const mc_node *node, mc_build *build)
{
    s3_cache *cache = apr_pcalloc(build->pool, sizeof(*cache));
    cache->rest.encoded_plus = true;
    cache->rest.signer = &s3_signer;
    cache->rest.lister = &s3_lister;
    if (!mc_rest_read(&cache->rest, &mc_cache_s3, node, build) || !check_s3(cache, node, build))
        return NULL;
    return &cache->rest.base.cache;
}

const mc_cache_ops mc_cache_s3 = {
    MC_KIND("s3", s3_keys, s3_from_config,
            "Tiles as objects of Amazon S3, or of another store that speaks its protocol."),
    MC_REST_LISTING_OPS,
};
