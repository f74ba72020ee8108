/* Requests of libcurl: see http_transfer.h. Each request has an easy handle of its own: one that is used again
 * remembers the last header of the answer before, and libcurl before 8.5 reads that header after it is freed, where the
 * headers of an origin begin with a blank.
 */
#include "http/http_transfer.h"

#include <apr_strings.h>
#include <string.h>

#include "base/clock.h"
#include "text/secret.h"

enum {
    REDIRECTS = 5,
    HEADER_BYTES = 128 * 1024,
    REDIRECT_BYTES = 256 * 1024, /* of the body of an answer that leads on */
    BUFFER_BYTES = 60 * 1024,    /* freeing 64 KB makes glibc gather all that is free, for each request */
};

mc_http_transfer
mc_http_transfer_begin(const mc_http_call *call, mc_http_reply *reply, mc_ctx *ctx, apr_pool_t *pool)
{
    reply->headers = apr_table_make(pool, 16);
    reply->body = mc_buf_attach(mc_buf_create(0, call->max_response), pool);
    mc_http_transfer t = { .call = call, .ctx = ctx, .pool = pool, .reply = reply, .hop = mc_http_first_hop(call) };
    t.limit = mc_ctx_remaining(ctx, (apr_interval_time_t)(call->timeout * APR_USEC_PER_SEC));
    t.end = mc_clock_now() + t.limit;
    return t;
}

static mc_error *
response_too_large_error(mc_http_transfer *t)
{
    t->reply->too_large = true;
    return mc_error_create(t->pool, MC_ERR_UPSTREAM, "the origin's answer is larger than %lu bytes",
                           (unsigned long)t->call->max_response);
}

/* Whether the answer that comes in is a redirect that can be followed. */
static bool
leads_on(const mc_http_transfer *t)
{
    long status = 0;
    curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
    return !t->call->no_redirects && mc_http_is_redirect((int)status) &&
           apr_table_get(t->reply->headers, "Location") != NULL;
}

static size_t
take_body(char *data, size_t one, size_t size, void *baton)
{
    (void)one;
    mc_http_transfer *t = baton;
    if (leads_on(t)) {
        t->unread_bytes += size;
        if (t->unread_bytes > REDIRECT_BYTES)
            t->error = mc_error_create(t->pool, MC_ERR_UPSTREAM, "the origin's redirect has a body without end");
        return t->error == MC_OK ? size : CURL_WRITEFUNC_ERROR;
    }
    if (size > t->call->max_response - t->reply->body->size) {
        t->error = response_too_large_error(t);
        return CURL_WRITEFUNC_ERROR;
    }
    if (t->reply->body->size == 0) {
        /* The announced length saves growing step by step; it was checked against the bound already. */
        curl_off_t announced = 0;
        curl_easy_getinfo(t->easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &announced);
        if (announced > (curl_off_t)size && (uint64_t)announced <= t->call->max_response)
            t->error = mc_buf_reserve(t->reply->body, (size_t)announced, t->pool);
    }
    if (t->error == MC_OK)
        t->error = mc_buf_append(t->reply->body, data, size, t->pool);
    return t->error == MC_OK ? size : CURL_WRITEFUNC_ERROR;
}

static size_t
take_header(char *data, size_t one, size_t size, void *baton)
{
    (void)one;
    mc_http_transfer *t = baton;
    t->header_bytes += size;
    if (t->header_bytes > HEADER_BYTES) {
        t->error =
            mc_error_create(t->pool, MC_ERR_UPSTREAM, "the origin's headers are larger than %d bytes", HEADER_BYTES);
        return CURL_WRITEFUNC_ERROR;
    }
    if (size >= 5 && memcmp(data, "HTTP/", 5) == 0) {
        apr_table_clear(t->reply->headers); /* those of a redirect or an interim answer */
        return size;
    }
    const char *colon = memchr(data, ':', size);
    if (colon == NULL)
        return size;
    char *name = apr_pstrmemdup(t->pool, data, (size_t)(colon - data));
    char *value = apr_pstrmemdup(t->pool, colon + 1, size - (size_t)(colon + 1 - data));
    apr_collapse_spaces(name, name);
    value += strspn(value, " \t");
    size_t length = strlen(value);
    while (length > 0 && strchr(" \t\r\n", value[length - 1]) != NULL)
        value[--length] = '\0';
    apr_table_addn(t->reply->headers, name, value);
    return size;
}

