/*
 * Who asks a store of AWS's kind: the standard chain of credentials. In this order: the configuration, its file, the
 * environment, a web identity (AssumeRoleWithWebIdentity), the profile of AWS's files (its keys, or the role that it
 * assumes), the container, the machine (IMDSv2). What has to be asked for is kept for the process, and renewed before
 * it ends.
 */
#ifndef MC_CACHE_REST_AWS_CREDENTIALS_H
#define MC_CACHE_REST_AWS_CREDENTIALS_H

#include "cache/rest/aws_profile.h"
#include "cache/rest/sigv4.h"
#include "mapcache/ctx.h"

/* Where the credentials of a cache come from; read once, with the configuration. NULL: not from there. */
typedef struct mc_aws_chain {
    const char *name; /* of the cache, for messages */
    const char *region;
    mc_aws_secret fixed;               /* id NULL: none */
    mc_aws_secret environment;         /* likewise, also where the configuration says others */
    const char *credentials_file;      /* of the configuration */
    const char *role, *identity_file;  /* AWS_ROLE_ARN, AWS_WEB_IDENTITY_TOKEN_FILE */
    const char *role_session, *sts;    /* name of the session, address of the service */
    const char *shared_file, *profile; /* ~/.aws/credentials, default */
    const char *config_file;           /* ~/.aws/config */
    bool profile_named;                /* by somebody: it must be there */
    const char *container;             /* address */
    const char *container_token;       /* text of Authorization */
    const char *container_token_file;  /* the same in a file */
    const char *metadata;              /* address of the machine's own service */
} mc_aws_chain;

/* What the environment says, for what the configuration has not said. */
void mc_aws_chain_complete(mc_aws_chain *chain, const char *region, apr_pool_t *pool);

/*
 * The credentials of the first source of the chain that has any; ends with the deadline. MC_ERR_UNAVAILABLE where a
 * source does not answer, MC_ERR_CONFIG where there is no source, or a file is none.
 */
mc_error *mc_aws_credentials(const mc_aws_secret **secret, const mc_aws_chain *chain, mc_ctx *ctx,
                             apr_pool_t *pool) MC_CHECKED;

/* After a store has refused `used`: true where other ones may come, as the old ones are kept no longer. */
bool mc_aws_credentials_drop(const mc_aws_chain *chain, const mc_aws_secret *used);

/* What a source has answered, with its end. */
typedef struct mc_aws_answer {
    mc_aws_secret secret;
    int64_t expires; /* seconds since 1970; 0: never */
} mc_aws_answer;

/* The sources that have to be asked (aws_sources.c). */
mc_error *mc_aws_ask_identity(mc_aws_answer *answer, const mc_aws_chain *chain, mc_ctx *ctx,
                              apr_pool_t *pool) MC_CHECKED;
mc_error *mc_aws_ask_container(mc_aws_answer *answer, const mc_aws_chain *chain, mc_ctx *ctx,
                               apr_pool_t *pool) MC_CHECKED;
mc_error *mc_aws_ask_machine(mc_aws_answer *answer, const mc_aws_chain *chain, mc_ctx *ctx,
                             apr_pool_t *pool) MC_CHECKED;

/* The role of the chain's profile (aws_role.c). MC_ERR_CONFIG where a profile is not as it should be. */
mc_error *mc_aws_ask_profile(mc_aws_answer *answer, const mc_aws_chain *chain, mc_ctx *ctx,
                             apr_pool_t *pool) MC_CHECKED;

/* Why a profile without keys and without a role gives no credentials. */
mc_error *mc_aws_refuse_profile(const mc_aws_profile *profile, const char *name, apr_pool_t *pool) MC_CHECKED;

/* Asks the token service with a form, signed or not. */
mc_error *mc_aws_ask_sts(mc_aws_answer *answer, const char *form, const apr_table_t *headers, const mc_aws_chain *chain,
                         mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

/* Text as a value of a form or a query. */
const char *mc_aws_form_value(const char *text, apr_pool_t *pool);

#endif
