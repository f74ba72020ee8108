/*
 * The module mapcache-curl.so: HTTP by libcurl. A call runs on a line: a multi handle, which keeps its connections.
 * Idle lines are kept by origin, so that connections live on; names and TLS sessions are shared. Connections are not
 * shared between lines: libcurl does not allow that between threads. Each request has an easy handle of its own: one
 * that is used again remembers the last header of the answer before, and libcurl before 8.5 reads that header after it
 * is freed, where the headers of an origin begin with a blank.
 */
#include <apr_strings.h>
#include <curl/curl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "http/http_engine.h"
#include "http/http_target.h"

enum {
    POLL_MS = 200, /* so late at most does a request notice that its client has gone */
    REDIRECTS = 5,
    LINE_CONNECTIONS = 2, /* the origin and one that it redirects to */
    ORIGIN_LENGTH = 256,
    HEADER_BYTES = 128 * 1024,
    REDIRECT_BYTES = 256 * 1024, /* of the body of an answer that leads on */
};

typedef struct header_line {
    CURLM *multi;
    char origin[ORIGIN_LENGTH]; /* "https://host:port", cut */
    struct header_line *next;
} header_line;

struct mc_http_engine {
    int max_idle;
    char *ca_bundle;      /* CURL_CA_BUNDLE when the engine was made, or NULL */
    pthread_mutex_t lock; /* of the next two */
    header_line *idle;    /* latest first */
    int idle_count;
    CURLSH *share;
    pthread_mutex_t share_locks[CURL_LOCK_DATA_LAST];
};

/* One request under way. */
typedef struct transfer {
    const mc_http_call *call;
    mc_ctx *ctx;
    apr_pool_t *pool;
    mc_http_reply *reply;
    mc_http_hop hop; /* the request that is sent now */
    CURL *easy;
    struct curl_slist *headers;
    size_t header_bytes;
    size_t unread_bytes;       /* of a body that nobody reads */
    apr_interval_time_t limit; /* of the whole call */
    bool refused;              /* the hop led to an address that is not public */
    mc_error *error;           /* why a callback stopped the transfer */
    char reason[CURL_ERROR_SIZE];
} transfer;

static pthread_once_t curl_once = PTHREAD_ONCE_INIT;
static CURLcode curl_ready;

static void
init_curl(void)
{
    curl_ready = curl_global_init(CURL_GLOBAL_DEFAULT);
}

static void
lock_share(CURL *easy, curl_lock_data data, curl_lock_access access, void *baton)
{
    (void)easy;
    (void)access;
    mc_http_engine *engine = baton;
    pthread_mutex_lock(&engine->share_locks[data]);
}

static void
unlock_share(CURL *easy, curl_lock_data data, void *baton)
{
    (void)easy;
    mc_http_engine *engine = baton;
    pthread_mutex_unlock(&engine->share_locks[data]);
}

static void
close_line(header_line *l)
{
    curl_multi_cleanup(l->multi);
    free(l);
}

static header_line *
open_line(void)
{
    header_line *l = calloc(1, sizeof(*l));
    if (l == NULL)
        return NULL;
    l->multi = curl_multi_init();
    if (l->multi == NULL) {
        free(l);
        return NULL;
    }
    curl_multi_setopt(l->multi, CURLMOPT_MAXCONNECTS, (long)LINE_CONNECTIONS);
    return l;
}

static void
destroy_curl_engine(mc_http_engine *engine)
{
    while (engine->idle != NULL) {
        header_line *next = engine->idle->next;
        close_line(engine->idle);
        engine->idle = next;
    }
    curl_share_cleanup(engine->share);
    for (int i = 0; i < CURL_LOCK_DATA_LAST; i++)
        pthread_mutex_destroy(&engine->share_locks[i]);
    pthread_mutex_destroy(&engine->lock);
    free(engine->ca_bundle);
    free(engine);
}

static mc_http_engine *
create_curl_engine(int max_idle)
{
    pthread_once(&curl_once, init_curl);
    CURLSH *share = curl_ready == CURLE_OK ? curl_share_init() : NULL;
    mc_http_engine *engine = share != NULL ? calloc(1, sizeof(*engine)) : NULL;
    if (engine == NULL) {
        if (share != NULL)
            curl_share_cleanup(share);
        return NULL;
    }
    engine->max_idle = max_idle;
    engine->share = share;
    const char *bundle = getenv("CURL_CA_BUNDLE");
    engine->ca_bundle = bundle == NULL || *bundle == '\0' ? NULL : strdup(bundle);
    pthread_mutex_init(&engine->lock, NULL);
    for (int i = 0; i < CURL_LOCK_DATA_LAST; i++)
        pthread_mutex_init(&engine->share_locks[i], NULL);
    curl_share_setopt(share, CURLSHOPT_LOCKFUNC, lock_share);
    curl_share_setopt(share, CURLSHOPT_UNLOCKFUNC, unlock_share);
    curl_share_setopt(share, CURLSHOPT_USERDATA, engine);
    curl_share_setopt(share, CURLSHOPT_SHARE, CURL_LOCK_DATA_DNS);
    curl_share_setopt(share, CURLSHOPT_SHARE, CURL_LOCK_DATA_SSL_SESSION);
    return engine;
}

