/* What browsers are told: which sites' pages may read an answer, and what they may ask (the Fetch standard, 3.2); and
 * the methods of an address. */
#include <apr_strings.h>
#include <string.h>
#include <strings.h>

#include "server/server_private.h"
#include "service/service_base.h"
#include "text/text.h"

/* Of the headers that a browser asks for beside those below: how many are granted, how long a name may be. */
enum { ASKED_MAX = 16, NAME_MAX_SIZE = 64 };

/* Seconds that a browser need not ask again. */
#define PREFLIGHT_LIFETIME "86400"

/* What clients of maps send. */
static const char *const granted[] = { "Accept",   "Authorization",     "Cache-Control", "Content-Type",
                                       "If-Match", "If-Modified-Since", "If-None-Match", "If-Unmodified-Since",
                                       "Range",    "X-Requested-With",  "traceparent",   "tracestate" };

enum { GRANTED = sizeof(granted) / sizeof(granted[0]) };

static bool
origin_listed(const char *list, const char *origin)
{
    size_t size = strlen(origin);
    for (const char *item = list; *item != '\0';) {
        item += strspn(item, " ,\t\r\n");
        size_t length = strcspn(item, " ,\t\r\n");
        if (length == size && strncasecmp(item, origin, size) == 0)
            return true;
        item += length;
    }
    return false;
}

/* A list as a header has it, whatever parts its items in the configuration. */
static const char *
join_with_commas(const char *list, apr_pool_t *pool)
{
    const char *joined = "";
    for (const char *item = list; *item != '\0';) {
        item += strspn(item, " ,\t\r\n");
        size_t length = strcspn(item, " ,\t\r\n");
        if (length > 0)
            joined = apr_pstrcat(pool, joined, *joined == '\0' ? "" : ", ", apr_pstrmemdup(pool, item, length), NULL);
        item += length;
    }
    return joined;
}

void
mc_response_cors(mc_http_response *response, const mc_call *call, apr_pool_t *pool)
{
    const char *origins =
        call->service != NULL && call->service->cors != NULL ? call->service->cors : call->config->cors;
    if (origins == NULL || *origins == '\0' || strcmp(origins, "off") == 0)
        return;
    if (strcmp(origins, "*") == 0) {
        apr_table_setn(response->headers, "Access-Control-Allow-Origin", "*");
    } else {
        const char *origin = mc_call_header(call, "Origin");
        apr_table_mergen(response->headers, "Vary", "Origin");
        if (origin == NULL || !origin_listed(origins, origin))
            return;
        apr_table_setn(response->headers, "Access-Control-Allow-Origin", mc_header_value(origin, pool));
    }
    if (call->config->server_timing) {
        apr_table_setn(response->headers, "Timing-Allow-Origin",
                       mc_header_value(join_with_commas(origins, pool), pool));
        apr_table_setn(response->headers, "Access-Control-Expose-Headers", "Server-Timing, ETag");
    }
}

void
mc_response_allow(mc_http_response *response, const mc_call *call, apr_pool_t *pool)
{
    apr_table_setn(response->headers, "Allow", apr_pstrcat(pool, mc_service_methods(call, pool), ", OPTIONS", NULL));
}

static bool
is_granted_anyway(const char *name, size_t size)
{
    for (size_t i = 0; i < GRANTED; i++)
        if (strlen(granted[i]) == size && strncasecmp(granted[i], name, size) == 0)
            return true;
    return false;
}

/* The names that are granted to all, and what is asked for within reason; what is no name of a header is left out. */
static const char *
grant_headers(const char *asked, apr_pool_t *pool)
{
    const char *parts[GRANTED + ASKED_MAX + 1];
    int count = 0;
    for (; count < GRANTED; count++)
        parts[count] = granted[count];
    for (const char *item = asked == NULL ? "" : asked; *item != '\0' && count < GRANTED + ASKED_MAX;) {
        item += strspn(item, ", \t");
        size_t size = strcspn(item, ", \t");
        if (size <= NAME_MAX_SIZE && mc_is_token(item, size) && !is_granted_anyway(item, size))
            parts[count++] = apr_pstrmemdup(pool, item, size);
        item += size;
    }
    const char *list = parts[0];
    for (int i = 1; i < count; i++)
        list = apr_pstrcat(pool, list, ", ", parts[i], NULL);
    return list;
}

void
mc_response_options(mc_http_response *response, const mc_call *call, apr_pool_t *pool)
{
    apr_table_t *headers = response->headers;
    response->status = 204;
    mc_response_allow(response, call, pool);
    mc_response_cors(response, call, pool);
    if (mc_call_header(call, "Access-Control-Request-Method") == NULL || mc_call_header(call, "Origin") == NULL ||
        apr_table_get(headers, "Access-Control-Allow-Origin") == NULL)
        return;
    apr_table_mergen(headers, "Vary", "Access-Control-Request-Headers");
    apr_table_setn(headers, "Access-Control-Allow-Methods", mc_service_methods(call, pool));
    apr_table_setn(headers, "Access-Control-Allow-Headers",
                   grant_headers(mc_call_header(call, "Access-Control-Request-Headers"), pool));
    apr_table_setn(headers, "Access-Control-Max-Age", PREFLIGHT_LIFETIME);
}
