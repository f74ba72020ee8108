#include "remote/stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/wait.h"
#include "remote/remote_private.h"

/* A connection that nobody has used for so long is not kept: servers and routers forget it. */
#define IDLE_TIME (60 * APR_USEC_PER_SEC)

mc_stream *
mc_stream_adopt(mc_remote *remote, int descriptor, const mc_remote_call *call)
{
    mc_stream *stream = calloc(1, sizeof(*stream));
    MC_ASSERT(stream != NULL);
    stream->remote = remote;
    stream->descriptor = descriptor;
    stream->call = call;
    stream->fresh = true;
    atomic_fetch_add(&remote->opened, 1);
    return stream;
}

void
mc_stream_free(mc_stream *stream)
{
    if (stream->session != NULL)
        stream->remote->engine->end(stream->session);
    close(stream->descriptor);
    atomic_fetch_sub(&stream->remote->opened, 1);
    free(stream);
}

void
mc_stream_close(mc_stream *stream)
{
    mc_stream_free(stream);
}

/* The settings of the server's TLS, made once. */
static mc_error *
prepare_tls(mc_remote *remote, apr_pool_t *pool)
{
    const mc_tls_engine *engine;
    MC_TRY(mc_tls_load(&engine, pool));
    mc_error *error = MC_OK;
    pthread_mutex_lock(&remote->lock);
    remote->engine = engine;
    if (remote->tls_settings == NULL)
        error = engine->prepare(&remote->tls_settings, &remote->tls, pool);
    pthread_mutex_unlock(&remote->lock);
    return error == MC_OK ? MC_OK : mc_error_wrap(pool, error, error->kind, "%s", remote->name);
}

static mc_error *
encrypt_stream(mc_stream *stream)
{
    mc_remote *remote = stream->remote;
    apr_pool_t *pool = stream->call->pool;
    MC_TRY(prepare_tls(remote, pool));
    const char *host = remote->tls.name != NULL ? remote->tls.name : remote->address.host;
    stream->session = remote->engine->begin(remote->tls_settings, stream->descriptor, host);
    if (stream->session == NULL)
        return mc_remote_failure(remote, "TLS cannot be begun", pool);
    for (;;) {
        mc_tls_wish wish;
        mc_error *error = remote->engine->shake(&wish, stream->session, pool);
        if (error != MC_OK)
            return mc_error_wrap(pool, error, error->kind, "%s", remote->name);
        if (wish.events == 0)
            return MC_OK;
        error = mc_remote_wait(stream->descriptor, wish.events, remote, stream->call);
        if (error != MC_OK && error->kind == MC_ERR_IO)
            return mc_error_wrap(pool, error, MC_ERR_IO, "%s does not answer to TLS: does it want <tls> at this port?",
                                 remote->name);
        if (error != MC_OK)
            return error;
    }
}

static mc_error *
greet_server(mc_stream *stream)
{
    const mc_remote_address *address = &stream->remote->address;
    if (address->tls != NULL)
        MC_TRY(encrypt_stream(stream));
    if (address->greeting_size == 0)
        return MC_OK;
    MC_TRY(mc_stream_send(stream, address->greeting, address->greeting_size));
    return address->greet(stream, address->greeting_commands);
}

mc_error *
mc_stream_open(mc_stream **stream, mc_remote *remote, bool fresh, const mc_remote_call *call)
{
    int descriptor;
    *stream = fresh ? NULL : mc_remote_take_idle(remote);
    if (*stream != NULL) {
        mc_stream_hand_over(*stream, call);
        return MC_OK;
    }
    MC_TRY(mc_remote_connect(&descriptor, remote, call));
    *stream = mc_stream_adopt(remote, descriptor, call);
    mc_error *error = greet_server(*stream);
    if (error != MC_OK) {
        mc_stream_free(*stream);
        *stream = NULL;
    }
    return error;
}

void
mc_stream_hand_over(mc_stream *stream, const mc_remote_call *call)
{
    stream->call = call;
    stream->fresh = stream->silent = stream->begun = false;
}

/* Whether nothing has come, and the connection is there, without waiting. */
static bool
is_quiet_stream(const mc_stream *stream)
{
    struct pollfd polled = { .fd = stream->descriptor, .events = POLLIN };
    return poll(&polled, 1, 0) == 0;
}

mc_stream *
mc_remote_take_idle(mc_remote *remote)
{
    mc_stream *taken = NULL;
    pthread_mutex_lock(&remote->lock);
    while (taken == NULL && remote->idle_count > 0) {
        taken = remote->idle[--remote->idle_count];
        if (mc_clock_now() - taken->kept_since < IDLE_TIME && is_quiet_stream(taken))
            break;
        mc_stream_free(taken); /* the server has ended it, or says something that nobody asked for */
        taken = NULL;
    }
    pthread_mutex_unlock(&remote->lock);
    return taken;
}

