/* See secret.h. */
#include "text/secret.h"

#include <apr_strings.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "text/text.h"

/* Where a password begins and ends. */
typedef struct secret_span {
    const char *begin, *end;
} secret_span;

/* --- scheme://user:password@host ---------------------------------------------------------------------------------- */

/* Whether the text up to `at` ends with a scheme of PostgreSQL. */
static bool
follows_database_scheme(const char *text, const char *at)
{
    static const char *const schemes[] = { "postgresql", "postgres" };
    for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
        size_t size = strlen(schemes[i]);
        if ((size_t)(at - text) >= size && strncasecmp(at - size, schemes[i], size) == 0)
            return true;
    }
    return false;
}

/*
 * The password of what follows "://". libpq: user and password end at an '@' before the first '/'. libcurl: at the
 * last '@' before the first '/', '?' or '#'. A password in which a '/' stands unescaped is none for either of them, and
 * still is a secret: in an `alone` address the last '@' of all ends the password, unless what it follows is a port.
 */
static bool
find_user_password(secret_span *found, const char *user, bool database, bool alone)
{
    const char *ends = database ? "/\r\n" : alone ? "/?#\r\n" : "/?# \t\r\n";
    size_t size = strcspn(user, ends), digits;
    const char *colon = memchr(user, ':', size), *mark = memrchr(user, '@', size);
    if (colon == NULL)
        return false;
    if (mark == NULL && alone && *user != '[') {
        digits = strspn(colon + 1, "0123456789");
        mark = colon + 1 + digits == user + size ? NULL : strrchr(user, '@');
    }
    if (mark == NULL || colon > mark)
        return false;
    *found = (secret_span){ colon + 1, mark };
    return true;
}

static bool
find_url_password(secret_span *found, const char *text, bool alone)
{
    for (const char *at = text; (at = strstr(at, "://")) != NULL; at += 3)
        if (find_user_password(found, at + 3, follows_database_scheme(text, at), alone))
            return true;
    return false;
}

/* --- password=... ------------------------------------------------------------------------------------------------- */

static int
escape_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* Bytes of `text` that say `word`, whose letters may be escaped (%77); 0: it says something else. */
static size_t
match_escaped_word(const char *text, const char *word)
{
    const char *at = text;
    for (; *word != '\0'; word++) {
        int high = *at == '%' ? escape_digit(at[1]) : -1, low = high < 0 ? -1 : escape_digit(at[2]);
        char c = low < 0 ? *at : (char)(high * 16 + low);
        if (c != *word && c != *word - 'a' + 'A')
            return 0;
        at += low < 0 ? 1 : 3;
    }
    return (size_t)(at - text);
}

/* The end of a value of a connection string: the quote, or a blank; '\' takes the next character as it is. */
static const char *
skip_connection_value(const char *value, bool quoted)
{
    const char *end = value;
    while (*end != '\0' && strchr(quoted ? "'" : " \t\r\n&", *end) == NULL)
        end += *end == '\\' && end[1] != '\0' ? 2 : 1;
    return end;
}

/* Whether a key of a query begins before `key`: "?sslpassword", "&password". */
static bool
is_in_query(const char *text, const char *key)
{
    while (key > text && strchr(" \t\r\n'\"=/", key[-1]) == NULL)
        if (*--key == '?' || *key == '&')
            return true;
    return false;
}

static bool
find_named_password(secret_span *found, const char *text, bool alone)
{
    for (const char *at = text; *at != '\0'; at++) {
        size_t size = match_escaped_word(at, "password");
        if (size == 0)
            size = match_escaped_word(at, "passwd");
        if (size == 0)
            continue;
        const char *value = at + size + strspn(at + size, " \t");
        if (*value != '=')
            continue;
        value++;
        if (is_in_query(text, at)) {
            *found = (secret_span){ value, value + strcspn(value, alone ? "&" : "& \t\r\n") };
            return true;
        }
        value += strspn(value, " \t");
        bool quoted = *value == '\'';
        *found = (secret_span){ value + quoted, skip_connection_value(value + quoted, quoted) };
        return true;
    }
    return false;
}

/* --- all of them -------------------------------------------------------------------------------------------------- */

static bool
find_password(secret_span *found, const char *text, bool alone)
{
    secret_span url, named;
    bool in_url = find_url_password(&url, text, alone), is_named = find_named_password(&named, text, alone);
    if (!in_url && !is_named)
        return false;
    *found = !is_named || (in_url && url.begin < named.begin) ? url : named;
    return true;
}

static const char *
hide_all(const char *text, bool alone, apr_pool_t *pool)
{
    const char *hidden = "";
    for (secret_span found; find_password(&found, text, alone); text = found.end)
        hidden = apr_psprintf(pool, "%s%.*s***", hidden, (int)(found.begin - text), text);
    return *hidden == '\0' ? text : apr_pstrcat(pool, hidden, text, NULL);
}

const char *
mc_hide_address_password(const char *address, apr_pool_t *pool)
{
    return hide_all(address, true, pool);
}

void
mc_blank_address_password(char *address)
{
    for (secret_span found; find_password(&found, address, true); address += found.end - address)
        memset(address + (found.begin - address), 'x', (size_t)(found.end - found.begin));
}

const char *
mc_hide_passwords(const char *text, const char *address, apr_pool_t *pool)
{
    const char *hidden = address == NULL ? NULL : mc_hide_address_password(address, pool);
    if (hidden != address)
        text = mc_replace_all(text, address, hidden, pool);
    return hide_all(text, false, pool);
}

/* --- keys of an API ----------------------------------------------------------------------------------------------- */

static bool
may_name_key(const char *name, size_t size)
{
    static const char *const words[] = { "key", "token", "secret", "sig", "pass", "auth" };
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        for (size_t at = 0; at < size; at++) {
            size_t matched = match_escaped_word(name + at, words[i]);
            if (matched > 0 && at + matched <= size)
                return true;
        }
    return false;
}

const char *
mc_hide_query_keys(const char *url, apr_pool_t *pool)
{
    const char *rest = url, *hidden = "";
    const char *at = strchr(url, '?');
    while (at != NULL && *at != '\0' && *at != '#') {
        const char *name = at + 1;
        size_t size = strcspn(name, "=&#");
        const char *value = name + size + (name[size] == '=');
        const char *end = value + strcspn(value, "&#");
        if (end > value && may_name_key(name, size)) {
            hidden = apr_psprintf(pool, "%s%.*s***", hidden, (int)(value - rest), rest);
            rest = end;
        }
        at = end;
    }
    return *hidden == '\0' ? url : apr_pstrcat(pool, hidden, rest, NULL);
}
