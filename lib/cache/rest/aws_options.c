#include "cache/rest/aws_options.h"

#include <apr_strings.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

bool
mc_aws_options_given(const mc_aws_options *options)
{
    return options->id != NULL || options->secret != NULL || options->session_token != NULL ||
           options->credentials_file != NULL || options->profile != NULL || options->region != NULL;
}

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

const char *
mc_aws_environment_region(apr_pool_t *pool)
{
    const char *region = getenv("AWS_REGION");
    if (region == NULL || *region == '\0')
        region = getenv("AWS_DEFAULT_REGION");
    return region == NULL || *region == '\0' ? NULL : apr_pstrdup(pool, region);
}

/* What cannot be read says nothing: that is said with the first request. */
mc_aws_profile
mc_aws_profile_settings(const mc_aws_options *options, apr_pool_t *pool)
{
    mc_aws_chain chain = { .profile = options->profile };
    mc_aws_profile profile;
    mc_aws_chain_complete(&chain, "", pool);
    mc_error_ignore(mc_aws_profile_read(&profile, chain.profile, chain.config_file, chain.shared_file, pool));
    return profile;
}

bool
mc_aws_options_complete(mc_aws_options *options, const char *name, const char *url, const mc_node *node,
                        mc_build *build)
{
    if ((options->id == NULL) != (options->secret == NULL)) {
        mc_complain(build->diagnostics, MC_REFUSED, node, "<id> and <secret> belong together: one of them is missing");
        return false;
    }
    if (options->region == NULL)
        options->region = region_of_host(url, build->pool);
    if (options->region == NULL)
        options->region = mc_aws_environment_region(build->pool);
    if (options->region == NULL)
        options->region = mc_aws_profile_settings(options, build->pool).region;
    if (options->region == NULL) {
        mc_complain(build->diagnostics, MC_REFUSED, node,
                    "requests to S3 need <region>, which neither the host's name, AWS_REGION nor ~/.aws/config says");
        return false;
    }
    if (options->region[strspn(options->region, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.")] !=
        0) {
        mc_complain(build->diagnostics, MC_REFUSED, mc_node_child(node, "region"), "%s cannot be the name of a region",
                    mc_config_quote(options->region, build->pool));
        return false;
    }
    options->chain = (mc_aws_chain){
        .name = name,
        .fixed = { options->id, options->secret, options->session_token },
        .credentials_file = options->credentials_file,
        .profile = options->profile,
    };
    mc_aws_chain_complete(&options->chain, options->region, build->pool);
    return true;
}

bool
mc_aws_options_renew(const mc_aws_options *options, const mc_aws_secret *used, const char *code)
{
    static const char *const ended[] = { "ExpiredToken", "InvalidToken", "InvalidAccessKeyId", "TokenRefreshRequired" };
    for (size_t i = 0; i < sizeof(ended) / sizeof(*ended); i++)
        if (strcmp(ended[i], code) == 0)
            return mc_aws_credentials_drop(&options->chain, used);
    return false;
}