void
mc_remote_keep_idle(mc_remote *remote, mc_stream *stream)
{
    stream->call = NULL;
    stream->kept_since = mc_clock_now();
    pthread_mutex_lock(&remote->lock);
    bool kept = remote->idle_count < MC_REMOTE_IDLE_MAX;
    if (kept)
        remote->idle[remote->idle_count++] = stream;
    pthread_mutex_unlock(&remote->lock);
    if (!kept)
        mc_stream_free(stream);
}

void
mc_remote_close_idle(mc_remote *remote, bool all)
{
    int kept = 0;
    pthread_mutex_lock(&remote->lock);
    for (int i = 0; i < remote->idle_count; i++)
        if (all || mc_clock_now() - remote->idle[i]->kept_since >= IDLE_TIME)
            mc_stream_free(remote->idle[i]);
        else
            remote->idle[kept++] = remote->idle[i];
    remote->idle_count = kept;
    pthread_mutex_unlock(&remote->lock);
}

void
mc_stream_keep(mc_stream *stream)
{
    mc_remote *remote = stream->remote;
    bool whole = !mc_stream_has_unread(stream) && !stream->ended;
    mc_breaker_report(&remote->breaker, true, 0);
    atomic_store(&remote->late, 0);
    if (whole)
        mc_remote_keep_idle(remote, stream);
    else
        mc_stream_free(stream);
}

static mc_error *
stream_ended(mc_stream *stream)
{
    const mc_remote_address *address = &stream->remote->address;
    apr_pool_t *pool = stream->call->pool;
    stream->ended = true;
    if (!stream->fresh || stream->begun)
        return mc_remote_failure(stream->remote, "it ended the connection", pool);
    return mc_error_create(pool, MC_ERR_IO, "%s: it ended a new connection without an answer: is it a %s %s TLS?",
                           stream->remote->name, address->kind, address->tls == NULL ? "without" : "with");
}

/* As much as goes at once: bytes; 0: the connection has ended; -1: *events tells what to wait for. */
static ssize_t
push_bytes(mc_stream *stream, const void *bytes, size_t size, short *events)
{
    if (stream->session != NULL) {
        mc_tls_wish wish = { POLLOUT };
        ssize_t sent = stream->remote->engine->send(stream->session, bytes, size, &wish);
        *events = wish.events;
        return sent;
    }
    ssize_t sent = send(stream->descriptor, bytes, size, MSG_NOSIGNAL);
    *events = POLLOUT;
    if (sent >= 0)
        return sent;
    return errno == EAGAIN || errno == EINTR ? -1 : 0;
}

/* The same of what has come. */
static ssize_t
pull_bytes(mc_stream *stream, void *bytes, size_t size, short *events)
{
    if (stream->session != NULL) {
        mc_tls_wish wish = { POLLIN };
        ssize_t got = stream->remote->engine->receive(stream->session, bytes, size, &wish);
        *events = wish.events;
        return got;
    }
    ssize_t got = recv(stream->descriptor, bytes, size, 0);
    *events = POLLIN;
    if (got >= 0)
        return got;
    return errno == EAGAIN || errno == EINTR ? -1 : 0;
}

mc_error *
mc_stream_send(mc_stream *stream, const void *bytes, size_t size)
{
    const uint8_t *at = bytes;
    for (size_t left = size; left > 0;) {
        short events;
        ssize_t sent = push_bytes(stream, at, left, &events);
        if (sent == 0)
            return stream_ended(stream);
        if (sent < 0) {
            MC_TRY(mc_remote_wait(stream->descriptor, events, stream->remote, stream->call));
            continue;
        }
        at += sent;
        left -= (size_t)sent;
    }
    stream->begun = false;
    return MC_OK;
}

/* At least one byte, waiting for it. */
static mc_error *
receive_some(size_t *got, mc_stream *stream, void *out, size_t size)
{
    for (;;) {
        short events;
        ssize_t count = pull_bytes(stream, out, size, &events);
        if (count == 0)
            return stream_ended(stream);
        if (count > 0) {
            stream->begun = true;
            *got = (size_t)count;
            return MC_OK;
        }
        mc_error *error = mc_remote_wait(stream->descriptor, events, stream->remote, stream->call);
        stream->silent = error != MC_OK && !stream->begun;
        MC_TRY(error);
    }
}