static void
set_method(CURL *easy, const mc_http_hop *call)
{
    bool get = strcmp(call->method, "GET") == 0;
    bool post = strcmp(call->method, "POST") == 0;
    if (strcmp(call->method, "HEAD") == 0) {
        curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
        return;
    }
    if (call->body != NULL || post || strcmp(call->method, "PUT") == 0) {
        curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)call->body_size);
        curl_easy_setopt(easy, CURLOPT_POSTFIELDS, call->body == NULL ? "" : call->body);
    } else
        curl_easy_setopt(easy, CURLOPT_HTTPGET, 1L);
    if (!post && (!get || call->body != NULL))
        curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, call->method);
}

static struct curl_slist *
header_list(const mc_http_hop *call, apr_pool_t *pool)
{
    /* No wait for "100 Continue", and no form type on bodies that are none. */
    struct curl_slist *list = curl_slist_append(NULL, "Expect:");
    if (call->body != NULL && apr_table_get(call->headers, "Content-Type") == NULL)
        list = curl_slist_append(list, "Content-Type:");
    const apr_array_header_t *items = apr_table_elts(call->headers);
    for (int i = 0; i < items->nelts; i++) {
        const apr_table_entry_t *item = &APR_ARRAY_IDX(items, i, apr_table_entry_t);
        /* libcurl's way to send a header without value is a semicolon in place of the colon. */
        const char *text = *item->val == '\0' ? apr_pstrcat(pool, item->key, ";", NULL)
                                              : apr_pstrcat(pool, item->key, ": ", item->val, NULL);
        list = curl_slist_append(list, text);
    }
    return list;
}

static void
set_transfer_options(mc_http_transfer *t, const mc_http_settings *settings, long timeout_ms)
{
    CURL *easy = t->easy;
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, (long)BUFFER_BYTES);
    curl_easy_setopt(easy, CURLOPT_SHARE, settings->share);
    curl_easy_setopt(easy, CURLOPT_URL, t->hop.url);
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L); /* http_target.h says where to */
    curl_easy_setopt(easy, CURLOPT_ACCEPT_ENCODING, t->call->as_stored ? NULL : "gzip");
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)(t->call->connect_timeout * 1000));
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, timeout_ms);
    curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L); /* a hanging name server does not hold up a request that ends */
    if (strcmp(t->hop.method, "HEAD") != 0)         /* what it tells does not come */
        curl_easy_setopt(easy, CURLOPT_MAXFILESIZE_LARGE, (curl_off_t)t->call->max_response);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, t->headers);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, take_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, t);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, t);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, t->reason);
    if (settings->ca_bundle != NULL)
        curl_easy_setopt(easy, CURLOPT_CAINFO, settings->ca_bundle);
    curl_easy_setopt(easy, CURLOPT_PRIVATE, t);
    if (t->call->no_proxy)
        curl_easy_setopt(easy, CURLOPT_NOPROXY, "*");
    if (settings->together)
        curl_easy_setopt(easy, CURLOPT_PIPEWAIT, 1L); /* HTTP/2: all on the one that is being made */
    if (t->hop.guarded)
        mc_http_guard(easy, &t->refused);
    set_method(easy, &t->hop);
}

/* The URL for the log, without user and password. */
static const char *
loggable_url(const char *url, apr_pool_t *pool)
{
    const char *host = strstr(url, "://");
    if (host == NULL)
        return url;
    host += 3;
    size_t length = strcspn(host, "/?#");
    for (const char *c = host + length; c > host; c--)
        if (c[-1] == '@')
            return apr_pstrcat(pool, apr_pstrmemdup(pool, url, (size_t)(host - url)), "...@", c, NULL);
    return url;
}

/* A URL of a call; behind the path of a tile may stand a signature. */
static const char *
loggable_hop(const mc_http_call *call, const char *url, apr_pool_t *pool)
{
    url = loggable_url(url, pool);
    return call->store ? apr_pstrmemdup(pool, url, strcspn(url, "?")) : mc_hide_query_keys(url, pool);
}

/* For the log: what was asked for, where redirects led, what went wrong. */
static mc_error *
describe_failure(const mc_http_transfer *t, const char *reason)
{
    const char *asked = loggable_hop(t->call, t->call->url, t->pool);
    if (t->hop.url != t->call->url)
        asked = apr_pstrcat(t->pool, asked, ", redirected to ", loggable_hop(t->call, t->hop.url, t->pool), NULL);
    return mc_error_create(t->pool, MC_ERR_UPSTREAM, "%s %s: %s", t->call->method, asked, reason);
}

