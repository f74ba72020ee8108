/* What a cache says of who asks a store of S3's kind: rows of its table of keys, and what is made of them once. */
#ifndef MC_CACHE_REST_AWS_OPTIONS_H
#define MC_CACHE_REST_AWS_OPTIONS_H

#include "cache/cache_base.h"
#include "cache/rest/aws_credentials.h"

typedef struct mc_aws_options {
    const char *id, *secret, *session_token;
    const char *credentials_file, *profile, *region;
    mc_aws_chain chain;
} mc_aws_options;

/* at: offset of the options in the struct of the cache; flags: of those that MapCache's "s3" has, too. */
#define MC_AWS_KEYS(at, flags_)                                                                                        \
    MC_KEY_LINE("id", (at) + offsetof(mc_aws_options, id),                                                             \
                "Access key; without it AWS_ACCESS_KEY_ID, a web identity, the profile in AWS's files, the "           \
                "container or the machine (IMDSv2) says it.",                                                          \
                .flags = (flags_)),                                                                                    \
        MC_KEY_LINE("secret", (at) + offsetof(mc_aws_options, secret), "Secret of the access key.",                    \
                    .flags = (flags_)),                                                                                \
        MC_KEY_LINE("session_token", (at) + offsetof(mc_aws_options, session_token),                                   \
                    "Token of a session, for an access key that has one.", .flags = (flags_)),                         \
        MC_KEY_TEXT("credentials_file", (at) + offsetof(mc_aws_options, credentials_file),                             \
                    "File with the access key, its secret and perhaps a token, a line each, or with sections as the "  \
                    "shared file of AWS has; looked at once a second.",                                                \
                    .flags = MC_KEY_WORKDIR | (flags_)),                                                               \
        MC_KEY_LINE("profile", (at) + offsetof(mc_aws_options, profile),                                               \
                    "Section of <credentials_file>, or of ~/.aws/config and ~/.aws/credentials, also where the "       \
                    "environment has a key [AWS_PROFILE, or default].",                                                \
                    .flags = MC_KEY_OURS),                                                                             \
        MC_KEY_LINE("region", (at) + offsetof(mc_aws_options, region),                                                 \
                    "Region of the bucket, as the store names it; without it that of the host's name, AWS_REGION, or " \
                    "that of the profile.",                                                                            \
                    .flags = (flags_))

/* Whether any of them is there. */
bool mc_aws_options_given(const mc_aws_options *options);

/* AWS_REGION or AWS_DEFAULT_REGION; NULL: neither is set. */
const char *mc_aws_environment_region(apr_pool_t *pool);

/* What the profile in AWS's files says. */
mc_aws_profile mc_aws_profile_settings(const mc_aws_options *options, apr_pool_t *pool);

/* Makes the chain of the cache `name`, for a store at `url`: false after a complaint, about `node`. */
bool mc_aws_options_complete(mc_aws_options *options, const char *name, const char *url, const mc_node *node,
                             mc_build *build);

/* Whether the word of a store for its refusal says that credentials have ended, so that other ones may help; if so, the
 * old ones are dropped. */
bool mc_aws_options_renew(const mc_aws_options *options, const mc_aws_secret *used, const char *code);

#endif