/* Scheme, host and port of a URL. */
static void
origin_of(char origin[ORIGIN_LENGTH], const char *url)
{
    const char *host = strstr(url, "://");
    size_t length = host == NULL ? 0 : (size_t)(host - url) + 3;
    length += strcspn(url + length, "/?#");
    apr_cpystrn(origin, url, length < ORIGIN_LENGTH ? length + 1 : ORIGIN_LENGTH);
}

/* An idle line to that origin; else, once the bound is reached, the one that has been idle longest; else a new one. */
static header_line *
acquire_idle_line(mc_http_engine *engine, const char *origin)
{
    pthread_mutex_lock(&engine->lock);
    header_line **found = NULL;
    header_line **last = NULL;
    for (header_line **at = &engine->idle; *at != NULL && found == NULL; at = &(*at)->next) {
        last = at;
        if (strcmp((*at)->origin, origin) == 0)
            found = at;
    }
    if (found == NULL && engine->idle_count >= engine->max_idle)
        found = last;
    header_line *taken = NULL;
    if (found != NULL) {
        taken = *found;
        *found = taken->next;
        engine->idle_count--;
    }
    pthread_mutex_unlock(&engine->lock);
    if (taken == NULL)
        taken = open_line();
    if (taken != NULL)
        apr_cpystrn(taken->origin, origin, ORIGIN_LENGTH);
    return taken;
}

static void
give_line(mc_http_engine *engine, header_line *l, bool usable)
{
    pthread_mutex_lock(&engine->lock);
    bool kept = usable && engine->idle_count < engine->max_idle;
    if (kept) {
        l->next = engine->idle;
        engine->idle = l;
        engine->idle_count++;
    }
    pthread_mutex_unlock(&engine->lock);
    if (!kept)
        close_line(l);
}

static mc_error *
response_too_large_error(transfer *t)
{
    return mc_error_create(t->pool, MC_ERR_UPSTREAM, "the origin's answer is larger than %lu bytes",
                           (unsigned long)t->call->max_response);
}

/* Whether the answer that comes in is a redirect that can be followed. */
static bool
leads_on(const transfer *t)
{
    long status = 0;
    curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
    return mc_http_is_redirect((int)status) && apr_table_get(t->reply->headers, "Location") != NULL;
}

static size_t
take_body(char *data, size_t one, size_t size, void *baton)
{
    (void)one;
    transfer *t = baton;
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
    transfer *t = baton;
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
set_options(transfer *t, const mc_http_engine *engine, long timeout_ms)
{
    CURL *easy = t->easy;
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_SHARE, engine->share);
    curl_easy_setopt(easy, CURLOPT_URL, t->hop.url);
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L); /* http_target.h says where to */
    curl_easy_setopt(easy, CURLOPT_ACCEPT_ENCODING, t->call->as_stored ? NULL : "gzip");
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)(t->call->connect_timeout * 1000));
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, timeout_ms);
    curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L); /* a hanging name server does not hold up a request that ends */
    curl_easy_setopt(easy, CURLOPT_MAXFILESIZE_LARGE, (curl_off_t)t->call->max_response);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, t->headers);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, take_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, t);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, t);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, t->reason);
    if (engine->ca_bundle != NULL)
        curl_easy_setopt(easy, CURLOPT_CAINFO, engine->ca_bundle);
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

/* For the log: what was asked for, where redirects led, what went wrong. */
static mc_error *
describe_failure(const transfer *t, const char *reason)
{
    const char *asked = loggable_url(t->call->url, t->pool);
    if (t->hop.url != t->call->url)
        asked = apr_pstrcat(t->pool, asked, ", redirected to ", loggable_url(t->hop.url, t->pool), NULL);
    return mc_error_create(t->pool, MC_ERR_UPSTREAM, "%s %s: %s", t->call->method, asked, reason);
}

static mc_error *
curl_transfer_error(transfer *t, CURLcode code, double seconds)
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

/* Waits until the transfer has ended, the time is over or the client has gone. */
static CURLcode
drive_curl_transfer(transfer *t, header_line *l, apr_time_t end)
{
    if (curl_multi_add_handle(l->multi, t->easy) != CURLM_OK)
        return CURLE_FAILED_INIT;
    CURLcode result = CURLE_RECV_ERROR;
    int running = 1;
    while (curl_multi_perform(l->multi, &running) == CURLM_OK && running > 0) {
        apr_time_t left = end - mc_clock_now();
        if (left <= 0) {
            result = CURLE_OPERATION_TIMEDOUT;
            break;
        }
        if (t->ctx->abandoned != NULL && t->ctx->abandoned(t->ctx->abandoned_baton)) {
            t->error = mc_error_create(t->pool, MC_ERR_UNAVAILABLE, "the client has gone");
            break;
        }
        int wait_ms = left / 1000 < POLL_MS ? (int)(left / 1000) + 1 : POLL_MS;
        curl_multi_poll(l->multi, NULL, 0, wait_ms, NULL);
    }
    int more;
    for (CURLMsg *message; (message = curl_multi_info_read(l->multi, &more)) != NULL;)
        if (message->msg == CURLMSG_DONE)
            result = message->data.result;
    return result;
}