/* More behind what is in the buffer and not read. */
static mc_error *
fill_stream_buffer(mc_stream *stream)
{
    size_t got;
    if (stream->begin > 0) {
        memmove(stream->buffer, stream->buffer + stream->begin, stream->end - stream->begin);
        stream->end -= stream->begin;
        stream->begin = 0;
    }
    MC_TRY(receive_some(&got, stream, stream->buffer + stream->end, sizeof(stream->buffer) - stream->end));
    stream->end += got;
    return MC_OK;
}

mc_error *
mc_stream_line(char **line, size_t *size, mc_stream *stream)
{
    size_t looked = 0; /* bytes of the line without an end */
    for (;;) {
        char *begin = (char *)stream->buffer + stream->begin;
        size_t there = stream->end - stream->begin;
        char *end = there > looked ? memchr(begin + looked, '\n', there - looked) : NULL;
        size_t length = end == NULL ? there : (size_t)(end - begin);
        if (length > MC_STREAM_LINE_MAX)
            return mc_stream_nonsense(stream, "a line without an end");
        if (end != NULL) {
            if (length == 0 || end[-1] != '\r' || memchr(begin, '\0', length) != NULL)
                return mc_stream_nonsense(stream, "a line that is none");
            end[-1] = '\0';
            stream->begin += length + 1;
            *line = begin;
            *size = length - 1;
            return MC_OK;
        }
        looked = there;
        MC_TRY(fill_stream_buffer(stream));
    }
}

mc_error *
mc_stream_bytes(mc_stream *stream, void *out, size_t size)
{
    uint8_t *at = out;
    while (size > 0) {
        size_t part = stream->end - stream->begin;
        if (part == 0 && size >= sizeof(stream->buffer)) { /* straight to its place */
            MC_TRY(receive_some(&part, stream, at, size));
        } else if (part == 0) {
            MC_TRY(fill_stream_buffer(stream));
            continue;
        } else {
            part = part < size ? part : size;
            memcpy(at, stream->buffer + stream->begin, part);
            stream->begin += part;
        }
        at += part;
        size -= part;
    }
    return MC_OK;
}

mc_error *
mc_stream_pass(mc_stream *stream, size_t size)
{
    char dropped[256];
    for (size_t part; size > 0; size -= part) {
        part = size < sizeof(dropped) ? size : sizeof(dropped);
        MC_TRY(mc_stream_bytes(stream, dropped, part));
    }
    return MC_OK;
}

mc_error *
mc_stream_value(mc_buf **value, mc_stream *stream, size_t size, size_t most)
{
    apr_pool_t *pool = stream->call->pool;
    if (size > most)
        return mc_error_create(pool, MC_ERR_CORRUPT, "%s: a value of %lu bytes; at most %lu are taken",
                               stream->remote->name, (unsigned long)size, (unsigned long)most);
    *value = mc_buf_attach(mc_buf_create(0, most), pool);
    MC_TRY(mc_buf_reserve(*value, size, pool));
    MC_TRY(mc_stream_bytes(stream, (*value)->data, size));
    (*value)->size = size;
    return MC_OK;
}

mc_error *
mc_stream_end_of_value(mc_stream *stream)
{
    char end[2];
    MC_TRY(mc_stream_bytes(stream, end, sizeof(end)));
    return end[0] == '\r' && end[1] == '\n' ? MC_OK : mc_stream_nonsense(stream, "a value without its end");
}

bool
mc_stream_wait(mc_stream *stream, apr_time_t until)
{
    struct pollfd polled = { .fd = stream->descriptor, .events = POLLIN };
    if (mc_stream_has_unread(stream))
        return true;
    return mc_wait_socket(&polled, until, stream->call->ctx) == MC_WAIT_READY;
}

bool
mc_stream_is_fresh(const mc_stream *stream)
{
    return stream->fresh;
}

bool
mc_stream_has_ended(const mc_stream *stream)
{
    return stream->ended;
}

bool
mc_stream_has_unread(const mc_stream *stream)
{
    return stream->end > stream->begin ||
           (stream->session != NULL && stream->remote->engine->has_unread(stream->session));
}

bool
mc_stream_was_silent(const mc_stream *stream)
{
    return stream->silent;
}

const mc_remote_call *
mc_stream_call(const mc_stream *stream)
{
    return stream->call;
}

mc_remote *
mc_stream_remote(const mc_stream *stream)
{
    return stream->remote;
}

mc_error *
mc_stream_nonsense(mc_stream *stream, const char *line)
{
    const mc_remote *remote = stream->remote;
    return mc_error_create(stream->call->pool, MC_ERR_CORRUPT, "%s: this is no answer of a %s: %.80s", remote->name,
                           remote->address.kind, line);
}
