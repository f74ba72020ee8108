/* Sockets to servers: names are resolved, addresses tried in turn, each wait is bounded. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/resolve.h"
#include "base/wait.h"
#include "remote/remote_private.h"

/* Less without an answer may be the request's own hurry. */
#define TELLING_TIME (APR_USEC_PER_SEC / 2)

/* So many of them in a row, without an answer between them, are the server's fault all the same. */
enum { LATE_IN_A_ROW = 8 };

static apr_interval_time_t
longest_silence(const mc_remote_call *call)
{
    return call->silence > 0 ? call->silence : MC_REMOTE_SILENCE;
}

mc_error *
mc_remote_wait(int descriptor, short events, mc_remote *remote, const mc_remote_call *call)
{
    struct pollfd polled = { .fd = descriptor, .events = events };
    apr_interval_time_t silence = longest_silence(call);
    apr_interval_time_t time = mc_ctx_remaining(call->ctx, silence);
    switch (mc_wait_socket(&polled, mc_clock_now() + time, call->ctx)) {
    case MC_WAIT_READY:
        return MC_OK;
    case MC_WAIT_GONE:
        return mc_error_create(call->pool, MC_ERR_UNAVAILABLE, "the client has gone");
    case MC_WAIT_LATE:
        break;
    }
    if (time < silence && time < TELLING_TIME && atomic_fetch_add(&remote->late, 1) < LATE_IN_A_ROW)
        return mc_error_create(call->pool, MC_ERR_UNAVAILABLE, "no time was left for an answer of %s", remote->name);
    return mc_remote_failure(remote, "no answer in time", call->pool);
}

static void
set_remote_port(mc_address *address, int port)
{
    if (address->socket.ss_family == AF_INET6)
        ((struct sockaddr_in6 *)&address->socket)->sin6_port = htons((uint16_t)port);
    else
        ((struct sockaddr_in *)&address->socket)->sin_port = htons((uint16_t)port);
}

/* *descriptor stays -1, with *reason, where nobody listens. */
static mc_error *
connect_to(int *descriptor, int *reason, const struct sockaddr *address, socklen_t address_size, mc_remote *remote,
           const mc_remote_call *call)
{
    int on = 1;
    socklen_t size = sizeof(*reason);
    int made = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    *reason = errno;
    if (made < 0)
        return MC_OK;
    if (address->sa_family != AF_UNIX)
        (void)setsockopt(made, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    if (connect(made, address, address_size) == 0) {
        *descriptor = made;
        return MC_OK;
    }
    *reason = errno;
    mc_error *error = *reason == EINPROGRESS ? mc_remote_wait(made, POLLOUT, remote, call) : MC_OK;
    if (error == MC_OK && *reason == EINPROGRESS && getsockopt(made, SOL_SOCKET, SO_ERROR, reason, &size) == 0 &&
        *reason == 0)
        *descriptor = made;
    else
        close(made);
    return error;
}

static mc_error *
connect_local(int *descriptor, int *reason, mc_remote *remote, const mc_remote_call *call)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    if (strlen(remote->address.socket) >= sizeof(address.sun_path))
        return mc_remote_failure(remote, "the path of the socket is too long", call->pool);
    strcpy(address.sun_path, remote->address.socket);
    return connect_to(descriptor, reason, (const struct sockaddr *)&address, sizeof(address), remote, call);
}

static mc_error *
resolve_remote(mc_addresses *found, mc_remote *remote, const mc_remote_call *call)
{
    apr_interval_time_t silence = longest_silence(call);
    apr_interval_time_t time = mc_ctx_remaining(call->ctx, silence);
    mc_error *error = mc_resolve_host(found, remote->address.host, mc_clock_now() + time, call->ctx, call->pool);
    if (error == MC_OK || error->kind == MC_ERR_UNAVAILABLE)
        return error;
    bool hurried = error->kind == MC_ERR_TIMEOUT && time < silence && time < TELLING_TIME;
    return mc_error_wrap(call->pool, error, hurried ? MC_ERR_UNAVAILABLE : MC_ERR_IO, "%s", remote->name);
}

/* An address at which nobody answers leaves time for the others. */
static mc_error *
connect_resolved(int *descriptor, int *reason, mc_remote *remote, const mc_remote_call *call)
{
    mc_addresses found;
    MC_TRY(resolve_remote(&found, remote, call));
    for (int i = 0; i < found.count && *descriptor < 0; i++) {
        bool last = i == found.count - 1;
        mc_remote_call part = *call;
        set_remote_port(&found.at[i], remote->address.port);
        part.silence = longest_silence(call) / (found.count - i);
        mc_error *error = connect_to(descriptor, reason, (const struct sockaddr *)&found.at[i].socket, found.at[i].size,
                                     remote, &part);
        if (error != MC_OK && (last || error->kind == MC_ERR_UNAVAILABLE))
            return error;
    }
    return MC_OK;
}

mc_error *
mc_remote_connect(int *descriptor, mc_remote *remote, const mc_remote_call *call)
{
    int reason = 0;
    *descriptor = -1;
    if (remote->address.host == NULL)
        MC_TRY(connect_local(descriptor, &reason, remote, call));
    else
        MC_TRY(connect_resolved(descriptor, &reason, remote, call));
    return *descriptor >= 0 ? MC_OK : mc_remote_failure(remote, strerror(reason), call->pool);
}
