/* The <http> element: key table, header substitution, URLs with parameters. */
#include "source/http_block.h"

#include <apr_base64.h>
#include <apr_strings.h>
#include <string.h>

#include "text/text.h"

typedef struct auth_block {
    const char *scheme;
    const char *user;
    const char *password;
} auth_block;

static const mc_key auth_keys[] = {
    MC_KEY_TEXT("@scheme", offsetof(auth_block, scheme), "How to authenticate; basic is the only one.",
                .flags = MC_KEY_REQUIRED),
    MC_KEY_TEXT("user", offsetof(auth_block, user), "User name; may be empty."),
    MC_KEY_TEXT("pass", offsetof(auth_block, password), "Password; may be empty."),
    MC_KEY_END,
};

const mc_key mc_http_block_keys[] = {
    MC_KEY_URL("url", offsetof(mc_http_block, url), "Address of the origin; parameters are appended behind ? or &.",
               .flags = MC_KEY_REQUIRED | MC_KEY_MAY_BE_EMPTY),
    MC_KEY_INT("connection_timeout", offsetof(mc_http_block, connection_timeout), "Seconds to wait for a connection.",
               .min = 1, .max = 86400, .fallback = "30"),
    MC_KEY_INT("timeout", offsetof(mc_http_block, timeout), "Seconds to wait for the whole answer.", .min = 1,
               .max = 86400, .fallback = "600"),
    MC_KEY_BOOL("circuit_breaker", offsetof(mc_http_block, circuit_breaker),
                "Of sources, true: an origin that has failed three times in a row (no connection, status 429, 502, 503 "
                "or 504), or gave no answer in time, is left alone for a quarter of a second, then for up to 8 s; "
                "requests that need it end with 503 at once. false: it is always asked.",
                .flags = MC_KEY_OURS, .fallback = "false"),
    MC_KEY_TREE("headers", offsetof(mc_http_block, header_tree), NULL,
                "Headers to send, one element each: <Name>value</Name>. {Name} in a value stands for that header of "
                "the client's "
                "request, where it has one."),
    MC_KEY_TREE("auth", offsetof(mc_http_block, auth_tree), auth_keys,
                "Authentication at the origin: scheme=\"basic\" with <user> and <pass>."),
    MC_KEY_END,
};

/* Blanks may be part of a name or password; control characters may not (RFC 7617, 2), nor what they are indented by. */
static const char *
credential_of(const mc_node *node, apr_pool_t *pool)
{
    const char *text = node->text == NULL ? "" : node->text;
    return strpbrk(text, "\t\r\n") == NULL ? text : mc_unwrap_text(text, pool);
}

static bool
read_auth(mc_http_block *block, mc_build *build)
{
    auth_block auth = { 0 };
    if (!mc_config_read(&auth, block->auth_tree, auth_keys, build->diagnostics))
        return false;
    if (strcmp(auth.scheme, "basic") != 0) {
        mc_complain(build->diagnostics, MC_REFUSED, block->auth_tree,
                    "the authentication scheme \"%s\" is not known: the only one is \"basic\"", auth.scheme);
        return false;
    }
    /* Elements that are there but empty are right; ones that are not there are not. */
    const mc_node *user = mc_node_child(block->auth_tree, "user");
    const mc_node *password = mc_node_child(block->auth_tree, "pass");
    if (user == NULL || password == NULL) {
        mc_complain(build->diagnostics, MC_REFUSED, block->auth_tree, "<auth> needs both <user> and <pass>");
        return false;
    }
    const char *secret =
        apr_pstrcat(build->pool, credential_of(user, build->pool), ":", credential_of(password, build->pool), NULL);
    char *coded = apr_palloc(build->pool, (apr_size_t)apr_base64_encode_len((int)strlen(secret)));
    apr_base64_encode(coded, secret, (int)strlen(secret));
    apr_table_setn(block->headers, "Authorization", apr_pstrcat(build->pool, "Basic ", coded, NULL));
    return true;
}

mc_http_block *
mc_http_block_from_config(const mc_node *http, mc_build *build)
{
    mc_http_block *block = apr_pcalloc(build->pool, sizeof(*block));
    if (!mc_config_read(block, http, mc_http_block_keys, build->diagnostics))
        return NULL;
    block->headers = apr_table_make(build->pool, 4);
    if (block->header_tree != NULL)
        for (const mc_node *header = block->header_tree->children; header != NULL; header = header->next)
            apr_table_setn(block->headers, header->name,
                           header->text == NULL ? "" : mc_unwrap_text(header->text, build->pool));
    if (block->auth_tree != NULL && !read_auth(block, build))
        return NULL;
    return block;
}

/* Each {Name} that the client sent a header for is replaced by it, in one pass: what a client sends is never looked
 * into for further braces. */
static const char *
substitute_headers(const char *value, const apr_table_t *incoming, apr_pool_t *pool)
{
    if (incoming == NULL || strchr(value, '{') == NULL)
        return value;
    const char *result = "";
    for (;;) {
        const char *open = strchr(value, '{');
        const char *close = open == NULL ? NULL : strchr(open, '}');
        if (close == NULL)
            return apr_pstrcat(pool, result, value, NULL);
        const char *name = apr_pstrmemdup(pool, open + 1, (size_t)(close - open) - 1);
        const char *sent = apr_table_get(incoming, name);
        size_t kept = sent == NULL ? 1 : (size_t)(close - open) + 1; /* unknown: the brace alone is passed over */
        result = apr_pstrcat(pool, result, apr_pstrmemdup(pool, value, (size_t)(open - value)),
                             sent == NULL ? "{" : mc_header_value(sent, pool), NULL);
        value = open + kept;
    }
}

mc_http_call
mc_http_block_call(const mc_http_block *block, const char *url, const mc_ctx *ctx, apr_pool_t *pool)
{
    apr_table_t *headers = apr_table_make(pool, 8);
    const apr_array_header_t *items = apr_table_elts(block->headers);
    for (int i = 0; i < items->nelts; i++) {
        const apr_table_entry_t *item = &APR_ARRAY_IDX(items, i, apr_table_entry_t);
        /* A password may hold braces; it is base64 by now and cannot. */
        apr_table_setn(headers, item->key, substitute_headers(item->val, ctx->headers, pool));
    }
    return (mc_http_call){
        .method = "GET",
        .url = url,
        .headers = headers,
        .connect_timeout = block->connection_timeout,
        .timeout = block->timeout,
    };
}

const char *
mc_http_url(const char *url, const apr_table_t *params, apr_pool_t *pool)
{
    const apr_array_header_t *items = apr_table_elts(params);
    apr_array_header_t *parts = apr_array_make(pool, items->nelts * 4 + 1, sizeof(const char *));
    APR_ARRAY_PUSH(parts, const char *) = url;
    size_t length = strlen(url);
    const char *query = strchr(url, '?');
    bool separated = length > 0 && query != NULL && (url[length - 1] == '?' || url[length - 1] == '&');
    const char *separator = query == NULL ? "?" : separated ? "" : "&";
    for (int i = 0; i < items->nelts; i++) {
        const apr_table_entry_t *item = &APR_ARRAY_IDX(items, i, apr_table_entry_t);
        APR_ARRAY_PUSH(parts, const char *) = separator;
        APR_ARRAY_PUSH(parts, const char *) = item->key;
        APR_ARRAY_PUSH(parts, const char *) = "=";
        APR_ARRAY_PUSH(parts, const char *) = mc_url_encode(item->val, NULL, false, true, pool);
        separator = "&";
    }
    return apr_array_pstrcat(pool, parts, '\0');
}
