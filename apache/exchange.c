/*
 * One request and its response: httpd's request becomes ours, our response becomes httpd's, its body as a bucket that
 * holds a reference and is never copied.
 */
#include "mod_mapcache.h"

#include <apr_portable.h>
#include <apr_strings.h>
#include <http_core.h>
#include <http_protocol.h>
#include <http_request.h>
#include <poll.h>
#include <stdatomic.h>
#include <strings.h>

#include "base/clock.h"
#include "base/slices.h"

APLOG_USE_MODULE(mapcache);

/* Microseconds between two looks whether the client is still there. */
#define LOOK_INTERVAL 100000

/* A bucket around an mc_buf. Copies and splits share the one reference; setting aside needs nothing. */
typedef struct body_bucket {
    apr_bucket_refcount refcount; /* first: APR's shared-bucket functions expect it there */
    mc_buf *buf;
} body_bucket;

static apr_status_t
body_read(apr_bucket *bucket, const char **data, apr_size_t *size, apr_read_type_e block)
{
    (void)block;
    const body_bucket *body = bucket->data;
    *data = (const char *)body->buf->data + bucket->start;
    *size = bucket->length;
    return APR_SUCCESS;
}

static void
body_destroy(void *data)
{
    body_bucket *body = data;
    if (!apr_bucket_shared_destroy(body))
        return;
    mc_buf_unref(body->buf);
    apr_bucket_free(body);
}

static const apr_bucket_type_t body_bucket_type = {
    .name = "MAPCACHE",
    .num_func = 5,
    .is_metadata = APR_BUCKET_DATA,
    .destroy = body_destroy,
    .read = body_read,
    .setaside = apr_bucket_setaside_noop,
    .split = apr_bucket_shared_split,
    .copy = apr_bucket_shared_copy,
};

static apr_bucket *
body_bucket_create(mc_buf *buf, apr_bucket_alloc_t *list)
{
    apr_bucket *bucket = apr_bucket_alloc(sizeof(*bucket), list);
    APR_BUCKET_INIT(bucket);
    bucket->free = apr_bucket_free;
    bucket->list = list;
    body_bucket *body = apr_bucket_alloc(sizeof(*body), list);
    body->buf = mc_buf_ref(buf);
    bucket = apr_bucket_shared_make(bucket, body, 0, buf->size);
    bucket->type = &body_bucket_type;
    return bucket;
}

static mc_error *
read_httpd_body(mc_buf **body, void *baton, size_t limit, apr_pool_t *pool)
{
    request_rec *r = baton;
    if (ap_setup_client_block(r, REQUEST_CHUNKED_DECHUNK) != OK)
        return mc_error_create(pool, MC_ERR_BAD_REQUEST, "the request's body cannot be read");
    mc_buf *buf = mc_buf_attach(mc_buf_create(0, limit + 1), pool);
    *body = buf;
    if (!ap_should_client_block(r))
        return MC_OK;
    if (r->remaining > 0 && (apr_uint64_t)r->remaining > limit)
        return mc_error_create(pool, MC_ERR_TOO_LARGE, "the request's body is larger than %lu bytes",
                               (unsigned long)limit);
    char part[16384];
    for (;;) {
        long size = ap_get_client_block(r, part, sizeof(part));
        if (size < 0)
            return mc_error_create(pool, MC_ERR_BAD_REQUEST, "the request's body ended early");
        if (size == 0)
            return MC_OK;
        if ((size_t)size > limit - buf->size)
            return mc_error_create(pool, MC_ERR_TOO_LARGE, "the request's body is larger than %lu bytes",
                                   (unsigned long)limit);
        MC_TRY(mc_buf_append(buf, part, (size_t)size, pool));
    }
}

/* Of one request; asked from any of its threads. */
typedef struct client {
    conn_rec *connection;
    int socket; /* -1: it has none of its own */
    atomic_bool gone;
    _Atomic apr_time_t next_look;
    int slow_scopes; /* that have begun and not ended: mc_slow_begin */
} client;

/* With HTTP/2 a request's connection is one of many over that of the client. */
static void
find_client(client *client, const request_rec *r)
{
    apr_os_sock_t descriptor = -1;
    client->connection = r->connection->master != NULL ? r->connection->master : r->connection;
    apr_socket_t *socket = ap_get_conn_socket(client->connection);
    client->socket = socket != NULL && apr_os_sock_get(&descriptor, socket) == APR_SUCCESS ? descriptor : -1;
    client->slow_scopes = 0;
    atomic_init(&client->gone, false);
    atomic_init(&client->next_look, mc_clock_now() + LOOK_INTERVAL);
}

