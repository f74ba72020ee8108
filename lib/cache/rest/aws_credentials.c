/* The chain, and what of it is kept for the process. */
#include "cache/rest/aws_credentials.h"

#include <apr_strings.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/wait.h"
#include "cache/rest/aws_files.h"
#include "cache/rest/aws_text.h"
#include "cache/rest/rest_base.h"

enum { KEPT_MOST = 32, REASON_BYTES = 256 };

/* New ones are asked for so many seconds before the end, or in the last quarter of a short life. */
#define RENEWAL 300
/* Microseconds: so long nobody asks again after a failure. */
#define FAILURE_KEPT APR_USEC_PER_SEC
/* Microseconds: those who have no deadline wait so long for another one's answer. */
#define LONGEST_WAIT (30 * APR_USEC_PER_SEC)

typedef mc_error *ask_function(mc_aws_answer *answer, const mc_aws_chain *chain, mc_ctx *ctx, apr_pool_t *pool);

/* What one source has said last. */
typedef struct kept_secret {
    char *source; /* NULL: free */
    char *id, *key, *token;
    int64_t since, expires; /* seconds since 1970 */
    bool asking;            /* somebody does */
    apr_time_t failed;      /* mc_clock_now() of the last failure, or 0 */
    char reason[REASON_BYTES];
} kept_secret;

/* Of the process: credentials outlive a reload of the configuration. */
static pthread_mutex_t kept_lock = PTHREAD_MUTEX_INITIALIZER; /* of `kept` */
static pthread_cond_t kept_change;                            /* somebody has been answered */
static pthread_once_t kept_once = PTHREAD_ONCE_INIT;
static kept_secret kept[KEPT_MOST];

static void
make_kept_condition(void)
{
    mc_clock_condition(&kept_change);
}

static const char *
environment_text(const char *name, apr_pool_t *pool)
{
    const char *value = getenv(name);
    return value == NULL || *value == '\0' ? NULL : apr_pstrdup(pool, value);
}

static const char *
environment_or(const char *name, const char *otherwise, apr_pool_t *pool)
{
    const char *value = environment_text(name, pool);
    return value == NULL ? otherwise : value;
}

static const char *
without_last_slash(const char *address, apr_pool_t *pool)
{
    size_t size = strlen(address);
    return size > 0 && address[size - 1] == '/' ? apr_pstrmemdup(pool, address, size - 1) : address;
}

static void
complete_container(mc_aws_chain *chain, apr_pool_t *pool)
{
    const char *relative = environment_text("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", pool);
    chain->container = relative != NULL ? apr_pstrcat(pool, "http://169.254.170.2", relative, NULL)
                                        : environment_text("AWS_CONTAINER_CREDENTIALS_FULL_URI", pool);
    chain->container_token = environment_text("AWS_CONTAINER_AUTHORIZATION_TOKEN", pool);
    chain->container_token_file = environment_text("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", pool);
}

void
mc_aws_chain_complete(mc_aws_chain *chain, const char *region, apr_pool_t *pool)
{
    const char *home = environment_text("HOME", pool);
    const char *own_file = home == NULL ? NULL : apr_pstrcat(pool, home, "/.aws/credentials", NULL);
    const char *own_config = home == NULL ? NULL : apr_pstrcat(pool, home, "/.aws/config", NULL);
    const char *off = environment_or("AWS_EC2_METADATA_DISABLED", "false", pool);
    chain->region = region;
    chain->environment =
        (mc_aws_secret){ environment_text("AWS_ACCESS_KEY_ID", pool), environment_text("AWS_SECRET_ACCESS_KEY", pool),
                         environment_text("AWS_SESSION_TOKEN", pool) };
    if (chain->environment.id == NULL || chain->environment.key == NULL)
        chain->environment = (mc_aws_secret){ NULL, NULL, NULL };
    if (chain->fixed.id == NULL && chain->credentials_file == NULL && chain->profile == NULL)
        chain->fixed = chain->environment;
    chain->role = environment_text("AWS_ROLE_ARN", pool);
    chain->identity_file = environment_text("AWS_WEB_IDENTITY_TOKEN_FILE", pool);
    chain->role_session = environment_or("AWS_ROLE_SESSION_NAME", "mapcache", pool);
    const char *sts =
        apr_pstrcat(pool, "https://sts.", region, ".amazonaws.com", strncmp(region, "cn-", 3) == 0 ? ".cn" : "", NULL);
    chain->sts = without_last_slash(environment_or("AWS_ENDPOINT_URL_STS", sts, pool), pool);
    chain->shared_file = environment_or("AWS_SHARED_CREDENTIALS_FILE", own_file, pool);
    chain->config_file = environment_or("AWS_CONFIG_FILE", own_config, pool);
    if (chain->profile == NULL)
        chain->profile = environment_text("AWS_PROFILE", pool);
    chain->profile_named = chain->profile != NULL;
    if (chain->profile == NULL)
        chain->profile = "default";
    complete_container(chain, pool);
    const char *machine = environment_or("AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://169.254.169.254", pool);
    chain->metadata = strcasecmp(off, "true") == 0 ? NULL : without_last_slash(machine, pool);
}