static mc_error *
perform_curl_transfer(transfer *t, mc_http_engine *engine, header_line *l, apr_time_t end)
{
    apr_interval_time_t limit = end - mc_clock_now();
    set_options(t, engine, (long)(limit > 0 ? limit / 1000 : 0) + 1);
    CURLcode code = drive_curl_transfer(t, l, end);
    long status = 0;
    curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
    curl_multi_remove_handle(l->multi, t->easy);
    if (code != CURLE_OK)
        return curl_transfer_error(t, code, (double)t->limit / APR_USEC_PER_SEC);
    if (status < 200 || status > 599) /* RFC 9110 15: there is no other that is final */
        return mc_error_wrap(t->pool, describe_failure(t, apr_psprintf(t->pool, "the status %ld", status)),
                             MC_ERR_UPSTREAM, "the origin's answer is not HTTP");
    t->reply->status = (int)status;
    if (apr_table_get(t->reply->headers, "Content-Encoding") != NULL) { /* undone, whichever it was */
        apr_table_unset(t->reply->headers, "Content-Encoding");
        apr_table_unset(t->reply->headers, "Content-Length");
    }
    return MC_OK;
}

/* True where the answer leads on: `hop` is what to send next then, or *error says why not. */
static bool
find_next_hop(mc_error **error, transfer *t, int redirects)
{
    char *target = NULL, *address = NULL;
    curl_easy_getinfo(t->easy, CURLINFO_REDIRECT_URL, &target);
    curl_easy_getinfo(t->easy, CURLINFO_PRIMARY_IP, &address);
    if (target == NULL || !leads_on(t))
        return false;
    if (redirects < REDIRECTS)
        mc_http_next_hop(&t->hop, t->reply->status, apr_pstrdup(t->pool, target), address, t->pool);
    else
        *error = mc_error_wrap(t->pool, describe_failure(t, "too many redirects"), MC_ERR_UPSTREAM,
                               "the origin redirects more than %d times", REDIRECTS);
    return *error == MC_OK;
}

/* Sends the request of the hop. True where the answer leads on to another one; *error says what went wrong. */
static bool
send_hop(mc_error **error, transfer *t, mc_http_engine *engine, header_line *l, int redirects, apr_time_t end)
{
    t->header_bytes = t->unread_bytes = 0;
    t->reason[0] = '\0';
    t->easy = curl_easy_init();
    t->headers = header_list(&t->hop, t->pool);
    *error = t->easy == NULL || t->headers == NULL
                 ? mc_error_create(t->pool, MC_ERR_NO_MEMORY, "no memory for a request to an origin")
                 : perform_curl_transfer(t, engine, l, end);
    bool goes_on = *error == MC_OK && find_next_hop(error, t, redirects);
    curl_easy_cleanup(t->easy);
    curl_slist_free_all(t->headers);
    return goes_on;
}

/* Sends the request, and those to which redirects lead. */
static mc_error *
follow_hops(transfer *t, mc_http_engine *engine, header_line *l)
{
    t->limit = mc_ctx_remaining(t->ctx, (apr_interval_time_t)(t->call->timeout * APR_USEC_PER_SEC));
    const apr_time_t end = mc_clock_now() + t->limit;
    mc_error *error = MC_OK;
    for (int redirects = 0; send_hop(&error, t, engine, l, redirects, end); redirects++)
        ;
    return error;
}

static mc_error *
engine_send(mc_http_reply *reply, mc_http_engine *engine, const mc_http_call *call, mc_ctx *ctx, apr_pool_t *pool)
{
    char origin[ORIGIN_LENGTH];
    origin_of(origin, call->url);
    header_line *l = acquire_idle_line(engine, origin);
    if (l == NULL)
        return mc_error_create(pool, MC_ERR_NO_MEMORY, "no memory for a request to an origin");
    reply->headers = apr_table_make(pool, 16);
    reply->body = mc_buf_attach(mc_buf_create(0, call->max_response), pool);
    transfer t = { .call = call, .ctx = ctx, .pool = pool, .reply = reply, .hop = mc_http_first_hop(call) };
    mc_error *error = follow_hops(&t, engine, l);
    give_line(engine, l, error == MC_OK);
    return error;
}

const mc_http_engine_ops mc_http_curl_ops = { create_curl_engine, destroy_curl_engine, engine_send };
