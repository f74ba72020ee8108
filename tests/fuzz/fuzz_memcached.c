/* Any answers of a memcached server, each of the input's lines of 0 to 255 bytes in a packet of its own: a line of the
 * protocol or an error, never what lies outside of what has come. */
#include "../../lib/lock/memcached.c"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fuzz_support.h"

/* Both ends of a line on which the server has said all that it says: a byte for the size, then as many bytes. */
static int
open_told_socket(int *peer, const uint8_t *data, size_t size)
{
    int ends[2];
    MC_ASSERT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
    while (size > 1) {
        size_t part = data[0] < size - 1 ? data[0] : size - 1;
        if (part > 0 && send(ends[1], data + 1, part, MSG_NOSIGNAL) < 0)
            break;
        data += 1 + part;
        size -= 1 + part;
    }
    shutdown(ends[1], SHUT_WR);
    *peer = ends[1];
    return ends[0];
}

static void
read_answers(mc_remote *remote, const uint8_t *data, size_t size, mc_ctx *ctx, apr_pool_t *pool)
{
    int peer, descriptor = open_told_socket(&peer, data, size);
    const mc_remote_call call = { .ctx = ctx, .pool = pool, .silence = APR_USEC_PER_SEC };
    mc_stream *stream = mc_stream_adopt(remote, descriptor, &call);
    mc_error *error = MC_OK;
    for (int i = 0; i < 8 && error == MC_OK; i++) {
        char *answer;
        error = exchange_on_stream(&answer, "delete x\r\n", stream);
        if (error == MC_OK)
            MC_ASSERT(strlen(answer) <= MC_STREAM_LINE_MAX && strstr(answer, "\r\n") == NULL);
    }
    mc_stream_close(stream);
    close(peer);
}

static void
settle_answer(mc_remote *remote, const uint8_t *data, size_t size, apr_pool_t *pool)
{
    int peer, descriptor = open_told_socket(&peer, data, size);
    char command[COMMAND_MAX] = "";
    const owed_answer owed = { .stream = mc_stream_adopt(remote, descriptor, NULL),
                               .key = "k",
                               .expires = mc_clock_now() + APR_USEC_PER_SEC * 60 };
    MC_ASSERT(settle_owed(&owed, pool)); /* the line has ended: there is an answer, or none will come */
    ssize_t got = recv(peer, command, sizeof(command) - 1, 0);
    if (got < 0 && errno == ECONNRESET) /* something was left unread on the other side */
        got = recv(peer, command, sizeof(command) - 1, 0);
    MC_ASSERT(got <= 0 || strcmp(command, "delete k\r\n") == 0);
    close(peer);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static mc_remotes *remotes;
    apr_pool_t *pool;
    apr_pool_create(&pool, NULL);
    mc_ctx ctx = { .pool = pool };
    if (remotes == NULL)
        remotes = mc_remotes_create();
    mc_remote *remote = mc_remote_find(remotes, &(mc_remote_address){ .kind = "any", .host = "127.0.0.1", .port = 1 });
    read_answers(remote, data, size, &ctx, pool);
    settle_answer(remote, data, size, pool);
    apr_pool_destroy(pool);
    return 0;
}
