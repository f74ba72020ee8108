/* Roles of profiles: assumed by the token service, for the credentials of another profile or of a source. */
#include <apr_strings.h>
#include <string.h>

#include "cache/rest/aws_credentials.h"
#include "http/http_address.h"
#include "text/text.h"

enum { PROFILES_IN_A_ROW = 5 };

static mc_error *
profile_error(const char *name, const char *what, apr_pool_t *pool)
{
    return mc_error_create(pool, MC_ERR_CONFIG, "profile %s %s", mc_message_text(name, 128, pool), what);
}

mc_error *
mc_aws_refuse_profile(const mc_aws_profile *profile, const char *name, apr_pool_t *pool)
{
    if (!profile->found)
        return profile_error(name, "is neither in ~/.aws/config nor in ~/.aws/credentials", pool);
    if (profile->unsupported == NULL)
        return profile_error(name, "has no credentials", pool);
    return profile_error(
        name,
        apr_psprintf(pool,
                     "gets credentials by %s, which a server cannot: no program is started and nobody is asked. "
                     "`aws configure export-credentials` prints some for ~/.aws/credentials",
                     profile->unsupported),
        pool);
}

/* AssumeRole, signed with `base`. */
static mc_error *
assume_role(mc_aws_answer *answer, const mc_aws_secret *base, const mc_aws_profile *profile, const mc_aws_chain *chain,
            mc_ctx *ctx, apr_pool_t *pool)
{
    const char *url = apr_pstrcat(pool, chain->sts, "/", NULL);
    const char *form = apr_pstrcat(
        pool, "Action=AssumeRole&Version=2011-06-15&RoleArn=", mc_aws_form_value(profile->role, pool),
        "&RoleSessionName=",
        mc_aws_form_value(profile->role_session == NULL ? chain->role_session : profile->role_session, pool),
        profile->external_id == NULL ? "" : "&ExternalId=",
        profile->external_id == NULL ? "" : mc_aws_form_value(profile->external_id, pool), NULL);
    apr_table_t *headers = apr_table_make(pool, 8);
    apr_table_setn(headers, "Content-Type", "application/x-www-form-urlencoded");
    apr_table_setn(headers, "Host", mc_http_host_of(url, pool));
    const mc_sigv4 what = { .method = "POST",
                            .service = "sts",
                            .path = mc_http_path_of(url),
                            .query = "",
                            .body = form,
                            .body_size = strlen(form),
                            .region = chain->region,
                            .now = apr_time_now() };
    mc_sigv4_sign(headers, &what, base, pool);
    return mc_aws_ask_sts(answer, form, headers, chain, ctx, pool);
}

static mc_error *
ask_credential_source(mc_aws_answer *answer, const mc_aws_profile *profile, const char *name, const mc_aws_chain *chain,
                      mc_ctx *ctx, apr_pool_t *pool)
{
    const char *source = profile->credential_source;
    if (source == NULL)
        return profile_error(name, "has a role, but neither source_profile nor credential_source", pool);
    if (strcmp(source, "Environment") == 0 && chain->environment.id != NULL) {
        answer->secret = chain->environment;
        return MC_OK;
    }
    if (strcmp(source, "EcsContainer") == 0 && chain->container != NULL)
        return mc_aws_ask_container(answer, chain, ctx, pool);
    if (strcmp(source, "Ec2InstanceMetadata") == 0 && chain->metadata != NULL)
        return mc_aws_ask_machine(answer, chain, ctx, pool);
    return profile_error(name, "has a credential_source that is not to be had here", pool);
}

/* The credentials of a profile, for those of another one that names it as its source (depth: how many do). */
static mc_error *
ask_profile(mc_aws_answer *answer, const char *name, int depth, const mc_aws_chain *chain, mc_ctx *ctx,
            apr_pool_t *pool)
{
    mc_aws_profile profile;
    mc_aws_answer base = { .expires = 0 };
    if (depth >= PROFILES_IN_A_ROW)
        return profile_error(name, "is the source of too many others, or of itself", pool);
    MC_TRY(mc_aws_profile_read(&profile, name, chain->config_file, chain->shared_file, pool));
    if (profile.role == NULL ? profile.secret.id == NULL : profile.unsupported != NULL) /* mfa_serial of a role */
        return mc_aws_refuse_profile(&profile, name, pool);
    if (profile.role == NULL) {
        answer->secret = profile.secret;
        return MC_OK;
    }
    if (profile.identity_file != NULL) {
        mc_aws_chain identity = *chain;
        identity.role = profile.role;
        identity.identity_file = profile.identity_file;
        identity.role_session = profile.role_session == NULL ? chain->role_session : profile.role_session;
        return mc_aws_ask_identity(answer, &identity, ctx, pool);
    }
    const bool own = profile.source_profile != NULL && strcmp(profile.source_profile, name) == 0;
    if (own && profile.secret.id != NULL)
        base.secret = profile.secret;
    else if (profile.source_profile != NULL)
        MC_TRY(ask_profile(&base, profile.source_profile, depth + 1, chain, ctx, pool));
    else
        MC_TRY(ask_credential_source(&base, &profile, name, chain, ctx, pool));
    return assume_role(answer, &base.secret, &profile, chain, ctx, pool);
}

mc_error *
mc_aws_ask_profile(mc_aws_answer *answer, const mc_aws_chain *chain, mc_ctx *ctx, apr_pool_t *pool)
{
    return ask_profile(answer, chain->profile, 0, chain, ctx, pool);
}
