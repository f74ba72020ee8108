/* Sections of AWS's files: see aws_profile.h. */
#include "cache/rest/aws_profile.h"

#include <apr_strings.h>
#include <string.h>

#include "cache/rest/aws_text.h"
#include "text/text.h"

enum { VALUE_BYTES = 4096 };

#define FIELD(field) offsetof(mc_aws_profile, field)
static const struct {
    const char *name;
    size_t field;
} profile_fields[] = {
    { "aws_access_key_id", FIELD(secret.id) },
    { "aws_secret_access_key", FIELD(secret.key) },
    { "aws_session_token", FIELD(secret.token) },
    { "aws_security_token", FIELD(secret.token) },
    { "region", FIELD(region) },
    { "endpoint_url", FIELD(endpoint) },
    { "role_arn", FIELD(role) },
    { "role_session_name", FIELD(role_session) },
    { "external_id", FIELD(external_id) },
    { "source_profile", FIELD(source_profile) },
    { "credential_source", FIELD(credential_source) },
    { "web_identity_token_file", FIELD(identity_file) },
};

/* They start programs, open browsers or ask people. */
static const char *const unsupported_names[] = { "credential_process", "sso_session", "sso_start_url",
                                                 "sso_account_id",     "mfa_serial",  "login_session" };

const char *
mc_aws_next_line(const char **at, apr_pool_t *pool)
{
    if (**at == '\0')
        return NULL;
    size_t size = strcspn(*at, "\n");
    const char *line = mc_unwrap_text(apr_pstrmemdup(pool, *at, size), pool);
    *at += size;
    if (**at == '\n')
        ++*at;
    return line;
}

/* Whether the line begins the section of the profile: "[NAME]", or "[profile NAME]" as ~/.aws/config has it. */
static bool
is_profile_section(const char *line, const char *profile)
{
    size_t size = strlen(line);
    const char *name = line + 1;
    if (size < 2 || line[size - 1] != ']')
        return false;
    name += strspn(name, " \t");
    if (strncmp(name, "profile ", 8) == 0)
        name += 8 + strspn(name + 8, " \t");
    size_t length = strlen(profile);
    return strncmp(name, profile, length) == 0 && name[length + strspn(name + length, " \t")] == ']';
}

static void
take_profile_value(mc_aws_profile *profile, const char *name, const char *value)
{
    for (size_t i = 0; i < sizeof(profile_fields) / sizeof(*profile_fields); i++)
        if (strcmp(name, profile_fields[i].name) == 0)
            *(const char **)(void *)((char *)profile + profile_fields[i].field) = value;
    for (size_t i = 0; i < sizeof(unsupported_names) / sizeof(*unsupported_names); i++)
        if (strcmp(name, unsupported_names[i]) == 0)
            profile->unsupported = unsupported_names[i];
}

/* Reads lines of a section. Indented lines below "name =" belong to that name, as those of "s3 =" do. */
static void
parse_profile_section(mc_aws_profile *profile, const char *text, const char *name, apr_pool_t *pool)
{
    bool inside = false, nested = false;
    for (const char *raw = text; *text != '\0'; raw = text) {
        const char *line = mc_aws_next_line(&text, pool);
        if (*line == '[') {
            inside = is_profile_section(line, name);
            profile->found = profile->found || inside;
            nested = false;
        }
        const char *equals = strchr(line, '=');
        const bool indented = *raw == ' ' || *raw == '\t';
        if (!inside || *line == '[' || *line == '#' || *line == ';' || equals == NULL || (nested && indented))
            continue;
        const char *key = mc_unwrap_text(apr_pstrmemdup(pool, line, (size_t)(equals - line)), pool);
        const char *value = mc_unwrap_text(equals + 1, pool);
        nested = *value == '\0';
        if (*value != '\0' && strlen(value) <= VALUE_BYTES)
            take_profile_value(profile, key, value);
    }
}

void
mc_aws_profile_parse(mc_aws_profile *profile, const char *text, const char *name, apr_pool_t *pool)
{
    const mc_aws_secret before = profile->secret;
    profile->secret = (mc_aws_secret){ NULL, NULL, NULL };
    parse_profile_section(profile, text, name, pool);
    if (profile->secret.id == NULL || profile->secret.key == NULL) /* half of a key is none */
        profile->secret = before;
}

static mc_error *
read_profile_file(mc_aws_profile *profile, const char *name, const char *path, apr_pool_t *pool)
{
    const char *text;
    if (path == NULL)
        return MC_OK;
    MC_TRY(mc_aws_text_read(&text, path, pool));
    if (text != NULL)
        mc_aws_profile_parse(profile, text, name, pool);
    return MC_OK;
}

mc_error *
mc_aws_profile_read(mc_aws_profile *profile, const char *name, const char *config_file, const char *credentials_file,
                    apr_pool_t *pool)
{
    *profile = (mc_aws_profile){ .found = false };
    MC_TRY(read_profile_file(profile, name, config_file, pool));
    return read_profile_file(profile, name, credentials_file, pool);
}
