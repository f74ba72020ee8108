/* See place.h. */
#include "cache/archive/place.h"

#include <apr_strings.h>
#include <stdlib.h>
#include <string.h>

#include "http/http_address.h"
#include "text/text.h"

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
is_archive_named(const mc_archive_place *place, const mc_node *node, mc_build *build)
{
    bool store = place->url != NULL && is_store_address(place->url);
    if ((place->file == NULL) == (place->url == NULL))
        return refuse_archive(node, build, "an archive has either a <file> or a <url>");
    if (place->url != NULL && !store && !is_web_address(place->url))
        return refuse_archive(node, build, "the <url> of an archive begins with http://, https:// or s3://");
    if (place->url == NULL && mc_aws_options_given(&place->aws))
        return refuse_archive(node, build, "only requests to a <url> are signed with credentials");
    if (place->endpoint != NULL && (!store || !is_web_address(place->endpoint)))
        return refuse_archive(node, build,
                              "<endpoint> is an address of http or https, for a <url> that begins with s3://");
    return true;
}

/* As AWS's own programs read it; NULL: Amazon's store. */
static const char *
environment_endpoint(const mc_aws_options *aws, apr_pool_t *pool)
{
    const char *endpoint = getenv("AWS_ENDPOINT_URL_S3");
    if (endpoint == NULL || *endpoint == '\0')
        endpoint = getenv("AWS_ENDPOINT_URL");
    if (endpoint == NULL || *endpoint == '\0')
        endpoint = mc_aws_profile_settings(aws, pool).endpoint;
    return endpoint == NULL || !is_web_address(endpoint) ? NULL : apr_pstrdup(pool, endpoint);
}

/* The address of s3://BUCKET/KEY; false after a complaint. */
static bool
resolve_store_address(mc_archive_place *place, const mc_node *node, mc_build *build)
{
    apr_pool_t *pool = build->pool;
    const char *bucket = place->url + 5;
    size_t size = strcspn(bucket, "/");
    if (size == 0 || bucket[size] == '\0' || bucket[size + 1] == '\0' ||
        strspn(bucket, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") != size)
        return refuse_archive(node, build, "an archive in a store of S3's kind is s3://BUCKET/KEY");
    const char *key = bucket + size;
    const char *endpoint = place->endpoint != NULL ? place->endpoint : environment_endpoint(&place->aws, pool);
    bucket = apr_pstrmemdup(pool, bucket, size);
    if (endpoint != NULL) {
        size_t length = strlen(endpoint);
        length -= endpoint[length - 1] == '/';
        place->url = apr_psprintf(pool, "%.*s/%s%s", (int)length, endpoint, bucket, key);
        return true;
    }
    const char *region = place->aws.region != NULL ? place->aws.region : mc_aws_environment_region(pool);
    if (region == NULL)
        region = mc_aws_profile_settings(&place->aws, pool).region;
    if (region == NULL)
        return refuse_archive(node, build, "s3:// needs <region>, which neither AWS_REGION nor ~/.aws/config says");
    place->aws.region = region;
    /* A certificate of Amazon's is for names without further dots. */
    place->url = strchr(bucket, '.') == NULL
                     ? apr_psprintf(pool, "https://%s.s3.%s.amazonaws.com%s", bucket, region, key)
                     : apr_psprintf(pool, "https://s3.%s.amazonaws.com/%s%s", region, bucket, key);
    return true;
}

/* False after a complaint. */
static bool
prepare_remote(mc_archive_place *place, const mc_node *node, mc_build *build)
{
    bool store = is_store_address(place->url);
    if (store && !resolve_store_address(place, node, build))
        return false;
    if (!store && !mc_aws_options_given(&place->aws))
        return true;
    if (*mc_http_path_of(place->url) != '/' || strpbrk(place->url, "?#") != NULL)
        return refuse_archive(node, build, "the address of an object has a path, and no query");
    place->remote.aws = &place->aws;
    return mc_aws_options_complete(&place->aws, place->remote.name, place->url, node, build);
}

bool
mc_archive_place_prepare(mc_archive_place *place, const char *name, const mc_node *node, mc_build *build)
{
    place->remote.name = name;
    return is_archive_named(place, node, build) && (place->url == NULL || prepare_remote(place, node, build));
}

mc_error *
mc_archive_place_look(mc_ranged_file *file, const mc_archive_place *place, const char *path, mc_ctx *ctx,
                      apr_pool_t *pool)
{
    if (place->url != NULL)
        return mc_ranges_ask(file, path, &place->remote, ctx, pool);
    mc_ranges_look(file, path);
    return MC_OK;
}

mc_error *
mc_archive_encode_path(char *url, const char *kept, apr_pool_t *pool)
{
    size_t server = (size_t)(mc_http_path_of(url) - url);
    const char *coded = mc_url_encode(url + server, kept, true, false, pool);
    size_t size = strlen(coded) + 1;
    if (server + size > MC_PATH_MAX)
        return mc_error_create(pool, MC_ERR_LIMIT, "the address of an archive is longer than %d bytes", MC_PATH_MAX);
    if (strstr(coded, "/./") != NULL || strstr(coded, "/../") != NULL)
        return mc_error_create(pool, MC_ERR_LAYER_NOT_DEFINED, "the name of the layer is no name of an archive");
    memcpy(url + server, coded, size);
    return MC_OK;
}

mc_error *
mc_archive_place_path(char *path, const mc_archive_place *place, const mc_template *template, const mc_tile_key *key,
                      apr_pool_t *pool)
{
    MC_TRY(mc_template_expand(path, template, key, pool));
    /* The path of an address that is signed stands in the signature as it is sent. What is encoded already stays so. */
    return place->remote.aws == NULL ? MC_OK : mc_archive_encode_path(path, "/%", pool);
}

mc_error *
mc_archive_place_address(char *url, const mc_archive_place *place, apr_pool_t *pool)
{
    if (place->url == NULL || strchr(place->url, '{') != NULL || strlen(place->url) >= MC_PATH_MAX)
        return mc_error_create(pool, MC_ERR_CONFIG, "this is no address of one archive");
    apr_cpystrn(url, place->url, MC_PATH_MAX);
    return mc_archive_encode_path(url, "/%", pool);
}
