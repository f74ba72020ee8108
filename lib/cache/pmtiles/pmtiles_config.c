/* Keys of the cache "pmtiles", and what is made of them: which archive, and how it is reached. */
#include <apr_strings.h>
#include <stdlib.h>
#include <string.h>

#include "cache/pmtiles/pmtiles_base.h"
#include "http/http_address.h"

#define FIELD(field) offsetof(pmtiles_cache, field)
const mc_key mc_pmtiles_keys[] = {
    MC_CACHE_KEYS(pmtiles_cache),
    MC_KEY_TEXT("file", FIELD(file),
                "Path of the archive; with {tileset}, {grid} and {dim} or {dim:NAME} one for each of them.",
                .flags = MC_KEY_WORKDIR | MC_KEY_OURS),
    MC_KEY_URL("url", FIELD(url),
               "Address of the archive (http, https, or s3://BUCKET/KEY), instead of <file>: the archive is read by"
               " parts, nothing is stored.",
               .flags = MC_KEY_OURS),
    MC_KEY_NUMBER("revalidate", FIELD(remote.revalidate),
                  "Seconds for which an archive of <url> is taken for unchanged; an archive that was replaced is seen"
                  " at once where a part of it has to be fetched.",
                  .max = 1e6, .fallback = "60", .flags = MC_KEY_OURS),
    MC_KEY_NUMBER("connection_timeout", FIELD(remote.connect_timeout), "Seconds to wait for a connection to <url>.",
                  .min = 0.1, .max = 3600, .fallback = "5", .flags = MC_KEY_OURS),
    MC_KEY_NUMBER("timeout", FIELD(remote.timeout), "Seconds to wait for a part of <url>.", .min = 0.1, .max = 3600,
                  .fallback = "30", .flags = MC_KEY_OURS),
    MC_KEY_URL("endpoint", FIELD(endpoint),
               "Address of the store that s3:// means, without it that of AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL, or"
               " Amazon's.",
               .flags = MC_KEY_OURS),
    MC_AWS_KEYS(FIELD(aws), MC_KEY_OURS),
    MC_KEY_END,
};

static bool
is_web_address(const char *url)
{
    return strncmp(url, "http://", 7) == 0 || strncmp(url, "https://", 8) == 0;
}

static bool
is_store_address(const char *url)
{
    return strncmp(url, "s3://", 5) == 0;
}

static bool
refuse_archive(const mc_node *node, mc_build *build, const char *why)
{
    mc_complain(build->diagnostics, MC_REFUSED, node, "%s", why);
    return false;
}

static bool
is_archive_named(const pmtiles_cache *cache, const mc_node *node, mc_build *build)
{
    bool store = cache->url != NULL && is_store_address(cache->url);
    if ((cache->file == NULL) == (cache->url == NULL))
        return refuse_archive(node, build, "a PMTiles cache has either a <file> or a <url>");
    if (cache->url != NULL && !store && !is_web_address(cache->url))
        return refuse_archive(node, build, "the <url> of a PMTiles archive begins with http://, https:// or s3://");
    if (cache->url == NULL && mc_aws_options_given(&cache->aws))
        return refuse_archive(node, build, "only requests to a <url> are signed with credentials");
    if (cache->endpoint != NULL && (!store || !is_web_address(cache->endpoint)))
        return refuse_archive(node, build,
                              "<endpoint> is an address of http or https, for a <url> that begins with s3://");
    return true;
}

/* As AWS's own programs read it; NULL: Amazon's store. */
static const char *
environment_endpoint(apr_pool_t *pool)
{
    const char *endpoint = getenv("AWS_ENDPOINT_URL_S3");
    if (endpoint == NULL || *endpoint == '\0')
        endpoint = getenv("AWS_ENDPOINT_URL");
    return endpoint == NULL || !is_web_address(endpoint) ? NULL : apr_pstrdup(pool, endpoint);
}

/* The address of s3://BUCKET/KEY; false after a complaint. */
static bool
resolve_store_address(pmtiles_cache *cache, const mc_node *node, mc_build *build)
{
    apr_pool_t *pool = build->pool;
    const char *bucket = cache->url + 5;
    size_t size = strcspn(bucket, "/");
    if (size == 0 || bucket[size] == '\0' || bucket[size + 1] == '\0' ||
        strspn(bucket, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") != size)
        return refuse_archive(node, build, "an archive in a store of S3's kind is s3://BUCKET/KEY");
    const char *key = bucket + size;
    const char *endpoint = cache->endpoint != NULL ? cache->endpoint : environment_endpoint(pool);
    bucket = apr_pstrmemdup(pool, bucket, size);
    if (endpoint != NULL) {
        size_t length = strlen(endpoint);
        length -= endpoint[length - 1] == '/';
        cache->url = apr_psprintf(pool, "%.*s/%s%s", (int)length, endpoint, bucket, key);
        return true;
    }
    const char *region = cache->aws.region != NULL ? cache->aws.region : mc_aws_environment_region(pool);
    if (region == NULL)
        return refuse_archive(node, build, "s3:// needs <region>, which AWS_REGION does not say either");
    cache->aws.region = region;
    /* A certificate of Amazon's is for names without further dots. */
    cache->url = strchr(bucket, '.') == NULL
                     ? apr_psprintf(pool, "https://%s.s3.%s.amazonaws.com%s", bucket, region, key)
                     : apr_psprintf(pool, "https://s3.%s.amazonaws.com/%s%s", region, bucket, key);
    return true;
}

/* False after a complaint. */
static bool
prepare_remote(pmtiles_cache *cache, const mc_node *node, mc_build *build)
{
    bool store = is_store_address(cache->url);
    cache->remote.name = cache->base.cache.name;
    if (store && !resolve_store_address(cache, node, build))
        return false;
    if (!store && !mc_aws_options_given(&cache->aws))
        return true;
    if (*mc_http_path_of(cache->url) != '/' || strpbrk(cache->url, "?#") != NULL)
        return refuse_archive(node, build, "the address of an object has a path, and no query");
    cache->remote.aws = &cache->aws;
    return mc_aws_options_complete(&cache->aws, cache->remote.name, cache->url, node, build);
}

bool
mc_pmtiles_prepare_archive(pmtiles_cache *cache, const mc_node *node, mc_build *build)
{
    return is_archive_named(cache, node, build) && (cache->url == NULL || prepare_remote(cache, node, build));
}
