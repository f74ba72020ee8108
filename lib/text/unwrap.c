/* Values that become one line: of a header, or an address. Configuration files are indented, and long values wrapped.
 */
#include <string.h>

#include "text/text.h"

static bool
is_value_control(char c)
{
    return c != '\0' && ((unsigned char)c < ' ' || c == 0x7f);
}

static bool
is_value_blank(char c)
{
    return c == ' ' || is_value_control(c);
}

/* Without the blanks at its ends; in it a run of blanks that holds a line break or another control character becomes
 * `wrapped`, each other blank `blank`. */
static const char *
unwrap_blanks(const char *text, const char *wrapped, const char *blank, apr_pool_t *pool)
{
    while (is_value_blank(*text))
        text++;
    size_t size = strlen(text);
    while (size > 0 && is_value_blank(text[size - 1]))
        size--;
    char *line = apr_palloc(pool, size * strlen(blank) + 1);
    char *to = line;
    for (size_t i = 0; i < size;) {
        if (!is_value_blank(text[i])) {
            *to++ = text[i++];
            continue;
        }
        size_t end = i;
        bool breaks = false;
        for (; is_value_blank(text[end]); end++)
            breaks |= is_value_control(text[end]);
        for (size_t times = breaks ? 1 : end - i; times > 0; times--)
            for (const char *from = breaks ? wrapped : blank; *from != '\0'; from++)
                *to++ = *from;
        i = end;
    }
    *to = '\0';
    return line;
}

const char *
mc_unwrap_text(const char *text, apr_pool_t *pool)
{
    return unwrap_blanks(text, " ", " ", pool);
}

const char *
mc_unwrap_url(const char *text, apr_pool_t *pool)
{
    return unwrap_blanks(text, "", "%20", pool);
}

bool
mc_is_token(const char *text, size_t size)
{
    static const char marks[] = "!#$%&'*+-.^_`|~";
    for (size_t i = 0; i < size; i++) {
        char c = text[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!letter && (c == '\0' || strchr(marks, c) == NULL))
            return false;
    }
    return size > 0;
}