/* httpd itself notices that a client has gone only when it writes to it. */
static bool
is_httpd_client_gone(void *baton)
{
    client *client = baton;
    if (atomic_load_explicit(&client->gone, memory_order_relaxed) || client->connection->aborted != 0)
        return true;
    apr_time_t now = mc_clock_now();
    if (client->socket < 0 || now < atomic_load_explicit(&client->next_look, memory_order_relaxed))
        return false;
    atomic_store_explicit(&client->next_look, now + LOOK_INTERVAL, memory_order_relaxed);
    struct pollfd look = { .fd = client->socket, .events = POLLRDHUP };
    bool gone = poll(&look, 1, 0) > 0 && (look.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
    if (gone)
        atomic_store_explicit(&client->gone, true, memory_order_relaxed);
    return gone;
}

/* httpd's threads are all alike: those that answer at once go before those that draw or wait. */
static void
note_slow_scope(void *baton, bool begins)
{
    client *client = baton;
    if (begins && client->slow_scopes++ == 0)
        mc_slices_restore();
    else if (!begins && --client->slow_scopes == 0)
        mc_slices_shorten();
}

static void
set_headers(request_rec *r, const mc_http_response *response)
{
    const apr_array_header_t *headers = apr_table_elts(response->headers);
    const apr_table_entry_t *entry = (const apr_table_entry_t *)(const void *)headers->elts;
    for (int i = 0; i < headers->nelts; i++) {
        if (strcasecmp(entry[i].key, "Content-Type") == 0)
            ap_set_content_type(r, entry[i].val);
        else if (!frontend_cors_owns(entry[i].key))
            apr_table_addn(r->headers_out, entry[i].key, entry[i].val);
    }
    frontend_cors_set(r, response->headers);
    r->status = response->status;
    if (response->body != NULL || !AP_STATUS_IS_HEADER_ONLY(response->status))
        ap_set_content_length(r, response->body == NULL ? 0 : (apr_off_t)response->body->size);
}

static int
send_body(request_rec *r, mc_buf *body)
{
    apr_bucket_alloc_t *list = r->connection->bucket_alloc;
    apr_bucket_brigade *brigade = apr_brigade_create(r->pool, list);
    if (body != NULL && body->size > 0)
        APR_BRIGADE_INSERT_TAIL(brigade, body_bucket_create(body, list));
    APR_BRIGADE_INSERT_TAIL(brigade, apr_bucket_eos_create(list));
    int status = r->status;
    apr_status_t sent = ap_pass_brigade(r->output_filters, brigade);
    if (sent == APR_SUCCESS || r->status != status || r->connection->aborted)
        return OK;
    ap_log_rerror(APLOG_MARK, APLOG_DEBUG, sent, r, "the response could not be sent");
    return AP_FILTER_ERROR;
}

/* scheme://host[:port]/alias, by httpd's own rules for self-references (UseCanonicalName, UseCanonicalPhysicalPort). */
static const char *
construct_httpd_base_url(request_rec *r, const frontend_alias *alias)
{
    return ap_construct_url(r->pool, alias->path, r);
}

int
frontend_exchange(request_rec *r, const frontend_alias *alias, const char *path, mc_runtime *runtime)
{
    if (runtime == NULL)
        return HTTP_SERVICE_UNAVAILABLE; /* the log says why, at the start of this process */

    frontend_log log;
    frontend_log_init(&log, r);
    const mc_config *config = mc_server_config(alias->server);
    client client;
    find_client(&client, r);
    mc_slices_shorten();
    mc_ctx ctx = {
        .pool = r->pool,
        .process = mc_runtime_process(runtime),
        .log = &log.log,
        .trace = frontend_trace_create(r),
        .deadline = config->deadline > 0 ? mc_clock_now() + (apr_time_t)(config->deadline * 1e6) : 0,
        .headers = r->headers_in,
        .abandoned = is_httpd_client_gone,
        .abandoned_baton = &client,
        .slow = note_slow_scope,
        .slow_baton = &client,
    };
    if (ctx.trace != NULL && alias->quick)
        mc_trace_say(ctx.trace, "mapcache quick handler hook on uri", r->uri);
    mc_http_request request = {
        .method = r->method,
        .path = path,
        .query = r->args,
        .base_url = construct_httpd_base_url(r, alias),
        .headers = r->headers_in,
        .client = r->useragent_ip,
        .read_body = r->method_number == M_POST ? read_httpd_body : NULL,
        .read_body_baton = r,
    };
    mc_http_response *response;
    mc_server_handle(&response, alias->server, &request, &ctx, r->pool);
    if (ctx.trace != NULL)
        mc_trace_flush(ctx.trace);

    set_headers(r, response);
    return send_body(r, response->body);
}