static mc_error *
curl_transfer_error(mc_http_transfer *t, CURLcode code, double seconds)
{
    if (t->error != MC_OK && t->error->kind != MC_ERR_UPSTREAM)
        return t->error;
    const char *reason = t->error != MC_OK      ? t->error->message
                         : t->reason[0] != '\0' ? t->reason
                                                : curl_easy_strerror(code);
    mc_error *cause = describe_failure(t, reason);
    if (t->refused)
        return mc_error_wrap(t->pool, cause, MC_ERR_UPSTREAM, "the origin redirects to an address that is not public");
    switch (code) {
    case CURLE_OPERATION_TIMEDOUT:
        return mc_error_wrap(t->pool, cause, MC_ERR_TIMEOUT, "the origin did not answer within %.4g s", seconds);
    case CURLE_WRITE_ERROR:
        return mc_error_wrap(t->pool, cause, MC_ERR_UPSTREAM, "%s",
                             t->error != MC_OK ? t->error->message : "the origin's answer cannot be read");
    case CURLE_FILESIZE_EXCEEDED:
        return mc_error_wrap(t->pool, cause, MC_ERR_UPSTREAM, "%s", response_too_large_error(t)->message);
    case CURLE_UNSUPPORTED_PROTOCOL:
        return mc_error_wrap(t->pool, cause, MC_ERR_UPSTREAM, "the origin is not reached by http or https");
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
        return mc_error_wrap(t->pool, cause, MC_ERR_UPSTREAM, "no connection to the origin");
    default:
        return mc_error_wrap(t->pool, cause, MC_ERR_UPSTREAM, "the request to the origin failed");
    }
}

mc_error *
mc_http_transfer_prepare(mc_http_transfer *t, const mc_http_settings *settings)
{
    apr_interval_time_t left = t->end - mc_clock_now();
    t->header_bytes = t->unread_bytes = 0;
    t->reason[0] = '\0';
    t->easy = curl_easy_init();
    t->headers = header_list(&t->hop, t->pool);
    if (t->easy == NULL || t->headers == NULL) {
        curl_easy_cleanup(t->easy);
        curl_slist_free_all(t->headers);
        t->easy = NULL;
        return mc_error_create(t->pool, MC_ERR_NO_MEMORY, "no memory for a request to an origin");
    }
    set_transfer_options(t, settings, (long)(left > 0 ? left / 1000 : 0) + 1);
    return MC_OK;
}

/* The status and headers of an answer that is there as a whole. */
static mc_error *
finish_reply(mc_http_transfer *t)
{
    long status = 0;
    curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
    if (status < 200 || status > 599) /* RFC 9110 15: there is no other that is final */
        return mc_error_wrap(t->pool, describe_failure(t, apr_psprintf(t->pool, "the status %ld", status)),
                             MC_ERR_UPSTREAM, "the origin's answer is not HTTP");
    long version = 0;
    curl_easy_getinfo(t->easy, CURLINFO_HTTP_VERSION, &version);
    t->reply->framed = version >= CURL_HTTP_VERSION_2_0 || apr_table_get(t->reply->headers, "Content-Length") != NULL ||
                       apr_table_get(t->reply->headers, "Transfer-Encoding") != NULL;
    t->reply->status = (int)status;
    if (apr_table_get(t->reply->headers, "Content-Encoding") != NULL) { /* undone, whichever it was */
        t->reply->decoded = true;
        apr_table_unset(t->reply->headers, "Content-Encoding");
        apr_table_unset(t->reply->headers, "Content-Length");
    }
    return MC_OK;
}

/* True where the answer leads on: `hop` is what to send next then, or *error says why not. */
static bool
find_next_hop(mc_error **error, mc_http_transfer *t)
{
    char *target = NULL, *address = NULL;
    curl_easy_getinfo(t->easy, CURLINFO_REDIRECT_URL, &target);
    curl_easy_getinfo(t->easy, CURLINFO_PRIMARY_IP, &address);
    if (target == NULL || !leads_on(t))
        return false;
    if (t->redirects++ < REDIRECTS)
        mc_http_next_hop(&t->hop, t->reply->status, apr_pstrdup(t->pool, target), address, t->pool);
    else
        *error = mc_error_wrap(t->pool, describe_failure(t, "too many redirects"), MC_ERR_UPSTREAM,
                               "the origin redirects more than %d times", REDIRECTS);
    return *error == MC_OK;
}

bool
mc_http_transfer_ended(mc_error **error, mc_http_transfer *t, CURLcode code)
{
    *error = code == CURLE_OK ? finish_reply(t) : curl_transfer_error(t, code, (double)t->limit / APR_USEC_PER_SEC);
    bool goes_on = *error == MC_OK && find_next_hop(error, t);
    curl_easy_cleanup(t->easy);
    curl_slist_free_all(t->headers);
    t->easy = NULL;
    t->headers = NULL;
    return goes_on;
}
