/* Requests that a forwarding rule hands to another server: what it answers goes back, but for headers that are not for
 * the client (docs/reference/services.md 4.5). */
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

/* What of another server's answer stays here: headers of one connection (RFC 9110 section 7.6.1) and those that the
 * front end writes; Status, and Location, by which a CGI program has its server look elsewhere; and what would be said
 * to browsers in the name of this host, for all that is there. */
static bool
is_kept_back(const char *name)
{
    static const char *const names[] = {
        "Connection",
        "Transfer-Encoding",
        "Content-Length",
        "Keep-Alive",
        "Upgrade",
        "TE",
        "Trailer",
        "Content-Encoding",
        "Proxy-Connection",
        "Date",
        "Server",
        "Proxy-Authenticate",
        "Status",
        "Location",
        "Set-Cookie",
        "Refresh",
        "Set-Cookie2",
        "Proxy-Authentication-Info",
        "Alt-Svc",
        "Clear-Site-Data",
        "Report-To",
        "NEL",
        "Reporting-Endpoints",
        "Strict-Transport-Security",
        "Service-Worker-Allowed",
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

/* Whether a header "Connection" names this one as its own. */
static bool
is_of_connection(const char *name, const apr_table_entry_t *headers, int count)
{
    size_t size = strlen(name);
    for (int i = 0; i < count; i++) {
        if (strcasecmp(headers[i].key, "Connection") != 0)
            continue;
        for (const char *at = headers[i].val; *at != '\0'; at += strcspn(at, ", \t")) {
            at += strspn(at, ", \t");
            if (strncasecmp(at, name, size) == 0 && (at[size] == '\0' || strchr(", \t", at[size]) != NULL))
                return true;
        }
    }
    return false;
}

static apr_table_t *
end_to_end(const apr_table_t *headers, apr_pool_t *pool)
{
    apr_table_t *kept = apr_table_make(pool, 8);
    const apr_array_header_t *all = apr_table_elts(headers);
    const apr_table_entry_t *entries = (const apr_table_entry_t *)(const void *)all->elts;
    for (int i = 0; i < all->nelts; i++)
        if (mc_is_token(entries[i].key, strlen(entries[i].key)) && !is_kept_back(entries[i].key) &&
            !is_order_to_server(entries[i].key) && !is_of_connection(entries[i].key, entries, all->nelts))
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
    result->headers = reply.headers == NULL ? NULL : end_to_end(reply.headers, pool);
    return MC_OK;
}
