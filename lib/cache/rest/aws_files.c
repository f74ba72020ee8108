/* Files of credentials. */
#include <apr_strings.h>
#include <string.h>

#include "cache/rest/aws_credentials.h"
#include "text/text.h"

enum { VALUE_BYTES = 4096 };

/* The next line without blanks at its ends; *at moves on. NULL: there is none. */
static const char *
next_credentials_line(const char **at, apr_pool_t *pool)
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

static void
set_credentials_part(const char **part, const char *value)
{
    if (*value != '\0' && strlen(value) <= VALUE_BYTES)
        *part = value;
}

/* A line "name = value" of the profile's section. */
static void
take_profile_line(mc_aws_secret *secret, const char *line, apr_pool_t *pool)
{
    const char *equals = strchr(line, '=');
    if (equals == NULL)
        return;
    const char *name = mc_unwrap_text(apr_pstrmemdup(pool, line, (size_t)(equals - line)), pool);
    const char *value = mc_unwrap_text(equals + 1, pool);
    if (strcmp(name, "aws_access_key_id") == 0)
        set_credentials_part(&secret->id, value);
    else if (strcmp(name, "aws_secret_access_key") == 0)
        set_credentials_part(&secret->key, value);
    else if (strcmp(name, "aws_session_token") == 0 || strcmp(name, "aws_security_token") == 0)
        set_credentials_part(&secret->token, value);
}

/* Whether a line begins the section of the profile; "[profile NAME]" as in the file beside. */
static bool
is_section_of(const char *line, const char *profile)
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
parse_profiles(mc_aws_secret *secret, const char *text, const char *profile, apr_pool_t *pool)
{
    bool inside = false;
    for (const char *line; (line = next_credentials_line(&text, pool)) != NULL;) {
        if (*line == '[')
            inside = is_section_of(line, profile);
        else if (inside && *line != '#' && *line != ';')
            take_profile_line(secret, line, pool);
    }
}

static void
parse_plain_lines(mc_aws_secret *secret, const char *text, apr_pool_t *pool)
{
    const char **const parts[] = { &secret->id, &secret->key, &secret->token };
    for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
        const char *line = next_credentials_line(&text, pool);
        if (line == NULL)
            return;
        set_credentials_part(parts[i], line);
    }
}

void
mc_aws_parse_file(mc_aws_secret *secret, const char *text, const char *profile, apr_pool_t *pool)
{
    *secret = (mc_aws_secret){ NULL, NULL, NULL };
    const char *begin = text + strspn(text, " \t\r\n");
    if (*begin == '[' || *begin == '#' || *begin == ';')
        parse_profiles(secret, begin, profile, pool);
    else
        parse_plain_lines(secret, text, pool);
    if (secret->id == NULL || secret->key == NULL)
        *secret = (mc_aws_secret){ NULL, NULL, NULL };
}
