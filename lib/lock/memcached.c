#include "lock/memcached.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/resolve.h"
#include "base/wait.h"

enum { IDLE_MAX = 64, OWED_MAX = 64, ANSWER_MAX = 512 /* bytes of a line */, COMMAND_MAX = MC_MEMCACHED_KEY_MAX + 40 };

/* Microseconds: a server that says nothing for so long is not there, and is left alone for so long then. */
#define SILENCE (2 * APR_USEC_PER_SEC)
/* Less without an answer may be the request's own hurry. */
#define TELLING_TIME (1 * APR_USEC_PER_SEC)
#define QUARANTINE (5 * APR_USEC_PER_SEC)

/* A key that was ordered, of which nobody knows whether it is there: the answer is still to come. */
typedef struct owed_answer {
    int descriptor;
    char key[MC_MEMCACHED_KEY_MAX + 1];
    apr_time_t expires; /* the key itself */
} owed_answer;

struct mc_memcached {
    char *host;
    int port;
    pthread_mutex_t lock; /* of all below */
    int idle[IDLE_MAX];   /* sockets */
    int idle_count;
    apr_time_t shunned_until; /* mc_clock_now(); 0: it works */
    owed_answer owed[OWED_MAX];
    int owed_count;
};

/* A command under way: until when, and for whom. */
typedef struct exchange {
    mc_memcached *server;
    apr_time_t until;
    bool silent;     /* it ended without an answer to what was sent */
    bool hurried;    /* so soon is the end that no answer until then says nothing about the server */
    const char *key; /* to be added; NULL: nothing is */
    int expiry;      /* of that key, seconds */
    apr_time_t begun;
    mc_ctx *ctx;
    apr_pool_t *pool;
} exchange;

mc_memcached *
mc_memcached_create(const char *host, int port)
{
    mc_memcached *server = calloc(1, sizeof(*server));
    MC_ASSERT(server != NULL);
    server->host = strdup(host);
    MC_ASSERT(server->host != NULL);
    server->port = port;
    pthread_mutex_init(&server->lock, NULL);
    return server;
}

static void
close_idle_sockets(mc_memcached *server)
{
    while (server->idle_count > 0)
        close(server->idle[--server->idle_count]);
}

void
mc_memcached_destroy(mc_memcached *server)
{
    close_idle_sockets(server);
    while (server->owed_count > 0)
        close(server->owed[--server->owed_count].descriptor);
    pthread_mutex_destroy(&server->lock);
    free(server->host);
    free(server);
}

bool
mc_memcached_is_usable(mc_memcached *server)
{
    apr_time_t now = mc_clock_now();
    pthread_mutex_lock(&server->lock);
    bool usable = now >= server->shunned_until;
    if (usable && server->shunned_until != 0)
        server->shunned_until = now + QUARANTINE; /* for all but this caller */
    pthread_mutex_unlock(&server->lock);
    return usable;
}

static void
judge_server(mc_memcached *server, bool works)
{
    pthread_mutex_lock(&server->lock);
    server->shunned_until = works ? 0 : mc_clock_now() + QUARANTINE;
    if (!works)
        close_idle_sockets(server);
    pthread_mutex_unlock(&server->lock);
}

static mc_error *
memcached_failure(const exchange *e, const char *reason)
{
    judge_server(e->server, false);
    return mc_error_create(e->pool, MC_ERR_IO, "memcached at %s:%d: %s", e->server->host, e->server->port, reason);
}

static mc_error *
wait_for_memcached(int descriptor, short events, exchange *e)
{
    struct pollfd polled = { .fd = descriptor, .events = events };
    switch (mc_wait_socket(&polled, e->until, e->ctx)) {
    case MC_WAIT_READY:
        return MC_OK;
    case MC_WAIT_GONE:
        return mc_error_create(e->pool, MC_ERR_UNAVAILABLE, "the client has gone");
    case MC_WAIT_LATE:
        break;
    }
    if (e->hurried)
        return mc_error_create(e->pool, MC_ERR_UNAVAILABLE, "no time was left for an answer of memcached");
    return memcached_failure(e, "no answer in time");
}

static void
set_port(mc_address *address, int port)
{
    if (address->socket.ss_family == AF_INET6)
        ((struct sockaddr_in6 *)&address->socket)->sin6_port = htons((uint16_t)port);
    else
        ((struct sockaddr_in *)&address->socket)->sin_port = htons((uint16_t)port);
}

