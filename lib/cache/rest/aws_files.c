/* Files of credentials: see aws_files.h. */
#include "cache/rest/aws_files.h"

#include <apr_strings.h>
#include <string.h>

#include "cache/rest/aws_profile.h"
#include "text/text.h"

enum { VALUE_BYTES = 4096 };

static void
set_credentials_part(const char **part, const char *value)
{
    if (*value != '\0' && strlen(value) <= VALUE_BYTES)
        *part = value;
}

static void
parse_plain_lines(mc_aws_secret *secret, const char *text, apr_pool_t *pool)
{
    const char **const parts[] = { &secret->id, &secret->key, &secret->token };
    for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
        const char *line = mc_aws_next_line(&text, pool);
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
    if (*begin == '[' || *begin == '#' || *begin == ';') {
        mc_aws_profile sections = { .found = false };
        mc_aws_profile_parse(&sections, begin, profile, pool);
        *secret = sections.secret;
    } else
        parse_plain_lines(secret, text, pool);
    if (secret->id == NULL || secret->key == NULL)
        *secret = (mc_aws_secret){ NULL, NULL, NULL };
}
