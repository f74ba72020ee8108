/* See account.h. */
#include "base/account.h"

#include <apr_strings.h>
#include <string.h>

enum { TEXT_MAX = 2048, URL_MAX = 1024 };

/* The path of the alias: behind scheme and host. */
static const char *
path_of_base(const char *base)
{
    const char *host = base == NULL ? NULL : strstr(base, "://");
    const char *path = host == NULL ? NULL : strchr(host + 3, '/');
    return path == NULL ? "" : path;
}

static const char *
account_url(const mc_account *account, apr_pool_t *pool)
{
    const char *path = account->path == NULL ? "" : account->path;
    bool asks = account->query != NULL && *account->query != '\0';
    const char *url =
        apr_pstrcat(pool, path_of_base(account->base), path, asks ? "?" : "", asks ? account->query : "", NULL);
    return strlen(url) <= URL_MAX ? url : apr_pstrcat(pool, apr_pstrmemdup(pool, url, URL_MAX), "...", NULL);
}

void
mc_account_visit(const mc_account *account, mc_account_field *field, void *baton, apr_pool_t *pool)
{
    char trace[MC_TRACE_ID_SIZE];
    if (account->method != NULL)
        field(baton, "method", account->method);
    if (account->path != NULL)
        field(baton, "url", account_url(account, pool));
    if (account->service != NULL)
        field(baton, "service", account->service);
    if (account->tileset != NULL)
        field(baton, "tileset", account->tileset);
    if (account->grid != NULL)
        field(baton, "tile", apr_psprintf(pool, "%s/%d/%d/%d", account->grid, account->z, account->x, account->y));
    if (account->width > 0)
        field(baton, "size", apr_psprintf(pool, "%dx%d", account->width, account->height));
    if (account->status != 0)
        field(baton, "status", apr_itoa(pool, account->status));
    mc_trace_id_format(trace, &account->context);
    if (*trace != '\0')
        field(baton, "trace", apr_pstrdup(pool, trace));
}

static bool
needs_quotes(const char *value)
{
    if (*value == '\0')
        return true;
    for (const unsigned char *c = (const unsigned char *)value; *c != '\0'; c++)
        if (*c <= ' ' || *c == '"' || *c == '=' || *c == '\\' || *c == 0x7f)
            return true;
    return false;
}

/* One byte of a value in quotes; `to` has room for four. */
static size_t
put_quoted(char *to, unsigned char c)
{
    static const char digits[] = "0123456789abcdef";
    if (c == '"' || c == '\\') {
        to[0] = '\\';
        to[1] = (char)c;
        return 2;
    }
    if (c >= ' ' && c != 0x7f) {
        to[0] = (char)c;
        return 1;
    }
    to[0] = '\\';
    to[1] = 'x';
    to[2] = digits[c >> 4];
    to[3] = digits[c & 15];
    return 4;
}

size_t
mc_logfmt_append(char *text, size_t used, size_t size, const char *key, const char *value)
{
    const bool quoted = needs_quotes(value);
    const size_t name = strlen(key);
    if (used + name + 16 > size)
        return used;
    if (used > 0)
        text[used++] = ' ';
    memcpy(text + used, key, name);
    used += name;
    text[used++] = '=';
    if (quoted)
        text[used++] = '"';
    for (const unsigned char *c = (const unsigned char *)value; *c != '\0' && used + 6 < size; c++)
        used += put_quoted(text + used, *c);
    if (quoted)
        text[used++] = '"';
    text[used] = '\0';
    return used;
}

typedef struct account_text {
    char text[TEXT_MAX];
    size_t used;
} account_text;

static void
append_account_field(void *baton, const char *key, const char *value)
{
    account_text *out = baton;
    out->used = mc_logfmt_append(out->text, out->used, sizeof(out->text), key, value);
}

const char *
mc_account_text(const mc_account *account, apr_pool_t *pool)
{
    account_text out = { .used = 0 };
    out.text[0] = '\0';
    mc_account_visit(account, append_account_field, &out, pool);
    return apr_pstrmemdup(pool, out.text, out.used);
}