/* *descriptor stays -1, with *reason, where nobody listens. */
static mc_error *
connect_address(int *descriptor, int *reason, const mc_address *address, exchange *e)
{
    int on = 1;
    socklen_t size = sizeof(*reason);
    int made = socket(address->socket.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    *reason = errno;
    if (made < 0)
        return MC_OK;
    (void)setsockopt(made, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    if (connect(made, (const struct sockaddr *)&address->socket, address->size) == 0) {
        *descriptor = made;
        return MC_OK;
    }
    *reason = errno;
    mc_error *error = *reason == EINPROGRESS ? wait_for_memcached(made, POLLOUT, e) : MC_OK;
    if (error == MC_OK && *reason == EINPROGRESS && getsockopt(made, SOL_SOCKET, SO_ERROR, reason, &size) == 0 &&
        *reason == 0)
        *descriptor = made;
    else
        close(made);
    return error;
}

static mc_error *
connect_memcached(int *descriptor, exchange *e)
{
    mc_addresses found;
    int reason = 0;
    *descriptor = -1;
    mc_error *error = mc_resolve_host(&found, e->server->host, e->until, e->ctx, e->pool);
    if (error != MC_OK && error->kind == MC_ERR_TIMEOUT && e->hurried)
        error->kind = MC_ERR_UNAVAILABLE;
    if (error != MC_OK && error->kind != MC_ERR_UNAVAILABLE)
        return memcached_failure(e, error->message);
    MC_TRY(error);
    for (int i = 0; i < found.count && *descriptor < 0; i++) {
        set_port(&found.at[i], e->server->port);
        exchange part = *e; /* an address at which nobody answers leaves time for the others */
        bool last = i == found.count - 1;
        part.until -= last ? 0 : (e->until - mc_clock_now()) / (found.count - i) * (found.count - i - 1);
        part.hurried = part.hurried || !last;
        error = connect_address(descriptor, &reason, &found.at[i], &part);
        if (error != MC_OK && (last || mc_ctx_abandoned(e->ctx)))
            return error;
    }
    return *descriptor >= 0 ? MC_OK : memcached_failure(e, strerror(reason));
}

/* -1: there is none. */
static int
take_idle_socket(mc_memcached *server)
{
    int taken = -1;
    pthread_mutex_lock(&server->lock);
    while (taken < 0 && server->idle_count > 0) {
        taken = server->idle[--server->idle_count];
        struct pollfd polled = { .fd = taken, .events = POLLIN };
        if (poll(&polled, 1, 0) == 0)
            break;
        close(taken); /* the server has ended it, or says something that nobody asked for */
        taken = -1;
    }
    pthread_mutex_unlock(&server->lock);
    return taken;
}

static void
keep_socket(mc_memcached *server, int descriptor)
{
    pthread_mutex_lock(&server->lock);
    bool kept = server->idle_count < IDLE_MAX;
    if (kept)
        server->idle[server->idle_count++] = descriptor;
    pthread_mutex_unlock(&server->lock);
    if (!kept)
        close(descriptor);
}

static mc_error *
send_command(bool *ended, int descriptor, const char *command, exchange *e)
{
    size_t left = strlen(command);
    while (left > 0) {
        ssize_t sent = send(descriptor, command, left, MSG_NOSIGNAL);
        if (sent < 0 && (errno == EAGAIN || errno == EINTR)) {
            MC_TRY(wait_for_memcached(descriptor, POLLOUT, e));
            continue;
        }
        if (sent < 0) {
            *ended = true;
            return MC_OK;
        }
        command += sent;
        left -= (size_t)sent;
    }
    return MC_OK;
}

/* One line, without its end. *ended: the server has closed the connection. */
static mc_error *
receive_answer(bool *ended, char answer[ANSWER_MAX], int descriptor, exchange *e)
{
    size_t size = 0;
    for (;;) {
        ssize_t got = recv(descriptor, answer + size, ANSWER_MAX - 1 - size, 0);
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
            mc_error *error = wait_for_memcached(descriptor, POLLIN, e);
            e->silent = error != MC_OK && size == 0;
            MC_TRY(error);
            continue;
        }
        if (got <= 0) {
            *ended = true;
            return MC_OK;
        }
        size += (size_t)got;
        answer[size] = '\0';
        char *end = strstr(answer, "\r\n");
        if (end != NULL && end[2] == '\0' && strlen(answer) == size) {
            *end = '\0';
            return MC_OK;
        }
        if (end != NULL || strlen(answer) != size || size == ANSWER_MAX - 1)
            return memcached_failure(e, "an answer that is none");
    }
}

/*
 * An addition without an answer may still be made, and would keep everybody out until it expires. Its connection is
 * kept, and once it says that the key has been added, the key is removed.
 */
static void
remember_owed(const exchange *e, int descriptor)
{
    mc_memcached *server = e->server;
    pthread_mutex_lock(&server->lock);
    bool kept = server->owed_count < OWED_MAX;
    if (kept) {
        owed_answer *owed = &server->owed[server->owed_count++];
        owed->descriptor = descriptor;
        owed->expires = e->begun + apr_time_from_sec(e->expiry);
        snprintf(owed->key, sizeof(owed->key), "%s", e->key);
    }
    pthread_mutex_unlock(&server->lock);
    if (!kept)
        close(descriptor);
}

/* False while the answer is still to come. The order to remove is not waited for. */
static bool
settle_owed(const owed_answer *owed)
{
    char answer[ANSWER_MAX];
    char command[COMMAND_MAX];
    ssize_t got = recv(owed->descriptor, answer, sizeof(answer), 0);
    apr_time_t now = mc_clock_now();
    if (got < 0 && (errno == EAGAIN || errno == EINTR) && now < owed->expires)
        return false;
    int size = snprintf(command, sizeof(command), "delete %s\r\n", owed->key);
    bool added = got >= 6 && memcmp(answer, "STORED", 6) == 0;
    if (added && now < owed->expires - APR_USEC_PER_SEC) /* then it may be another one's */
        (void)!send(owed->descriptor, command, (size_t)size, MSG_NOSIGNAL);
    close(owed->descriptor);
    return true;
}

static void
settle_all_owed(mc_memcached *server)
{
    pthread_mutex_lock(&server->lock);
    for (int i = server->owed_count - 1; i >= 0; i--)
        if (settle_owed(&server->owed[i]))
            server->owed[i] = server->owed[--server->owed_count];
    pthread_mutex_unlock(&server->lock);
}

/* On a kept connection that the server ends at this moment the command is sent once more, on a new one. */
static mc_error *
exchange_line(char answer[ANSWER_MAX], const char *command, exchange *e)
{
    settle_all_owed(e->server);
    for (int descriptor = take_idle_socket(e->server);; descriptor = -1) {
        bool fresh = descriptor < 0;
        bool ended = false;
        if (fresh)
            MC_TRY(connect_memcached(&descriptor, e));
        mc_error *error = send_command(&ended, descriptor, command, e);
        if (error == MC_OK && !ended)
            error = receive_answer(&ended, answer, descriptor, e);
        if (error == MC_OK && !ended) {
            keep_socket(e->server, descriptor);
            judge_server(e->server, true);
            return MC_OK;
        }
        if (e->silent && e->key != NULL)
            remember_owed(e, descriptor);
        else
            close(descriptor);
        MC_TRY(error);
        if (fresh)
            return memcached_failure(e, "it ended the connection");
    }
}

static exchange
begin_exchange(mc_memcached *server, apr_time_t until, mc_ctx *ctx, apr_pool_t *pool)
{
    apr_time_t now = mc_clock_now();
    apr_time_t most = now + SILENCE;
    return (exchange){
        .server = server,
        .begun = now,
        .until = until < most ? until : most,
        .hurried = until < now + TELLING_TIME,
        .ctx = ctx,
        .pool = pool,
    };
}

mc_error *
mc_memcached_add(bool *added, mc_memcached *server, const char *key, int expiry, apr_time_t until, mc_ctx *ctx,
                 apr_pool_t *pool)
{
    exchange e = begin_exchange(server, until, ctx, pool);
    e.key = key;
    e.expiry = expiry;
    char answer[ANSWER_MAX];
    char command[COMMAND_MAX];
    snprintf(command, sizeof(command), "add %s 0 %d 1\r\n1\r\n", key, expiry);
    MC_TRY(exchange_line(answer, command, &e));
    *added = strcmp(answer, "STORED") == 0;
    return *added || strcmp(answer, "NOT_STORED") == 0 ? MC_OK : memcached_failure(&e, answer);
}

mc_error *
mc_memcached_remove(mc_memcached *server, const char *key, apr_time_t until, mc_ctx *ctx, apr_pool_t *pool)
{
    exchange e = begin_exchange(server, until, ctx, pool);
    char answer[ANSWER_MAX];
    char command[COMMAND_MAX];
    snprintf(command, sizeof(command), "delete %s\r\n", key);
    MC_TRY(exchange_line(answer, command, &e));
    bool gone = strcmp(answer, "DELETED") == 0 || strcmp(answer, "NOT_FOUND") == 0;
    return gone ? MC_OK : memcached_failure(&e, answer);
}
