#include "lock/memcached.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "remote/stream.h"

enum { OWED_MAX = 64, COMMAND_MAX = MC_MEMCACHED_KEY_MAX + 40 };

/* A key that was ordered, of which nobody knows whether it is there: the answer is still to come. */
typedef struct owed_answer {
    mc_stream *stream;
    char key[MC_MEMCACHED_KEY_MAX + 1];
    apr_time_t expires; /* the key itself */
} owed_answer;

struct mc_memcached {
    char *host;
    int port;
    pthread_mutex_t lock; /* of all below */
    owed_answer owed[OWED_MAX];
    int owed_count;
};

/* A command under way: until when, and for whom. */
typedef struct exchange {
    mc_memcached *server;
    mc_remote *remote;
    const char *key; /* to be added; NULL: nothing is */
    int expiry;      /* of that key, seconds */
    apr_time_t begun;
    mc_ctx ctx; /* with the deadline of this command */
    mc_remote_call call;
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

void
mc_memcached_destroy(mc_memcached *server)
{
    while (server->owed_count > 0)
        mc_stream_close(server->owed[--server->owed_count].stream);
    pthread_mutex_destroy(&server->lock);
    free(server->host);
    free(server);
}

/* NULL: the process has no servers, or too many. */
static mc_remote *
find_memcached(const mc_memcached *server, const mc_ctx *ctx)
{
    const mc_remote_address address = { .kind = "memcached", .host = server->host, .port = server->port };
    if (ctx->process == NULL || ctx->process->remotes == NULL)
        return NULL;
    return mc_remote_find(ctx->process->remotes, &address);
}

bool
mc_memcached_is_usable(const mc_memcached *server, mc_ctx *ctx)
{
    mc_remote *remote = find_memcached(server, ctx);
    return remote != NULL && mc_remote_admits(remote);
}

/*
 * An addition without an answer may still be made, and would keep everybody out until it expires. Its connection is
 * kept, and once it says that the key has been added, the key is removed.
 */
static void
remember_owed(const exchange *e, mc_stream *stream)
{
    mc_memcached *server = e->server;
    pthread_mutex_lock(&server->lock);
    bool kept = server->owed_count < OWED_MAX;
    if (kept) {
        owed_answer *owed = &server->owed[server->owed_count++];
        owed->stream = stream;
        owed->expires = e->begun + apr_time_from_sec(e->expiry);
        snprintf(owed->key, sizeof(owed->key), "%s", e->key);
    }
    pthread_mutex_unlock(&server->lock);
    if (!kept)
        mc_stream_close(stream);
}

/* False while the answer is still to come. The order to remove is not waited for. */
static bool
settle_owed(const owed_answer *owed, apr_pool_t *pool)
{
    char *answer, command[COMMAND_MAX];
    size_t length;
    apr_time_t now = mc_clock_now();
    mc_ctx at_once = { .pool = pool, .deadline = now };
    const mc_remote_call call = { .ctx = &at_once, .pool = pool };
    mc_stream_hand_over(owed->stream, &call);
    mc_error *error = mc_stream_line(&answer, &length, owed->stream);
    if (error != MC_OK && error->kind == MC_ERR_UNAVAILABLE && now < owed->expires)
        return false;
    int size = snprintf(command, sizeof(command), "delete %s\r\n", owed->key);
    bool added = error == MC_OK && strcmp(answer, "STORED") == 0;
    if (added && now < owed->expires - APR_USEC_PER_SEC) /* then it may be another one's */
        mc_error_ignore(mc_stream_send(owed->stream, command, (size_t)size));
    mc_stream_close(owed->stream);
    return true;
}

static void
settle_all_owed(mc_memcached *server, apr_pool_t *pool)
{
    pthread_mutex_lock(&server->lock);
    for (int i = server->owed_count - 1; i >= 0; i--)
        if (settle_owed(&server->owed[i], pool))
            server->owed[i] = server->owed[--server->owed_count];
    pthread_mutex_unlock(&server->lock);
}

/* One command and its answer, a line and nothing behind it. */
static mc_error *
exchange_on_stream(char **answer, const char *command, mc_stream *stream)
{
    size_t size;
    MC_TRY(mc_stream_send(stream, command, strlen(command)));
    MC_TRY(mc_stream_line(answer, &size, stream));
    return mc_stream_has_unread(stream) ? mc_stream_nonsense(stream, *answer) : MC_OK;
}

/* The end of a failed command: a kept connection that the server had ended is no failure (*again). */
static mc_error *
end_failed_exchange(bool *again, mc_error *error, mc_stream *stream, const exchange *e)
{
    *again = stream != NULL && mc_stream_has_ended(stream) && !mc_stream_is_fresh(stream);
    if (stream != NULL && mc_stream_was_silent(stream) && e->key != NULL)
        remember_owed(e, stream);
    else if (stream != NULL)
        mc_stream_close(stream);
    if (*again)
        return MC_OK;
    mc_remote_judge(e->remote, error, e->begun, e->call.pool);
    return error->kind == MC_ERR_UNAVAILABLE || error->kind == MC_ERR_IO
               ? error
               : mc_error_wrap(e->call.pool, error, MC_ERR_IO, "the lock server");
}

/* On a kept connection that the server ends at this moment the command is sent once more, on a new one. */
static mc_error *
exchange_line(char answer[MC_STREAM_LINE_MAX + 1], const char *command, exchange *e)
{
    if (e->remote == NULL)
        return mc_error_create(e->call.pool, MC_ERR_IO, "there is no connection to memcached");
    settle_all_owed(e->server, e->call.pool);
    for (bool again = false;;) {
        mc_stream *stream = NULL;
        char *line;
        mc_error *error = mc_stream_open(&stream, e->remote, again, &e->call);
        if (error == MC_OK)
            error = exchange_on_stream(&line, command, stream);
        if (error == MC_OK) {
            snprintf(answer, MC_STREAM_LINE_MAX + 1, "%s", line);
            mc_stream_keep(stream);
            return MC_OK;
        }
        MC_TRY(end_failed_exchange(&again, error, stream, e));
    }
}

static void
begin_exchange(exchange *e, mc_memcached *server, apr_time_t until, mc_ctx *ctx, apr_pool_t *pool)
{
    *e = (exchange){ .server = server, .remote = find_memcached(server, ctx), .begun = mc_clock_now(), .ctx = *ctx };
    e->ctx.deadline = until;
    e->call = (mc_remote_call){ .ctx = &e->ctx, .pool = pool };
}

static mc_error *
answer_failure(const exchange *e, const char *answer)
{
    mc_error *error = mc_error_create(e->call.pool, MC_ERR_IO, "%s: %s", mc_remote_name(e->remote), answer);
    mc_remote_judge(e->remote, error, e->begun, e->call.pool);
    return error;
}

mc_error *
mc_memcached_add(bool *added, mc_memcached *server, const char *key, int expiry, apr_time_t until, mc_ctx *ctx,
                 apr_pool_t *pool)
{
    exchange e;
    char answer[MC_STREAM_LINE_MAX + 1];
    char command[COMMAND_MAX];
    begin_exchange(&e, server, until, ctx, pool);
    e.key = key;
    e.expiry = expiry;
    snprintf(command, sizeof(command), "add %s 0 %d 1\r\n1\r\n", key, expiry);
    MC_TRY(exchange_line(answer, command, &e));
    *added = strcmp(answer, "STORED") == 0;
    return *added || strcmp(answer, "NOT_STORED") == 0 ? MC_OK : answer_failure(&e, answer);
}

mc_error *
mc_memcached_remove(mc_memcached *server, const char *key, apr_time_t until, mc_ctx *ctx, apr_pool_t *pool)
{
    exchange e;
    char answer[MC_STREAM_LINE_MAX + 1];
    char command[COMMAND_MAX];
    begin_exchange(&e, server, until, ctx, pool);
    snprintf(command, sizeof(command), "delete %s\r\n", key);
    MC_TRY(exchange_line(answer, command, &e));
    bool gone = strcmp(answer, "DELETED") == 0 || strcmp(answer, "NOT_FOUND") == 0;
    return gone ? MC_OK : answer_failure(&e, answer);
}
