/* Sources of credentials that have to be asked: the token service, the container, the machine. */
#include <apr_strings.h>
#include <string.h>
#include <strings.h>

#include "cache/rest/aws_credentials.h"
#include "cache/rest/rest_base.h"
#include "text/json.h"
#include "text/text.h"
#include "text/time.h"

enum { FILE_BYTES = 64 << 10, ANSWER_BYTES = 256 << 10, NAME_BYTES = 128 };

/* Seconds: those sources are near. */
#define NEAR_TIMEOUT 5
#define STS_TIMEOUT 10

/* Sends a request that needs no signature. MC_ERR_UNAVAILABLE where the answer is no 200; `source` names who is asked.
 */
static mc_error *
ask_source(const char **text, const char *source, mc_http_call *call, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_http_reply reply;
    call->max_response = ANSWER_BYTES;
    call->no_redirects = call->store = true;
    call->connect_timeout = call->timeout < 2 ? call->timeout : 2;
    mc_error *error = mc_http_send(&reply, ctx->process->http, call, ctx, pool);
    if (error != MC_OK)
        return mc_error_wrap(pool, error, MC_ERR_UNAVAILABLE, "%s gives no credentials", source);
    const char *body = (const char *)reply.body->data;
    if (reply.status != 200) {
        mc_error *cause = mc_error_create(pool, MC_ERR_UPSTREAM, "status %d %s %s", reply.status,
                                          mc_rest_xml_text(body, reply.body->size, "Code", pool),
                                          mc_rest_xml_text(body, reply.body->size, "Message", pool));
        return mc_error_wrap(pool, cause, MC_ERR_UNAVAILABLE, "%s gives no credentials", source);
    }
    *text = apr_pstrmemdup(pool, body, reply.body->size);
    return MC_OK;
}

/* Credentials without their parts, or with an end that is none, are not used. */
static mc_error *
check_aws_answer(mc_aws_answer *answer, const char *expiration, const char *source, apr_pool_t *pool)
{
    mc_time_span span;
    const char *wrong = NULL;
    if (answer->secret.id == NULL || answer->secret.key == NULL || *answer->secret.id == '\0' ||
        *answer->secret.key == '\0')
        wrong = "they are not complete";
    else if (expiration != NULL && *expiration != '\0')
        wrong = mc_time_parse(&span, expiration, strlen(expiration), apr_time_now());
    if (wrong != NULL)
        return mc_error_create(pool, MC_ERR_UNAVAILABLE, "the credentials of %s cannot be used: %s", source, wrong);
    if (answer->secret.token != NULL && *answer->secret.token == '\0')
        answer->secret.token = NULL;
    answer->expires = expiration == NULL || *expiration == '\0' ? 0 : span.start_us / APR_USEC_PER_SEC;
    return MC_OK;
}

const char *
mc_aws_form_value(const char *text, apr_pool_t *pool)
{
    return mc_url_encode(text, NULL, true, false, pool);
}

mc_error *
mc_aws_ask_sts(mc_aws_answer *answer, const char *form, const apr_table_t *headers, const mc_aws_chain *chain,
               mc_ctx *ctx, apr_pool_t *pool)
{
    const char *text;
    mc_http_call call = {
        .method = "POST",
        .url = apr_pstrcat(pool, chain->sts, "/", NULL),
        .headers = headers,
        .body = form,
        .body_size = strlen(form),
        .timeout = STS_TIMEOUT,
    };
    MC_TRY(ask_source(&text, "the token service", &call, ctx, pool));
    size_t size = strlen(text);
    answer->secret = (mc_aws_secret){
        mc_rest_xml_value(text, size, "AccessKeyId", pool),
        mc_rest_xml_value(text, size, "SecretAccessKey", pool),
        mc_rest_xml_value(text, size, "SessionToken", pool),
    };
    return check_aws_answer(answer, mc_rest_xml_value(text, size, "Expiration", pool), "the token service", pool);
}

mc_error *
mc_aws_ask_identity(mc_aws_answer *answer, const mc_aws_chain *chain, mc_ctx *ctx, apr_pool_t *pool)
{
    const char *token;
    MC_TRY(mc_rest_file_text(&token, chain->identity_file, FILE_BYTES, pool));
    const char *form = apr_pstrcat(
        pool, "Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn=", mc_aws_form_value(chain->role, pool),
        "&RoleSessionName=", mc_aws_form_value(chain->role_session, pool),
        "&WebIdentityToken=", mc_aws_form_value(mc_unwrap_text(token, pool), pool), NULL);
    apr_table_t *headers = apr_table_make(pool, 2);
    apr_table_setn(headers, "Content-Type", "application/x-www-form-urlencoded");
    return mc_aws_ask_sts(answer, form, headers, chain, ctx, pool);
}

/* Fields of the JSON that containers and machines answer with. */
typedef struct source_fields {
    mc_aws_answer *answer;
    const char *expiration, *code;
    apr_pool_t *pool;
} source_fields;

