/*
 * Who asks a store of AWS's kind: the standard chain of credentials. In this order: the configuration, its file, the
 * environment, a web identity (AssumeRoleWithWebIdentity), the shared file of credentials, the container, the machine
 * (IMDSv2). What has to be asked for is kept for the process, and renewed before it ends.
 */
#ifndef MC_CACHE_REST_AWS_CREDENTIALS_H
#define MC_CACHE_REST_AWS_CREDENTIALS_H

#include "cache/rest/sigv4.h"
#include "mapcache/ctx.h"

/* Where the credentials of a cache come from; read once, with the configuration. NULL: not from there. */
typedef struct mc_aws_chain {
    const char *name;                  /* of the cache, for messages */
    mc_aws_secret fixed;               /* id NULL: none */
    const char *credentials_file;      /* of the configuration */
    const char *role, *identity_file;  /* AWS_ROLE_ARN, AWS_WEB_IDENTITY_TOKEN_FILE */
    const char *role_session, *sts;    /* name of the session, address of the service */
    const char *shared_file, *profile; /* ~/.aws/credentials, default */
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

/*
 * What a file of credentials says (aws_files.c): sections "[profile]" with lines "aws_access_key_id = ...", or
 * MapCache's form, whose lines are the id, the secret and perhaps the token. id stays NULL where it has none for the
 * profile.
 */
void mc_aws_parse_file(mc_aws_secret *secret, const char *text, const char *profile, apr_pool_t *pool);

#endif
