/* Regular expressions of map files in the words of PropertyIsLike: texts, anchors, any character, any text, and
 * alternatives of these. See mapfile_parts.h. */
#include <apr_strings.h>
#include <ctype.h>
#include <string.h>

#include "adopt/mapfile_parts.h"
#include "text/text.h"

enum { ALTERNATIVES_MAX = 200 };

/* One alternative, `open` ends of which may be followed by any text. NULL: it has no such form. `*any`: the empty text
 * fits, too. */
static const char *
like_of(const char *from, const char *to, bool open_begin, bool open_end, bool *any, apr_pool_t *pool)
{
    char *like = apr_palloc(pool, 2 * (apr_size_t)(to - from) + 3), *at = like;
    if (from < to && *from == '^') {
        open_begin = false;
        from++;
    }
    if (from < to && to[-1] == '$' && (to - 1 == from || to[-2] != '\\')) {
        open_end = false;
        to--;
    }
    if (open_begin)
        *at++ = '*';
    *any = true;
    for (; from < to; from++) {
        bool many = false;
        if (*from == '.') {
            bool more = from + 1 < to && from[1] == '+';
            many = from + 1 < to && from[1] == '*';
            if (!many)
                *at++ = '?';
            if (many || more) {
                *at++ = '*';
                from++;
            }
        } else if (*from == '\\') {
            if (++from == to || isalnum((unsigned char)*from))
                return NULL;
            *at++ = '\\';
            *at++ = *from;
        } else if (strchr("^$[](){}*+?|", *from) != NULL) {
            return NULL;
        } else {
            *at++ = *from;
        }
        *any = *any && many;
    }
    if (open_end)
        *at++ = '*';
    *at = '\0';
    return like;
}

/* The end of an alternative: the next | that no backslash is before. */
static const char *
alternative_end(const char *from, const char *to)
{
    while (from < to && *from != '|')
        from += *from == '\\' && from + 1 < to ? 2 : 1;
    return from;
}

const char *
mc_mapfile_pattern(const char *operand, const char *safe, const char *pattern, bool any_case, apr_pool_t *pool)
{
    apr_array_header_t *out = apr_array_make(pool, 8, sizeof(const char *));
    const char *from = pattern, *to = pattern + strlen(pattern);
    bool open_begin = true, open_end = true;
    int count = 0;
    size_t size = strlen(pattern);
    /* ^(a|b)$ */
    size_t head = *pattern == '^', tail = size > 1 && pattern[size - 1] == '$' && pattern[size - 2] != '\\';
    if (size > head + tail + 1 && pattern[head] == '(' && to[-1 - (long)tail] == ')' &&
        memchr(pattern + head + 1, '(', size - head - tail - 2) == NULL) {
        open_begin = head == 0;
        open_end = tail == 0;
        from += head + 1;
        to -= tail + 1;
    }
    for (const char *end = NULL; end != to; from = end + 1) {
        bool any;
        end = alternative_end(from, to);
        const char *like = like_of(from, end, open_begin, open_end, &any, pool);
        if (like == NULL || ++count > ALTERNATIVES_MAX)
            return NULL;
        mc_mapfile_put(out,
                       "<ogc:PropertyIsLike wildCard=\"*\" singleChar=\"?\" escape=\"\\\"%s>%s<ogc:Literal>%s"
                       "</ogc:Literal></ogc:PropertyIsLike>",
                       any_case ? " matchCase=\"false\"" : "", any ? safe : operand, mc_xml_escape(like, pool));
    }
    const char *all = apr_array_pstrcat(pool, out, '\0');
    return count == 1 ? all : apr_pstrcat(pool, "<ogc:Or>", all, "</ogc:Or>", NULL);
}
