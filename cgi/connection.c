/* A FastCGI connection: see connection.h. */
#include "connection.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "exchange.h"
#include "text/text.h"

enum { INPUT_SIZE = 16384, POOL_KEPT = 256 * 1024 };
static const apr_interval_time_t look_interval = 10000; /* microseconds between looks whether the client has gone */

struct mc_connection {
    int descriptor;
    apr_pool_t *pool; /* of the request; cleared after each */
    mc_fcgi_parser parser;
    apr_table_t *variables; /* of the request, once they have been read; or NULL */
    uint8_t *pending;       /* bytes that came behind a complete request; NULL: none */
    size_t pending_size;
    mc_fcgi_output output;
    bool responding; /* `output` is not empty */
    bool served;     /* a request, at least */
    _Atomic apr_time_t next_look;
    _Atomic bool gone;
    void (*slow)(void *baton, bool begins); /* of the thread that serves */
    void *slow_baton;
};

mc_connection *
mc_connection_create(int descriptor, mc_connections *shared)
{
    mc_connection *connection = calloc(1, sizeof(*connection));
    MC_ASSERT(connection != NULL);
    connection->descriptor = descriptor;
    MC_ASSERT(apr_pool_create_unmanaged_ex(&connection->pool, mc_memory_exhausted, NULL) == APR_SUCCESS);
    apr_allocator_max_free_set(apr_pool_allocator_get(connection->pool), POOL_KEPT);
    mc_fcgi_init(&connection->parser, &shared->bodies, connection->pool);
    return connection;
}

mc_connection_phase
mc_connection_phase_of(const mc_connection *connection)
{
    const mc_fcgi_parser *parser = &connection->parser;
    if (parser->active)
        return parser->params_ended ? MC_PHASE_OTHER : MC_PHASE_PARAMS;
    return connection->served ? MC_PHASE_OTHER : MC_PHASE_START;
}

/* By itself, so that tests/tsan.supp can name it. */
static void
close_socket(int descriptor)
{
    close(descriptor);
}

void
mc_connection_destroy(mc_connection *connection)
{
    close_socket(connection->descriptor);
    mc_fcgi_destroy(&connection->parser);
    free(connection->pending);
    apr_pool_destroy(connection->pool);
    free(connection);
}

/* For requests that take long: the web server has closed the connection, or sent an abort record. Looks into the
 * socket without taking anything from it. */
static bool
is_fcgi_client_gone(void *baton)
{
    mc_connection *connection = baton;
    if (atomic_load_explicit(&connection->gone, memory_order_relaxed))
        return true;
    apr_time_t now = mc_clock_now();
    if (now < atomic_load_explicit(&connection->next_look, memory_order_relaxed))
        return false;
    atomic_store_explicit(&connection->next_look, now + look_interval, memory_order_relaxed);
    uint8_t header[MC_FCGI_HEADER_SIZE];
    ssize_t size = recv(connection->descriptor, header, sizeof(header), MSG_PEEK | MSG_DONTWAIT);
    bool gone = size == 0 || (size < 0 && errno != EAGAIN && errno != EINTR) ||
                (size == sizeof(header) && header[1] == MC_FCGI_ABORT_REQUEST);
    if (gone)
        atomic_store_explicit(&connection->gone, true, memory_order_relaxed);
    return gone;
}

/* A web server that has lost its client in the middle of a body may end the body all the same: it is shorter then than
 * CONTENT_LENGTH says. Without that variable (a body in chunks) its end is the web server's word. */
static mc_error *
check_body_length(const mc_connection *connection, apr_pool_t *pool)
{
    const mc_buf *body = connection->parser.body;
    const char *length = apr_table_get(connection->variables, "CONTENT_LENGTH");
    int64_t expected = 0;
    if (length != NULL && *length != '\0' && !mc_parse_int64(&expected, length, 0, INT64_MAX))
        return mc_error_create(pool, MC_ERR_BAD_REQUEST, "CONTENT_LENGTH is not a length: %s", length);
    if ((uint64_t)expected > (body == NULL ? 0 : body->size))
        return mc_error_create(pool, MC_ERR_BAD_REQUEST, "the request's body ended early");
    return MC_OK;
}

