/* Requests that a forwarding rule hands to another server: what it answers goes back as it is
 * (docs/reference/services.md 4.5). */
#include <apr_strings.h>
#include <string.h>
#include <strings.h>

#include "http/http.h"
#include "mapcache/trace.h"
#include "server/server_private.h"
#include "source/http_block.h"
#include "text/text.h"

/* The largest answer that is passed back. */
#define MAX_RESPONSE ((size_t)256 << 20)

/* Appends to what a proxy in front of us may have written. */
static void
add_forwarded(apr_table_t *headers, const mc_http_request *http, const char *name, const char *value, apr_pool_t *pool)
{
    const char *before = http->headers == NULL ? NULL : apr_table_get(http->headers, name);
    if (value == NULL)
        return;
    value = before == NULL ? value : apr_pstrcat(pool, before, ", ", value, NULL);
    apr_table_setn(headers, name, mc_header_value(value, pool));
}

static mc_error *
add_body(mc_http_call *call, const mc_forwarding_rule *rule, const mc_http_request *http, apr_pool_t *pool)
{
    if (strcmp(http->method, "POST") != 0 || http->read_body == NULL)
        return MC_OK;
    mc_buf *body;
    MC_TRY(http->read_body(&body, http->read_body_baton, (size_t)rule->max_post_length, pool));
    apr_table_t *headers = call->headers == NULL ? apr_table_make(pool, 4) : apr_table_copy(pool, call->headers);
    const char *type = http->headers == NULL ? NULL : apr_table_get(http->headers, "Content-Type");
    const char *host = http->headers == NULL ? NULL : apr_table_get(http->headers, "Host");
    if (type != NULL)
        apr_table_setn(headers, "Content-Type", mc_header_value(type, pool));
    add_forwarded(headers, http, "X-Forwarded-For", http->client, pool);
    add_forwarded(headers, http, "X-Forwarded-Host", host, pool);
    add_forwarded(headers, http, "X-Forwarded-Server", host, pool);
    call->method = "POST";
    call->headers = headers;
    call->body = body->data;
    call->body_size = body->size;
    return MC_OK;
}

/* Headers that belong to one connection (RFC 9110 section 7.6.1), or that the front end writes; and Status, which is
 * CGI's. */
static bool
is_hop_header(const char *name)
{
    static const char *const names[] = {
        "Connection", "Transfer-Encoding", "Content-Length",   "Keep-Alive", "Upgrade", "TE",
        "Trailer",    "Content-Encoding",  "Proxy-Connection", "Date",       "Server",  "Status"
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcasecmp(names[i], name) == 0)
            return true;
    return false;
}

/* What a web server takes for an order, to send a file of its own or to look elsewhere. */
static bool
is_order_to_server(const char *name)
{
    static const char *const starts[] = { "X-Accel-", "X-Sendfile", "X-LIGHTTPD-", "X-Reproxy-" };
    for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++)
        if (strncasecmp(name, starts[i], strlen(starts[i])) == 0)
            return true;
    return false;
}

/* What of another server's answer goes on. A Location of an answer that is no redirect would be one to a CGI's server.
 */
static bool
may_pass(const char *name, int status)
{
    if (!mc_is_token(name, strlen(name)) || is_hop_header(name) || is_order_to_server(name))
        return false;
    return strcasecmp(name, "Location") != 0 || status == 201 || (status >= 300 && status < 400);
}

static apr_table_t *
end_to_end(const apr_table_t *headers, int status, apr_pool_t *pool)
{
    apr_table_t *kept = apr_table_make(pool, 8);
    const apr_array_header_t *all = apr_table_elts(headers);
    const apr_table_entry_t *entries = (const apr_table_entry_t *)(const void *)all->elts;
    for (int i = 0; i < all->nelts; i++)
        if (may_pass(entries[i].key, status))
            apr_table_addn(kept, entries[i].key, mc_header_value(entries[i].val, pool));
    return kept;
}

mc_error *
mc_server_forward(mc_result *result, mc_call *call, mc_request *request, mc_ctx *ctx, apr_pool_t *pool)
{
    MC_SPAN(ctx, "mapcache_core_proxy_request");
    const mc_forwarding_rule *rule = request->u.forward.rule;
    mc_http_call outgoing = mc_http_block_call(rule->http, request->u.forward.url, ctx, pool);
    mc_http_reply reply;
    outgoing.max_response = MAX_RESPONSE;
    MC_TRY(add_body(&outgoing, rule, call->http, pool));
    MC_TRY(mc_http_send(&reply, ctx->process->http, &outgoing, ctx, pool));
    result->status = reply.status;
    result->data = reply.body;
    result->headers = reply.headers == NULL ? NULL : end_to_end(reply.headers, reply.status, pool);
    return MC_OK;
}
