/* Finds the names of bind parameters in a statement, as PostgreSQL's own scanner would see it. */
#include "dimension/placeholders.h"

#include <apr_strings.h>
#include <stdio.h>
#include <string.h>

/* Bytes of an identifier after its first one; all beyond ASCII are letters to PostgreSQL. */
static bool
is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || (c & 0x80) != 0;
}

/* Behind a text in `quote`s, which are doubled inside; `escapes`: a backslash takes the next byte along. */
static const char *
skip_quoted(const char *at, char quote, bool escapes)
{
    for (at++; *at != '\0'; at++) {
        if (escapes && *at == '\\' && at[1] != '\0')
            at++;
        else if (*at == quote && at[1] == quote)
            at++;
        else if (*at == quote)
            return at + 1;
    }
    return at;
}

static const char *
skip_line(const char *at)
{
    return at + strcspn(at, "\r\n");
}

/* Comments nest. */
static const char *
skip_comment(const char *at)
{
    int depth = 0;
    while (*at != '\0') {
        if (at[0] == '/' && at[1] == '*') {
            depth++;
            at += 2;
        } else if (at[0] == '*' && at[1] == '/') {
            at += 2;
            if (--depth == 0)
                break;
        } else
            at++;
    }
    return at;
}

/* Behind $tag$ ... $tag$; behind the one '$' where it begins none. */
static const char *
skip_dollar_quoted(const char *at)
{
    const char *end = at + 1;
    if (*end < '0' || *end > '9')
        while (is_word(*end))
            end++;
    if (*end != '$')
        return at + 1;
    size_t size = (size_t)(end - at) + 1;
    for (end++; (end = strchr(end, '$')) != NULL; end++)
        if (strncmp(end, at, size) == 0)
            return end + size;
    return at + strlen(at);
}

/* Behind a word and the quoted text that it introduces, as in E'it\'s'. */
static const char *
skip_sql_word(const char *at)
{
    const char *end = at;
    while (is_word(*end) || *end == '$')
        end++;
    if (*end == '\'')
        return skip_quoted(end, '\'', end - at == 1 && (*at == 'e' || *at == 'E'));
    return end;
}

/* The parameter that begins here, or MC_QUERY_PARAMETER_COUNT; `whole`: not one that the name goes on behind. */
static mc_query_parameter
parameter_at(const char *at, bool whole)
{
    for (int i = 0; i < MC_QUERY_PARAMETER_COUNT; i++) {
        size_t size = strlen(mc_query_parameter_names[i]);
        if (strncmp(at, mc_query_parameter_names[i], size) == 0 && !(whole && (is_word(at[size]) || at[size] == '$')))
            return (mc_query_parameter)i;
    }
    return MC_QUERY_PARAMETER_COUNT;
}

/* Behind a colon and what belongs to it. */
static const char *
skip_colon(const char *at)
{
    if (at[1] == ':' || at[1] == '=')
        return at + 2;
    at++;
    while (is_word(*at) || *at == '$')
        at++;
    return at;
}

/* Behind what begins here and cannot hold a parameter. */
static const char *
skip_token(const char *at)
{
    switch (*at) {
    case '\'':
        return skip_quoted(at, '\'', false);
    case '"':
        return skip_quoted(at, '"', false);
    case '$':
        return skip_dollar_quoted(at);
    case ':':
        return skip_colon(at);
    case '-':
        return at[1] == '-' ? skip_line(at) : at + 1;
    case '/':
        return at[1] == '*' ? skip_comment(at) : at + 1;
    default:
        return is_word(*at) ? skip_sql_word(at) : at + 1;
    }
}

/* The number of a parameter in the statement, given at its first occurrence. */
static int
number_placeholder(mc_placeholders *placeholders, mc_query_parameter parameter)
{
    for (int i = 0; i < placeholders->count; i++)
        if (placeholders->parameters[i] == parameter)
            return i + 1;
    placeholders->parameters[placeholders->count++] = parameter;
    return placeholders->count;
}

mc_placeholders
mc_placeholders_number(const char *sql, apr_pool_t *pool)
{
    mc_placeholders found = { .count = 0 };
    char *out = apr_palloc(pool, strlen(sql) + 1); /* " $9" is shorter than any name */
    found.sql = out;
    for (const char *at = sql; *at != '\0';) {
        mc_query_parameter parameter = *at == ':' ? parameter_at(at, true) : MC_QUERY_PARAMETER_COUNT;
        if (parameter != MC_QUERY_PARAMETER_COUNT) {
            if (out > found.sql && (is_word(out[-1]) || out[-1] == '$'))
                *out++ = ' '; /* or the number would become a part of what stands before */
            *out++ = '$';
            *out++ = (char)('0' + number_placeholder(&found, parameter));
            at += strlen(mc_query_parameter_names[parameter]);
            continue;
        }
        const char *end = skip_token(at);
        memcpy(out, at, (size_t)(end - at));
        out += end - at;
        at = end;
    }
    *out = '\0';
    return found;
}

const char *
mc_placeholders_fill(const char *text, const char *const texts[MC_QUERY_PARAMETER_COUNT], apr_pool_t *pool)
{
    apr_array_header_t *parts = apr_array_make(pool, 16, sizeof(const char *));
    for (const char *at = text; *at != '\0';) {
        const char *colon = at + strcspn(at, ":");
        APR_ARRAY_PUSH(parts, const char *) = apr_pstrmemdup(pool, at, (size_t)(colon - at));
        if (*colon == '\0')
            break;
        mc_query_parameter parameter = parameter_at(colon, false);
        bool known = parameter != MC_QUERY_PARAMETER_COUNT;
        const char *filled = known ? texts[parameter] : ":";
        APR_ARRAY_PUSH(parts, const char *) = filled == NULL ? "" : filled;
        at = colon + (known ? strlen(mc_query_parameter_names[parameter]) : 1);
    }
    return apr_array_pstrcat(pool, parts, '\0');
}