static mc_error *
read_fcgi_body(mc_buf **body, void *baton, size_t limit, apr_pool_t *pool)
{
    const mc_connection *connection = baton;
    const mc_fcgi_parser *parser = &connection->parser;
    if (parser->body_loss == MC_FCGI_NO_ROOM)
        return mc_error_create(pool, MC_ERR_UNAVAILABLE, "too many requests have bodies at this time");
    if (parser->body_loss == MC_FCGI_TOO_LONG || (parser->body != NULL && parser->body->size > limit))
        return mc_error_create(pool, MC_ERR_TOO_LARGE, "the request's body is larger than %lu bytes",
                               (unsigned long)limit);
    MC_TRY(check_body_length(connection, pool));
    *body = mc_buf_attach(parser->body == NULL ? mc_buf_create(0, 0) : mc_buf_ref(parser->body), pool);
    return MC_OK;
}

/* The request's variables; NULL where they cannot be read. */
static const apr_table_t *
get_variables(mc_connection *connection)
{
    const mc_fcgi_parser *parser = &connection->parser;
    if (connection->variables == NULL && !parser->params_too_long &&
        !mc_fcgi_variables(&connection->variables, parser->params->data, parser->params->size, connection->pool))
        connection->variables = NULL;
    return connection->variables;
}

/* So much of a body is kept as the service that the request is for would read. */
static void
choose_body_limit(mc_connection *connection, mc_connections *shared)
{
    const apr_table_t *variables = get_variables(connection);
    size_t limit = variables == NULL ? 0 : mc_exchange_body_limit(shared->generations, variables, connection->pool);
    connection->parser.body_limit = limit < MC_FCGI_BODY_MAX ? limit : MC_FCGI_BODY_MAX;
}

static void
answer_fcgi_request(mc_connection *connection, mc_connections *shared)
{
    mc_fcgi_parser *parser = &connection->parser;
    apr_pool_t *pool = connection->pool;
    mc_reply reply = { 0 };
    const apr_table_t *variables = get_variables(connection);
    if (parser->params_too_long) {
        mc_exchange_refuse(&reply, 431, "the request's variables are too long", MC_FCGI_HEADER_SIZE, pool);
    } else if (variables == NULL) {
        mc_exchange_refuse(&reply, 400, "the request's variables cannot be read", MC_FCGI_HEADER_SIZE, pool);
    } else {
        atomic_store_explicit(&connection->gone, false, memory_order_relaxed);
        atomic_store_explicit(&connection->next_look, mc_clock_now() + look_interval, memory_order_relaxed);
        const mc_exchange exchange = {
            .variables = variables,
            .read_body = read_fcgi_body,
            .read_body_baton = connection,
            .abandoned = is_fcgi_client_gone,
            .abandoned_baton = connection,
            .slow = connection->slow,
            .slow_baton = connection->slow_baton,
        };
        mc_exchange_respond(&reply, shared->generations, &exchange, MC_FCGI_HEADER_SIZE, pool);
    }
    mc_fcgi_respond(&connection->output, parser->request_id, reply.head, reply.head_size, reply.body, reply.body_size,
                    pool);
}

static void
end_aborted(mc_connection *connection)
{
    uint8_t *head = (uint8_t *)apr_palloc(connection->pool, MC_FCGI_HEADER_SIZE) + MC_FCGI_HEADER_SIZE;
    mc_fcgi_respond(&connection->output, connection->parser.request_id, head, 0, NULL, 0, connection->pool);
}

/* Writes what the socket takes. MC_CONNECTION_READS: everything has gone. */
static mc_connection_wait
flush_output(mc_connection *connection)
{
    mc_fcgi_output *output = &connection->output;
    for (;;) {
        enum { VECTORS_MAX = 512 }; /* below any system's limit */
        int count = output->count - output->next;
        struct msghdr message = { .msg_iov = output->vectors + output->next,
                                  .msg_iovlen = (size_t)(count < VECTORS_MAX ? count : VECTORS_MAX) };
        ssize_t sent = sendmsg(connection->descriptor, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent >= 0) {
            if (!mc_fcgi_output_sent(output, (size_t)sent))
                return MC_CONNECTION_READS;
        } else if (errno == EAGAIN) {
            return MC_CONNECTION_WRITES;
        } else if (errno != EINTR) {
            return MC_CONNECTION_ENDS;
        }
    }
}

