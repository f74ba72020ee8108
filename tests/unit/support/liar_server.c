#include "liar_server.h"

#include <arpa/inet.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "unit.h"

static void
lie_on_connection(liar_server *liar, int connection)
{
    char request[65536];
    for (int i = 0; i < liar->answers && recv(connection, request, sizeof(request), 0) > 0; i++) {
        atomic_fetch_add(&liar->asked, 1);
        (void)!send(connection, liar->answer, liar->first, MSG_NOSIGNAL);
        if (liar->first > 0)
            usleep(1000); /* so that the pieces are apart most of the time; the result is the same where they are not */
        (void)!send(connection, liar->answer + liar->first, liar->size - liar->first, MSG_NOSIGNAL);
    }
    close(connection);
}

static void *
lie_to_all(void *baton)
{
    liar_server *liar = baton;
    for (int connection; (connection = accept(liar->listener, NULL, NULL)) >= 0;) {
        atomic_fetch_add(&liar->accepted, 1);
        lie_on_connection(liar, connection);
    }
    return NULL;
}

void
start_liar(liar_server *liar, const char *answer, size_t size, size_t first, int answers)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t address_size = sizeof(address);
    *liar = (liar_server){ .answer = answer, .size = size, .first = first, .answers = answers };
    liar->listener = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_eq(bind(liar->listener, (struct sockaddr *)&address, address_size), 0);
    ck_assert_int_eq(getsockname(liar->listener, (struct sockaddr *)&address, &address_size), 0);
    ck_assert_int_eq(listen(liar->listener, 8), 0);
    liar->port = ntohs(address.sin_port);
    ck_assert_int_eq(pthread_create(&liar->thread, NULL, lie_to_all, liar), 0);
}

/* No connection may be open: the thread serves one at a time, to its end. */
void
stop_liar(liar_server *liar)
{
    shutdown(liar->listener, SHUT_RDWR);
    pthread_join(liar->thread, NULL);
    close(liar->listener);
}

char *
ask_port(int port, const void *request, size_t size, const char *end)
{
    const struct sockaddr_in address = { .sin_family = AF_INET,
                                         .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                         .sin_port = htons((uint16_t)port) };
    char *answer = apr_pcalloc(pool, 1 << 20);
    size_t got = 0;
    int line = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_eq(connect(line, (const struct sockaddr *)&address, sizeof(address)), 0);
    ck_assert_int_eq(send(line, request, size, MSG_NOSIGNAL), (ssize_t)size);
    while (got < (1 << 20) - 1) {
        ssize_t count = recv(line, answer + got, (1 << 20) - 1 - got, 0);
        if (count <= 0)
            break;
        got += (size_t)count;
        if (memmem(answer, got, end, strlen(end)) != NULL)
            break;
    }
    close(line);
    return answer;
}