static mc_error *
take_source_field(void *baton, const char *name, const char *text)
{
    source_fields *fields = baton;
    const char *value = apr_pstrdup(fields->pool, text);
    if (strcmp(name, "AccessKeyId") == 0)
        fields->answer->secret.id = value;
    else if (strcmp(name, "SecretAccessKey") == 0)
        fields->answer->secret.key = value;
    else if (strcmp(name, "Token") == 0)
        fields->answer->secret.token = value;
    else if (strcmp(name, "Expiration") == 0)
        fields->expiration = value;
    else if (strcmp(name, "Code") == 0)
        fields->code = value;
    return MC_OK;
}

static mc_error *
read_source_fields(mc_aws_answer *answer, const char *text, const char *source, apr_pool_t *pool)
{
    source_fields fields = { .answer = answer, .pool = pool };
    mc_error *error = mc_json_fields(text, strlen(text), take_source_field, &fields, pool);
    if (error != MC_OK)
        return mc_error_wrap(pool, error, MC_ERR_UNAVAILABLE, "the credentials of %s cannot be read", source);
    if (fields.code != NULL && strcmp(fields.code, "Success") != 0)
        return mc_error_create(pool, MC_ERR_UNAVAILABLE, "%s gives no credentials: %s", source,
                               mc_message_text(fields.code, NAME_BYTES, pool));
    return check_aws_answer(answer, fields.expiration, source, pool);
}

/* As AWS's own programs have it: by TLS anywhere, else this machine, or what containers are told by. Who answers there
 * gets the token, and says who we are. */
static bool
is_container_address(const char *url)
{
    static const char *const near[] = { "127.0.0.1",     "localhost",      "[::1]",
                                        "169.254.170.2", "169.254.170.23", "[fd00:ec2::23]" };
    if (strncasecmp(url, "https://", 8) == 0)
        return true;
    const char *host = url + 7;
    if (strncasecmp(url, "http://", 7) != 0 || memchr(host, '@', strcspn(host, "/?#")) != NULL)
        return false;
    for (size_t i = 0; i < sizeof(near) / sizeof(*near); i++)
        if (strncasecmp(host, near[i], strlen(near[i])) == 0 && strchr(":/?#", host[strlen(near[i])]) != NULL)
            return true;
    return false;
}

mc_error *
mc_aws_ask_container(mc_aws_answer *answer, const mc_aws_chain *chain, mc_ctx *ctx, apr_pool_t *pool)
{
    const char *text, *token = chain->container_token;
    apr_table_t *headers = apr_table_make(pool, 2);
    if (!is_container_address(chain->container))
        return mc_error_create(pool, MC_ERR_CONFIG,
                               "the environment has credentials of a container, whose address leads to another machine"
                               " without TLS");
    if (chain->container_token_file != NULL)
        MC_TRY(mc_rest_file_text(&token, chain->container_token_file, FILE_BYTES, pool));
    if (token != NULL)
        apr_table_setn(headers, "Authorization", mc_unwrap_text(token, pool));
    mc_http_call call = {
        .method = "GET", .url = chain->container, .headers = headers, .timeout = NEAR_TIMEOUT, .no_proxy = true
    };
    MC_TRY(ask_source(&text, "the container", &call, ctx, pool));
    return read_source_fields(answer, text, "the container", pool);
}

/* The name of a role: what may stand in a path. */
static bool
is_role_name(const char *name)
{
    size_t size = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+=,.@_-");
    return size > 0 && size <= NAME_BYTES && name[size] == '\0' && strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

mc_error *
mc_aws_ask_machine(mc_aws_answer *answer, const mc_aws_chain *chain, mc_ctx *ctx, apr_pool_t *pool)
{
    static const char source[] = "the machine's own service";
    const char *token, *role, *text;
    apr_table_t *headers = apr_table_make(pool, 2);
    apr_table_setn(headers, "X-aws-ec2-metadata-token-ttl-seconds", "300");
    mc_http_call call = {
        .method = "PUT",
        .url = apr_pstrcat(pool, chain->metadata, "/latest/api/token", NULL),
        .headers = headers,
        .timeout = NEAR_TIMEOUT,
        .no_proxy = true,
    };
    MC_TRY(ask_source(&token, source, &call, ctx, pool));
    call.method = "GET";
    call.headers = headers = apr_table_make(pool, 2);
    apr_table_setn(headers, "X-aws-ec2-metadata-token", mc_unwrap_text(token, pool));
    const char *list = apr_pstrcat(pool, chain->metadata, "/latest/meta-data/iam/security-credentials/", NULL);
    call.url = list;
    MC_TRY(ask_source(&role, source, &call, ctx, pool));
    role = mc_unwrap_text(apr_pstrmemdup(pool, role, strcspn(role, "\n")), pool);
    if (!is_role_name(role))
        return mc_error_create(pool, MC_ERR_UNAVAILABLE, "%s names no role", source);
    call.url = apr_pstrcat(pool, list, role, NULL);
    MC_TRY(ask_source(&text, source, &call, ctx, pool));
    return read_source_fields(answer, text, source, pool);
}