/* Goes on with the response; MC_CONNECTION_READS: the connection is ready for its next request. */
static mc_connection_wait
continue_fcgi_response(mc_connection *connection, mc_connections *shared)
{
    mc_connection_wait wait = flush_output(connection);
    connection->responding = wait == MC_CONNECTION_WRITES;
    if (connection->responding)
        return wait;
    connection->served = true;
    atomic_fetch_sub(&shared->active, 1);
    bool keep = connection->parser.keep && !atomic_load_explicit(&shared->draining, memory_order_relaxed);
    mc_fcgi_finish(&connection->parser);
    connection->variables = NULL;
    apr_pool_clear(connection->pool);
    return wait == MC_CONNECTION_READS && keep ? MC_CONNECTION_READS : MC_CONNECTION_ENDS;
}

/* Management answers and refusals are a few bytes: a socket that does not take them is broken. */
static bool
send_replies(mc_connection *connection)
{
    mc_buf *replies = connection->parser.replies;
    if (replies->size == 0)
        return true;
    ssize_t sent = send(connection->descriptor, replies->data, replies->size, MSG_NOSIGNAL | MSG_DONTWAIT);
    bool complete = sent == (ssize_t)replies->size;
    replies->size = 0;
    return complete;
}

static mc_connection_wait
feed_fcgi_input(mc_connection *connection, const uint8_t **data, size_t *size, mc_connections *shared)
{
    while (*size > 0) {
        mc_fcgi_event event = mc_fcgi_feed(&connection->parser, data, size);
        if (event == MC_FCGI_BROKEN || !send_replies(connection))
            return MC_CONNECTION_ENDS;
        if (event == MC_FCGI_MORE)
            break;
        if (event == MC_FCGI_BODY) {
            choose_body_limit(connection, shared);
            continue;
        }
        atomic_fetch_add(&shared->active, 1);
        if (event == MC_FCGI_REQUEST)
            answer_fcgi_request(connection, shared);
        else
            end_aborted(connection);
        mc_connection_wait wait = continue_fcgi_response(connection, shared);
        if (wait != MC_CONNECTION_READS)
            return wait;
    }
    return MC_CONNECTION_READS;
}

/* What is left of the input has to wait for the response. */
static void
keep_pending(mc_connection *connection, const uint8_t *data, size_t size)
{
    if (size == 0)
        return;
    connection->pending = malloc(size);
    MC_ASSERT(connection->pending != NULL);
    memcpy(connection->pending, data, size);
    connection->pending_size = size;
}

static mc_connection_wait
take_pending(mc_connection *connection, mc_connections *shared)
{
    uint8_t *pending = connection->pending;
    const uint8_t *data = pending;
    size_t size = connection->pending_size;
    connection->pending = NULL;
    mc_connection_wait wait = feed_fcgi_input(connection, &data, &size, shared);
    if (wait == MC_CONNECTION_WRITES)
        keep_pending(connection, data, size);
    free(pending);
    return wait;
}

mc_connection_wait
mc_connection_serve(mc_connection *connection, mc_connections *shared, void (*slow)(void *baton, bool begins),
                    void *slow_baton)
{
    connection->slow = slow;
    connection->slow_baton = slow_baton;
    mc_connection_wait wait = MC_CONNECTION_READS;
    if (connection->responding)
        wait = continue_fcgi_response(connection, shared);
    while (wait == MC_CONNECTION_READS && connection->pending != NULL)
        wait = take_pending(connection, shared);
    while (wait == MC_CONNECTION_READS) {
        uint8_t input[INPUT_SIZE];
        ssize_t received = recv(connection->descriptor, input, sizeof(input), MSG_DONTWAIT);
        if (received < 0 && errno == EINTR)
            continue;
        if (received < 0 && errno == EAGAIN)
            return MC_CONNECTION_READS;
        if (received <= 0)
            return MC_CONNECTION_ENDS;
        const uint8_t *data = input;
        size_t size = (size_t)received;
        wait = feed_fcgi_input(connection, &data, &size, shared);
        if (wait == MC_CONNECTION_WRITES)
            keep_pending(connection, data, size);
        if (wait == MC_CONNECTION_READS && (size_t)received < sizeof(input))
            return MC_CONNECTION_READS; /* that was all; the next event says when there is more */
    }
    return wait;
}