/* The place of a source, made where there is none yet; the lock is held. NULL: all are in use. */
static kept_secret *
find_kept(const char *source)
{
    kept_secret *unused = NULL;
    for (int i = 0; i < KEPT_MOST; i++) {
        if (kept[i].source != NULL && strcmp(kept[i].source, source) == 0)
            return &kept[i];
        if (kept[i].source == NULL && unused == NULL)
            unused = &kept[i];
    }
    if (unused != NULL) {
        *unused = (kept_secret){ .source = strdup(source) };
        MC_ASSERT(unused->source != NULL);
    }
    return unused;
}

static void
forget_kept(kept_secret *place)
{
    free(place->id);
    free(place->key);
    free(place->token);
    place->id = place->key = place->token = NULL;
}

/* The lock is held. */
static void
keep_answer(kept_secret *place, const mc_aws_answer *answer)
{
    forget_kept(place);
    place->id = strdup(answer->secret.id);
    place->key = strdup(answer->secret.key);
    place->token = answer->secret.token == NULL ? NULL : strdup(answer->secret.token);
    MC_ASSERT(place->id != NULL && place->key != NULL);
    place->since = apr_time_sec(apr_time_now());
    place->expires = answer->expires;
    place->failed = 0;
}

/* Seconds until new ones are to be asked for; the lock is held. */
static int64_t
fresh_seconds(const kept_secret *place)
{
    if (place->expires == 0)
        return 1;
    int64_t life = place->expires - place->since;
    int64_t margin = life / 4 < RENEWAL ? life / 4 : RENEWAL;
    return place->expires - margin - (int64_t)apr_time_sec(apr_time_now());
}

static const mc_aws_secret *
copy_kept(const kept_secret *place, apr_pool_t *pool)
{
    mc_aws_secret *copy = apr_palloc(pool, sizeof(*copy));
    copy->id = apr_pstrdup(pool, place->id);
    copy->key = apr_pstrdup(pool, place->key);
    copy->token = place->token == NULL ? NULL : apr_pstrdup(pool, place->token);
    return copy;
}

/* Asks, the lock given up meanwhile. Those that are still good remain in use where there are no new ones. */
static mc_error *
renew_kept(kept_secret *place, ask_function *ask, const mc_aws_chain *chain, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_aws_answer answer = { .expires = 0 };
    place->asking = true;
    pthread_mutex_unlock(&kept_lock);
    mc_error *error = ask(&answer, chain, ctx, pool);
    if (error != MC_OK)
        mc_log_error(ctx, MC_LOG_WARN, error);
    pthread_mutex_lock(&kept_lock);
    place->asking = false;
    if (error == MC_OK)
        keep_answer(place, &answer);
    else if (!mc_ctx_abandoned(ctx)) {
        place->failed = mc_clock_now();
        apr_cpystrn(place->reason, error->message, sizeof(place->reason));
    }
    pthread_cond_broadcast(&kept_change);
    return error;
}

/* True once *secret or *error is set; false after a wait: look again. The lock is held. */
static bool
try_kept(const mc_aws_secret **secret, mc_error **error, kept_secret *place, ask_function *ask,
         const mc_aws_chain *chain, mc_ctx *ctx, apr_pool_t *pool)
{
    bool usable = place->id != NULL && (place->expires == 0 || place->expires > (int64_t)apr_time_sec(apr_time_now()));
    bool failed = place->failed != 0 && mc_clock_now() - place->failed < FAILURE_KEPT;
    if (!place->asking && !failed && (!usable || fresh_seconds(place) <= 0)) {
        *error = renew_kept(place, ask, chain, ctx, pool);
        if (*error == MC_OK)
            usable = true;
    } else if (!usable && failed) {
        *error = mc_error_create(pool, MC_ERR_UNAVAILABLE, "%s", place->reason);
    } else if (!usable) {
        apr_time_t until = mc_clock_now() + mc_ctx_remaining(ctx, LONGEST_WAIT);
        if (mc_wait_condition(&kept_change, &kept_lock, until, ctx) == MC_WAIT_READY)
            return false;
        *error = mc_error_create(pool, MC_ERR_TIMEOUT, "there were no credentials in time");
    }
    if (usable) { /* also where there are no new ones yet */
        *secret = copy_kept(place, pool);
        *error = MC_OK;
    }
    return true;
}

static mc_error *
secret_of_source(const mc_aws_secret **secret, const char *source, ask_function *ask, const mc_aws_chain *chain,
                 mc_ctx *ctx, apr_pool_t *pool)
{
    mc_error *error = MC_OK;
    pthread_once(&kept_once, make_kept_condition);
    pthread_mutex_lock(&kept_lock);
    kept_secret *place = find_kept(source);
    if (place == NULL)
        error = mc_error_create(pool, MC_ERR_LIMIT, "there are more than %d sources of credentials", KEPT_MOST);
    while (place != NULL && !try_kept(secret, &error, place, ask, chain, ctx, pool))
        ;
    pthread_mutex_unlock(&kept_lock);
    return error;
}

