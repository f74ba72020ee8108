/* A server's answer to the request for encryption: one letter, or the beginning of a message. */
#include "../../../../lib/db/postgres/postgres_frames.c"
#include "../../../../lib/db/postgres/postgres_pump.c"

#include <apr_strings.h>
#include <netinet/in.h>
#include <poll.h>

#include "unit.h"

/* A socket that listens on a port of its own. */
static int
listen_anywhere(int *port)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof(address);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(listener, (const struct sockaddr *)&address, size), 0);
    ck_assert_int_eq(listen(listener, 1), 0);
    ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&address, &size), 0);
    *port = ntohs(address.sin_port);
    return listener;
}

/* Until libpq waits for the answer to its request for encryption. */
static PGconn *
ask_for_encryption(int port)
{
    PGconn *pg = PQconnectStart(
        apr_psprintf(pool, "host=127.0.0.1 port=%d user=u dbname=d sslmode=require gssencmode=disable", port));
    PostgresPollingStatusType state = PGRES_POLLING_WRITING;
    while (state != PGRES_POLLING_READING) {
        struct pollfd polled = { PQsocket(pg), POLLOUT, 0 };
        ck_assert_int_eq(poll(&polled, 1, 10000), 1);
        state = PQconnectPoll(pg);
        ck_assert_int_ne(state, PGRES_POLLING_FAILED);
    }
    ck_assert_int_eq(PQstatus(pg), CONNECTION_SSL_STARTUP);
    return pg;
}

/* How many bytes of a message's head have been seen after that answer, of which no more than the letter is taken. */
static size_t
head_after(const char *answer)
{
    int port, listener = listen_anywhere(&port);
    PGconn *pg = ask_for_encryption(port);
    int server = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    mc_pg_pump pump = { 0 };
    ck_assert(mc_pg_pump_join(&pump, pg));
    ck_assert_int_eq(send(server, answer, strlen(answer), MSG_NOSIGNAL), (ssize_t)strlen(answer));
    struct pollfd polled = { mc_pg_pump_socket(&pump, pg), POLLIN, 0 };
    ck_assert_int_eq(poll(&polled, 1, 10000), 1);
    ck_assert_uint_eq(mc_pg_pump_in(&pump, pg), 1);
    ck_assert_int_eq(mc_pg_pump_waiting(pg), 1);
    ck_assert_ptr_null(pump.complaint);
    size_t seen = pump.frames.head_size;
    PQfinish(pg);
    mc_pg_pump_close(&pump);
    close(server);
    close(listener);
    return seen;
}

START_TEST(only_an_error_is_a_message)
{
    ck_assert_uint_eq(head_after("S"), 0);
    ck_assert_uint_eq(head_after("N"), 0);
    ck_assert_uint_eq(head_after("Elength and words"), 1);
}
END_TEST

UNIT_MAIN("postgres_letter", only_an_error_is_a_message)
