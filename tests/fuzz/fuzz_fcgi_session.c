/* FastCGI connections with all that they remember: several requests, bodies, aborts, answers that nobody reads, ends in
 * the middle. What comes back is records of the protocol, each request is answered or ends with its connection, and no
 * body is left behind. The input is a list of steps: a byte that says what, with a size, and bytes that are sent. */
#include <stdatomic.h>
#include <string.h>

#include "../../cgi/connection.c"
#include "../../cgi/records.c"

#include <apr_strings.h>

#include "fuzz_support.h"

enum { ANSWER_MOST = 400000 };

/* In place of cgi/exchange.c: services of the test's own. The first byte of the path says how long a body is read, the
 * second how long the answer is. */
static size_t
number_in_path(const apr_table_t *variables, size_t at, size_t most)
{
    const char *path = apr_table_get(variables, "PATH_INFO");
    return path == NULL || strlen(path) <= at ? 0 : (size_t)(unsigned char)path[at] * most / 255;
}

size_t
mc_exchange_body_limit(mc_generations *generations, const apr_table_t *variables, apr_pool_t *pool)
{
    (void)generations;
    (void)pool;
    return number_in_path(variables, 0, 3000);
}

static void
make_answer(mc_reply *reply, size_t size, size_t reserve, apr_pool_t *pool)
{
    static uint8_t bytes[ANSWER_MOST];
    reply->head = (uint8_t *)apr_pstrcat(pool, "12345678", "Content-Type: text/plain\r\n\r\n", NULL) + reserve;
    reply->head_size = strlen((const char *)reply->head);
    reply->body = size == 0 ? NULL : bytes;
    reply->body_size = size;
}

void
mc_exchange_refuse(mc_reply *reply, int status, const char *text, size_t reserve, apr_pool_t *pool)
{
    MC_ASSERT(status >= 400 && *text != '\0');
    make_answer(reply, strlen(text), reserve, pool);
}

void
mc_exchange_respond(mc_reply *reply, mc_generations *generations, const mc_exchange *exchange, size_t reserve,
                    apr_pool_t *pool)
{
    mc_buf *body = NULL;
    size_t limit = mc_exchange_body_limit(generations, exchange->variables, pool);
    mc_error *error = exchange->read_body(&body, exchange->read_body_baton, limit, pool);
    MC_ASSERT(error != MC_OK || body->size <= limit);
    (void)exchange->abandoned(exchange->abandoned_baton);
    make_answer(reply, number_in_path(exchange->variables, 1, ANSWER_MOST), reserve, pool);
}

/* What the web server has read: whole records of types that a program may send. */
typedef struct web_server {
    int socket;
    uint8_t header[MC_FCGI_HEADER_SIZE];
    size_t header_size, content_left;
} web_server;

static void
check_records(web_server *web, const uint8_t *data, size_t size)
{
    while (size > 0) {
        if (web->content_left > 0) {
            size_t part = size < web->content_left ? size : web->content_left;
            web->content_left -= part;
            data += part;
            size -= part;
            continue;
        }
        web->header[web->header_size++] = *data++;
        size--;
        if (web->header_size < MC_FCGI_HEADER_SIZE)
            continue;
        int type = web->header[1];
        MC_ASSERT(web->header[0] == VERSION &&
                  (type == STDOUT || type == END_REQUEST || type == GET_VALUES_RESULT || type == UNKNOWN_TYPE));
        web->content_left = (size_t)mc_big16(web->header + 4) + web->header[6];
        web->header_size = 0;
    }
}

/* At most so many bytes of what has come. */
static void
read_records(web_server *web, size_t most)
{
    static uint8_t bytes[65536];
    ssize_t got;
    while (most > 0 &&
           (got = recv(web->socket, bytes, most < sizeof(bytes) ? most : sizeof(bytes), MSG_DONTWAIT)) > 0) {
        check_records(web, bytes, (size_t)got);
        most -= (size_t)got;
    }
}

/* One step of the input. False where the session ends. */
static bool
take_step(web_server *web, const uint8_t **data, size_t *size)
{
    uint8_t step = *(*data)++;
    (*size)--;
    size_t part = (size_t)1 << (step & 15);
    switch (step >> 6) {
    case 0: /* reads a part of what has come */
        read_records(web, part);
        return true;
    case 1: /* reads all that comes, and nothing is sent any more */
        shutdown(web->socket, SHUT_WR);
        read_records(web, SIZE_MAX);
        return (step & 16) == 0;
    default:
        part = part < *size ? part : *size;
        (void)!send(web->socket, *data, part, MSG_NOSIGNAL | MSG_DONTWAIT);
        *data += part;
        *size -= part;
        return true;
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int ends[2], room = 4096;
    MC_ASSERT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
    setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &room, sizeof(room)); /* answers go in pieces */
    mc_connections shared = { 0 };
    mc_connection *connection = mc_connection_create(ends[0], &shared);
    web_server web = { .socket = ends[1] };
    mc_connection_wait wait = MC_CONNECTION_READS;
    bool goes_on = true;
    while (size > 0 && goes_on && wait != MC_CONNECTION_ENDS) {
        goes_on = take_step(&web, &data, &size);
        wait = mc_connection_serve(connection, &shared, NULL, NULL);
        MC_ASSERT(atomic_load(&shared.active) == (wait == MC_CONNECTION_WRITES ? 1 : 0));
        MC_ASSERT(atomic_load(&shared.bodies.bytes) <= 2 * 3000 || wait == MC_CONNECTION_WRITES);
    }
    read_records(&web, SIZE_MAX);
    mc_connection_destroy(connection);
    MC_ASSERT(atomic_load(&shared.bodies.bytes) == 0);
    close(ends[1]);
    return 0;
}
