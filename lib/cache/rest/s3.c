/* The cache "s3": objects of Amazon S3 and of stores that speak its language. */
#include <apr_strings.h>
#include <stdlib.h>
#include <string.h>

#include "cache/rest/aws_credentials.h"
#include "cache/rest/rest_base.h"
#include "text/text.h"

typedef struct s3_cache {
    mc_rest_cache rest;
    const char *id, *secret, *session_token;
    const char *credentials_file, *profile, *region;
    bool unsigned_payload, bucket_in_host;
    mc_aws_chain chain;
} s3_cache;

#define S3_FIELD(field) offsetof(s3_cache, field)
static const mc_key s3_keys[] = {
    MC_REST_KEYS,
    MC_KEY_LINE("id", S3_FIELD(id),
                "Access key; without it AWS_ACCESS_KEY_ID, a web identity, the shared file of credentials, the "
                "container or the machine (IMDSv2) says it."),
    MC_KEY_LINE("secret", S3_FIELD(secret), "Secret of the access key."),
    MC_KEY_LINE("session_token", S3_FIELD(session_token), "Token of a session, for an access key that has one."),
    MC_KEY_TEXT("credentials_file", S3_FIELD(credentials_file),
                "File with the access key, its secret and perhaps a token, a line each, or with sections as the shared "
                "file of AWS has; read with every request.",
                .flags = MC_KEY_WORKDIR),
    MC_KEY_LINE("profile", S3_FIELD(profile), "Section of the file of credentials [AWS_PROFILE, or default].",
                .flags = MC_KEY_OURS),
    MC_KEY_LINE("region", S3_FIELD(region),
                "Region of the bucket, as the store names it; without it that of the host's name, or AWS_REGION."),
    MC_KEY_BOOL("bucket_in_host", S3_FIELD(bucket_in_host),
                "The host's name is that of the bucket; else the path begins with the bucket. Only for listing: names "
                "of amazonaws.com say it themselves.",
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
    MC_TRY(mc_aws_credentials(&found, &((s3_cache *)rest)->chain, ctx, pool));
    *secret = found;
    return MC_OK;
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
        .region = cache->region,
        .now = request->now,
    };
    (void)pool;
    mc_sigv4_sign(request->headers, &what, secret, pool);
    return MC_OK;
}

static bool
renew_s3(mc_rest_cache *rest, const void *secret, const char *code)
{
    static const char *const ended[] = { "ExpiredToken", "InvalidToken", "InvalidAccessKeyId", "TokenRefreshRequired" };
    for (size_t i = 0; i < sizeof(ended) / sizeof(*ended); i++)
        if (strcmp(ended[i], code) == 0)
            return mc_aws_credentials_drop(&((s3_cache *)rest)->chain, secret);
    return false;
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

static const mc_rest_lister s3_lister = { leading_parts_s3, list_query_s3,          "Contents", "Key",
                                          "Size",           "NextContinuationToken" };

static const mc_rest_signer s3_signer = { prepare_s3, sign_s3, renew_s3 };

/* "eu-west-1" of "s3.eu-west-1.amazonaws.com", "bucket.s3.eu-west-1.amazonaws.com", "s3-eu-west-1.amazonaws.com" and
 * such; NULL where the name says none. */
static const char *
region_of_host(const char *url, apr_pool_t *pool)
{
    const char *begin = strstr(url, "://");
    const char *host = apr_pstrmemdup(pool, begin + 3, strcspn(begin + 3, "/:"));
    const char *end = strstr(host, ".amazonaws.com");
    if (end == NULL)
        return NULL;
    for (const char *at = host; (at = strstr(at, "s3")) != NULL; at += 2) {
        if ((at != host && at[-1] != '.') || (at[2] != '.' && at[2] != '-') || at + 3 >= end)
            continue;
        const char *name = at + 3;
        if (strncmp(name, "dualstack.", 10) == 0)
            name += 10;
        if (name < end && memchr(name, '.', (size_t)(end - name)) == NULL)
            return apr_pstrmemdup(pool, name, (size_t)(end - name));
    }
    return strncmp(end - 2, "s3", 2) == 0 ? "us-east-1" : NULL;
}

static const char *
environment_region(apr_pool_t *pool)
{
    const char *region = getenv("AWS_REGION");
    if (region == NULL || *region == '\0')
        region = getenv("AWS_DEFAULT_REGION");
    return region == NULL || *region == '\0' ? NULL : apr_pstrdup(pool, region);
}

static bool
check_s3(s3_cache *cache, const mc_node *node, mc_build *build)
{
    if ((cache->id == NULL) != (cache->secret == NULL)) {
        mc_complain(build->diagnostics, MC_REFUSED, node, "<id> and <secret> belong together: one of them is missing");
        return false;
    }
    if (cache->region == NULL)
        cache->region = region_of_host(cache->rest.url, build->pool);
    if (cache->region == NULL)
        cache->region = environment_region(build->pool);
    if (cache->region == NULL) {
        mc_complain(build->diagnostics, MC_REFUSED, node,
                    "an s3 cache needs <region>, which neither the host's name nor "
                    "AWS_REGION says");
        return false;
    }
    if (cache->region[strspn(cache->region, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.")] !=
        0) {
        mc_complain(build->diagnostics, MC_REFUSED, mc_node_child(node, "region"), "%s cannot be the name of a region",
                    mc_config_quote(cache->region, build->pool));
        return false;
    }
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
    cache->chain = (mc_aws_chain){
        .name = cache->rest.base.cache.name,
        .fixed = { cache->id, cache->secret, cache->session_token },
        .credentials_file = cache->credentials_file,
        .profile = cache->profile,
    };
    mc_aws_chain_complete(&cache->chain, cache->region, build->pool);
    return &cache->rest.base.cache;
}

const mc_cache_ops mc_cache_s3 = {
    MC_KIND("s3", s3_keys, s3_from_config,
            "Tiles as objects of Amazon S3, or of another store that speaks its protocol."),
    MC_REST_LISTING_OPS,
};