/* Of those that have to be asked the first that there is: its name in the table, and how. NULL: none. */
static const char *
source_to_ask(ask_function **ask, const mc_aws_chain *chain, apr_pool_t *pool)
{
    if (chain->role != NULL && chain->identity_file != NULL) {
        *ask = mc_aws_ask_identity;
        return apr_pstrcat(pool, "identity ", chain->sts, " ", chain->role, " ", chain->identity_file, NULL);
    }
    if (chain->container != NULL) {
        *ask = mc_aws_ask_container;
        return apr_pstrcat(pool, "container ", chain->container, NULL);
    }
    *ask = mc_aws_ask_machine;
    return chain->metadata == NULL ? NULL : apr_pstrcat(pool, "machine ", chain->metadata, NULL);
}

/* Of the file that the configuration names. */
static mc_error *
secret_of_file(const mc_aws_secret **secret, const mc_aws_chain *chain, apr_pool_t *pool)
{
    const char *text;
    mc_error *error = mc_aws_text_read(&text, chain->credentials_file, pool);
    if (error == MC_OK && text == NULL) /* opening it says why */
        error = mc_rest_file_text(&text, chain->credentials_file, MC_AWS_TEXT_BYTES, pool);
    if (error != MC_OK)
        return mc_error_wrap(pool, error, MC_ERR_CONFIG, "cache \"%s\": its file of credentials cannot be read",
                             chain->name);
    mc_aws_secret *read = apr_palloc(pool, sizeof(*read));
    mc_aws_parse_file(read, text, chain->profile, pool);
    *secret = read;
    return read->id != NULL
               ? MC_OK
               : mc_error_create(pool, MC_ERR_CONFIG, "cache \"%s\": its file of credentials has none", chain->name);
}

static mc_error *
no_credentials(mc_error *cause, const mc_aws_chain *chain, apr_pool_t *pool)
{
    return mc_error_wrap(pool, cause, cause->kind, "cache \"%s\": there are no credentials", chain->name);
}

/* *secret stays NULL where the profile has no credentials, or nobody has named one and there is no "default". */
static mc_error *
secret_of_profile(const mc_aws_secret **secret, const mc_aws_chain *chain, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_aws_profile *profile = apr_palloc(pool, sizeof(*profile));
    mc_error *error = mc_aws_profile_read(profile, chain->profile, chain->config_file, chain->shared_file, pool);
    if (error != MC_OK)
        return mc_error_wrap(pool, error, MC_ERR_CONFIG, "cache \"%s\": its file of credentials cannot be read",
                             chain->name);
    if (profile->role != NULL) {
        const char *source = apr_pstrcat(pool, "profile ", chain->sts, " ", profile->role, " ", chain->profile, " ",
                                         chain->config_file == NULL ? "" : chain->config_file, " ",
                                         chain->shared_file == NULL ? "" : chain->shared_file, NULL);
        error = secret_of_source(secret, source, mc_aws_ask_profile, chain, ctx, pool);
    } else if (profile->secret.id != NULL)
        *secret = &profile->secret;
    else if ((chain->profile_named && !profile->found) || profile->unsupported != NULL)
        error = mc_aws_refuse_profile(profile, chain->profile, pool);
    return error == MC_OK ? MC_OK : no_credentials(error, chain, pool);
}

mc_error *
mc_aws_credentials(const mc_aws_secret **secret, const mc_aws_chain *chain, mc_ctx *ctx, apr_pool_t *pool)
{
    ask_function *ask;
    *secret = chain->fixed.id == NULL ? NULL : &chain->fixed;
    if (*secret != NULL)
        return MC_OK;
    if (chain->credentials_file != NULL)
        return secret_of_file(secret, chain, pool);
    const char *source = source_to_ask(&ask, chain, pool);
    if (ask != mc_aws_ask_identity)
        MC_TRY(secret_of_profile(secret, chain, ctx, pool));
    if (*secret != NULL)
        return MC_OK;
    if (source == NULL)
        return mc_error_create(
            pool, MC_ERR_CONFIG,
            "cache \"%s\" has no credentials: neither in the configuration, nor in the environment, a "
            "file, a container or the machine",
            chain->name);
    mc_error *error = secret_of_source(secret, source, ask, chain, ctx, pool);
    return error == MC_OK ? MC_OK : no_credentials(error, chain, pool);
}

bool
mc_aws_credentials_drop(const mc_aws_chain *chain, const mc_aws_secret *used)
{
    if (used == &chain->fixed)
        return false;
    pthread_mutex_lock(&kept_lock);
    for (int i = 0; i < KEPT_MOST; i++)
        if (kept[i].id != NULL && strcmp(kept[i].id, used->id) == 0 && strcmp(kept[i].key, used->key) == 0)
            forget_kept(&kept[i]);
    pthread_mutex_unlock(&kept_lock);
    mc_aws_texts_forget();
    return true;
}
