/* A line that is cut while a statement is on its way: the server's last words are lost with it. */
#include "postgres.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>

#include "base/metrics.h"
#include "db/postgres/postgres_counters.h"

enum { CONNECTIONS = 4, LINES = 2 * CONNECTIONS };

/* Between us and the server. While `cutting` is above 0, what we say next is thrown away, and its line ends. While
 * `splitting`, the server's errors come in two pieces. */
typedef struct cutter {
    int port, listener;
    atomic_int cutting;
    atomic_bool splitting;
    pthread_t thread;
} cutter;

static int
socket_to(int port, bool listens, int *chosen)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                   .sin_port = htons((uint16_t)port) };
    socklen_t size = sizeof(address);
    int made = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq((listens ? bind : connect)(made, (struct sockaddr *)&address, size), 0);
    if (listens) {
        ck_assert_int_eq(listen(made, 8), 0);
        ck_assert_int_eq(getsockname(made, (struct sockaddr *)&address, &size), 0);
        *chosen = ntohs(address.sin_port);
    }
    return made;
}

/* Bytes up to somewhere in an error, behind its head; all of them where there is none. */
static size_t
first_piece(const char *bytes, size_t size)
{
    const char *error = memmem(bytes, size, "SERROR", 6);
    return error == NULL ? size : (size_t)(error - bytes) + 3;
}

/* False: the line has ended. `ours`: the bytes are of the client. */
static bool
pass_bytes(cutter *c, int from, int to, bool ours)
{
    char bytes[16384];
    ssize_t size = recv(from, bytes, sizeof(bytes), 0);
    if (size <= 0 || (ours && atomic_load(&c->cutting) > 0 && atomic_fetch_sub(&c->cutting, 1) > 0))
        return false;
    size_t first = !ours && atomic_load(&c->splitting) ? first_piece(bytes, (size_t)size) : (size_t)size;
    if (send(to, bytes, first, MSG_NOSIGNAL) != (ssize_t)first)
        return false;
    if (first < (size_t)size)
        apr_sleep(50000); /* the pieces are apart most of the time; the result is the same where they are not */
    return send(to, bytes + first, (size_t)size - first, MSG_NOSIGNAL) == size - (ssize_t)first;
}

/* Even sockets are the client's, each followed by the server's. */
static void *
pass_all(void *baton)
{
    cutter *c = baton;
    struct pollfd lines[1 + 2 * LINES] = { { c->listener, POLLIN, 0 } };
    for (int count = 1; poll(lines, (nfds_t)count, -1) > 0;) {
        if (lines[0].revents != 0) {
            int near = accept4(c->listener, NULL, NULL, SOCK_CLOEXEC);
            if (near < 0)
                return NULL;
            ck_assert_int_lt(count, 2 * LINES);
            lines[count++] = (struct pollfd){ near, POLLIN, 0 };
            lines[count++] = (struct pollfd){ socket_to(postgres_server.port, false, NULL), POLLIN, 0 };
        }
        for (int i = 1; i < count; i++) {
            int other = i % 2 == 1 ? i + 1 : i - 1;
            if (lines[i].fd < 0 || lines[i].revents == 0 || pass_bytes(c, lines[i].fd, lines[other].fd, i % 2 == 1))
                continue;
            close(lines[i].fd);
            close(lines[other].fd);
            lines[i].fd = lines[other].fd = -1; /* is not polled */
            lines[other].revents = 0;
        }
    }
    return NULL;
}

static void
start_cutter(cutter *c)
{
    *c = (cutter){ .cutting = 0 };
    c->listener = socket_to(0, true, &c->port);
    ck_assert_int_eq(pthread_create(&c->thread, NULL, pass_all, c), 0);
}

static void
stop_cutter(cutter *c)
{
    shutdown(c->listener, SHUT_RDWR);
    pthread_join(c->thread, NULL);
    close(c->listener);
}

static mc_error *
ask_for_rows(int *rows, const mc_postgres_query *query)
{
    mc_postgres_result *query_result;
    const mc_postgres_row *row = NULL;
    *rows = 0;
    MC_TRY(mc_postgres_start(&query_result, process.postgres, query, &ctx, pool));
    for (;; ++*rows) {
        MC_TRY(mc_postgres_next(&row, query_result));
        if (row == NULL)
            break;
    }
    mc_postgres_end(query_result);
    return MC_OK;
}

static uint64_t
connections_made(void)
{
    return mc_counter_value(process.metrics, MC_COUNT_postgres_connections_total);
}

/* An ended connection without a word: all rows come over another one, an empty answer is none. */
START_TEST(a_statement_whose_line_is_cut_is_asked_again)
{
    cutter c;
    start_cutter(&c);
    const char *connection = apr_psprintf(pool, "%s port=%d", database_connection(&postgres_server), c.port);
    mc_postgres_query forms[] = {
        { .sql = "select v from generate_series(1, 100) v" },
        { .sql = "select v from generate_series(1, 100) v", .by_key = true },
        { .sql = "select v from generate_series(1, 100) v", .plain = true },
        { .sql = "select v from generate_series(1, 100) v", .copy = true },
        { .sql = "select v from generate_series(1, 100) v", .copy = true, .stored_order = true }
    };
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        int rows = 0;
        forms[i].connection = connection;
        ck_ok(ask_for_rows(&rows, &forms[i]));
        ck_assert_int_eq(rows, 100);
        uint64_t before = connections_made();
        atomic_store(&c.cutting, 1);
        ck_ok(ask_for_rows(&rows, &forms[i]));
        ck_assert_int_eq(rows, 100);
        ck_assert_uint_eq(connections_made(), before + 1);
        ck_assert_int_eq(c.cutting, 0);
    }
    mc_postgres_destroy(process.postgres);
    process.postgres = NULL;
    stop_cutter(&c);
}
END_TEST

/* What follows the error of a COPY comes with its second half: the connection is at rest, and serves again. */
START_TEST(an_error_that_comes_in_pieces_ends_its_statement)
{
    cutter c;
    start_cutter(&c);
    const char *connection = apr_psprintf(pool, "%s port=%d", database_connection(&postgres_server), c.port);
    const mc_postgres_query fails = { .connection = connection,
                                      .sql = "select 10 / (4 - v) from generate_series(1, 9) v",
                                      .copy = true };
    const mc_postgres_query works = { .connection = connection, .sql = "select 1", .copy = true };
    int rows = 0;
    ck_ok(ask_for_rows(&rows, &works));
    atomic_store(&c.splitting, true);
    for (int i = 0; i < 3; i++) {
        ck_fails(UPSTREAM, ask_for_rows(&rows, &fails));
        ck_assert_int_eq(rows, 3);
        ck_ok(ask_for_rows(&rows, &works));
        ck_assert_int_eq(rows, 1);
    }
    ck_assert_uint_eq(connections_made(), 1);
    mc_postgres_destroy(process.postgres);
    process.postgres = NULL;
    stop_cutter(&c);
}
END_TEST

POSTGRES_MAIN("postgres_cut", CONNECTIONS, a_statement_whose_line_is_cut_is_asked_again,
              an_error_that_comes_in_pieces_ends_its_statement)
