/* The header Cache-Status (RFC 9211): whether a tile or a map was there, or why a source was asked for it. */
#include <apr_strings.h>
#include <string.h>

#include "server/server_private.h"
#include "text/text.h"

enum { STATUS_MAX = 96 };

#define CACHE_NAME "mapcache"

typedef struct status_text {
    char *text;
    size_t size;
} status_text;

static void
append_status(status_text *out, const char *text)
{
    const size_t size = strlen(text);
    MC_ASSERT(out->size + size < STATUS_MAX);
    memcpy(out->text + out->size, text, size + 1);
    out->size += size;
}

/* Seconds for which the answer is fresh; below 0: since when it is not. */
static void
append_ttl(status_text *out, int64_t seconds)
{
    mc_whole_text digits;
    append_status(out, "; ttl=");
    append_status(out, mc_write_whole(&digits, seconds));
}

/* Why the request went on to a source, or waited for another one that did; NULL: it did not. */
static const char *
reason_of_forwarding(const mc_account *account, unsigned events)
{
    if ((events & (MC_EVENT_RENDERED | MC_EVENT_WAITED)) == 0)
        return NULL;
    if ((events & MC_EVENT_UNKEPT) != 0)
        return "; fwd=bypass";
    if ((events & MC_EVENT_EXPIRED) != 0)
        return "; fwd=stale";
    return account->grid != NULL ? "; fwd=uri-miss" : "; fwd=miss";
}

/* What a cache in front, or a reader of logs, may want to know besides. */
static const char *
detail_of(const mc_account *account, const mc_result *result, unsigned events)
{
    if ((events & MC_EVENT_FAILED) != 0)
        return "; detail=failed";
    if (account->status >= 400)
        return NULL;
    if (result->age > 0)
        return (events & (MC_EVENT_RENDERED | MC_EVENT_WAITED)) == 0 ? "; detail=stale" : NULL;
    if ((events & MC_EVENT_COMPOSED) != 0)
        return "; detail=composed";
    return (events & (MC_EVENT_MEMORY | MC_EVENT_RENDERED)) == MC_EVENT_MEMORY ? "; detail=memory" : NULL;
}

void
mc_response_cache_status(mc_http_response *response, const mc_account *account, const mc_result *result,
                         apr_pool_t *pool)
{
    const unsigned events = atomic_load_explicit(&account->events, memory_order_relaxed);
    const char *reason = reason_of_forwarding(account, events);
    const bool failed = account->status >= 400;
    if ((account->grid == NULL && account->width == 0) || response->status == 302 || (failed && reason == NULL))
        return;
    status_text out = { apr_palloc(pool, STATUS_MAX), 0 };
    append_status(&out, CACHE_NAME);
    append_status(&out, reason == NULL ? "; hit" : reason);
    if ((events & MC_EVENT_STORED) != 0)
        append_status(&out, "; stored");
    else if ((events & (MC_EVENT_WAITED | MC_EVENT_RENDERED)) == MC_EVENT_WAITED)
        append_status(&out, "; collapsed");
    if (!failed && result->age > 0)
        append_ttl(&out, result->overdue > 0 ? -result->overdue : -1);
    else if (!failed && result->lifetime > 0)
        append_ttl(&out, result->lifetime);
    const char *detail = detail_of(account, result, events);
    if (detail != NULL)
        append_status(&out, detail);
    apr_table_setn(response->headers, "Cache-Status", out.text);
}
