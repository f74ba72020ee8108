/* See purge_request.h. */
#include "cdn/purge_request.h"

#include <apr_strings.h>
#include <string.h>

#include "text/text.h"

/* An answer says a status, and some words at most. */
enum { ANSWER_MAX = 64 << 10 };

bool
mc_cdn_purges_keys(mc_cdn_type type)
{
    return type != MC_CDN_NGINX;
}

static const char *
join_keys(const mc_purge_item *batch, apr_pool_t *pool)
{
    size_t size = 0;
    for (const mc_purge_item *item = batch; item != NULL; item = item->next)
        size += strlen(item->text) + 1;
    char *keys = apr_palloc(pool, size + 1), *to = keys;
    for (const mc_purge_item *item = batch; item != NULL; item = item->next) {
        const size_t length = strlen(item->text);
        memcpy(to, item->text, length);
        to += length;
        *to++ = ' ';
    }
    to[to > keys ? -1 : 0] = '\0';
    return keys;
}

static mc_http_call
call_of(const mc_cdn *cdn, const char *method, const char *url, const apr_table_t *headers)
{
    return (mc_http_call){ .method = method,
                           .url = url,
                           .headers = headers,
                           .connect_timeout = cdn->timeout < 5 ? cdn->timeout : 5,
                           .timeout = cdn->timeout,
                           .max_response = ANSWER_MAX,
                           .no_redirects = true,
                           .apart = true };
}

/* A VCL takes the request "PURGE" with these headers (docs/cdn.md). */
static mc_http_call
call_varnish(const mc_cdn *cdn, const char *url, const char *keys, apr_pool_t *pool)
{
    apr_table_t *headers = apr_table_copy(pool, cdn->headers);
    apr_table_setn(headers, cdn->soft ? "xkey-softpurge" : "xkey-purge", keys);
    return call_of(cdn, "PURGE", url, headers);
}

/* Fastly, purging API: "purge multiple surrogate key tags", by keys in a header. */
static mc_http_call
call_fastly(const mc_cdn *cdn, const char *url, const char *keys, apr_pool_t *pool)
{
    apr_table_t *headers = apr_table_copy(pool, cdn->headers);
    apr_table_setn(headers, "Surrogate-Key", keys);
    apr_table_setn(headers, "Accept", "application/json");
    if (cdn->soft)
        apr_table_setn(headers, "Fastly-Soft-Purge", "1");
    return call_of(cdn, "POST", url, headers);
}

mc_http_exchange *
mc_purge_requests(int *count, const mc_cdn *cdn, const char *url, const mc_purge_item *batch, apr_pool_t *pool)
{
    *count = 0;
    for (const mc_purge_item *item = batch; item != NULL; item = item->next)
        ++*count;
    mc_http_exchange *exchanges = apr_pcalloc(pool, sizeof(*exchanges) * (size_t)(*count + 1));
    if (cdn->type == MC_CDN_NGINX) {
        for (int i = 0; i < *count; i++, batch = batch->next)
            exchanges[i].call = call_of(cdn, cdn->method, batch->text, cdn->headers);
        return exchanges;
    }
    const char *keys = join_keys(batch, pool);
    exchanges[0].call =
        cdn->type == MC_CDN_FASTLY ? call_fastly(cdn, url, keys, pool) : call_varnish(cdn, url, keys, pool);
    *count = 1;
    return exchanges;
}

/* ngx_cache_purge says 404 or 412 of what the cache does not have; an asked tile may be none. */
static bool
has_dropped(int status, const mc_cdn *cdn)
{
    return (status >= 200 && status < 300) || (cdn->type == MC_CDN_NGINX && (status == 404 || status == 412));
}

mc_error *
mc_purge_answer(const mc_http_exchange *exchange, const mc_cdn *cdn, apr_pool_t *pool)
{
    if (exchange->error != MC_OK)
        return exchange->error;
    if (has_dropped(exchange->reply.status, cdn))
        return MC_OK;
    return mc_error_create(pool, MC_ERR_UPSTREAM, "it answered a purge request with status %d", exchange->reply.status);
}

const char *
mc_purge_address(const char *url_template, const char *tileset, const mc_grid *grid, int z, int x, int y,
                 apr_pool_t *pool)
{
    const struct {
        const char *token, *value;
    } places[] = {
        { "{z}", apr_itoa(pool, z) },
        { "{x}", apr_itoa(pool, mc_grid_from_west(grid, z, x)) },
        { "{y}", apr_itoa(pool, mc_grid_flip_y(grid, z, y)) },
        { "{-y}", apr_itoa(pool, mc_grid_tms_y(grid, z, y)) },
        { "{grid}", mc_url_encode(grid->name, NULL, true, false, pool) },
        { "{tileset}", mc_url_encode(tileset, NULL, true, false, pool) },
    };
    const char *url = url_template;
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
        url = mc_replace_all(url, places[i].token, places[i].value, pool);
    return url;
}
