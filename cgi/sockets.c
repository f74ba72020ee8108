/* Listening sockets: see sockets.h. */
#include "sockets.h"

#include <apr_strings.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "text/text.h"

static bool
is_listening(int descriptor)
{
    int listening = 0;
    socklen_t size = sizeof(listening);
    return getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) == 0 && listening != 0;
}

/* A local socket that nobody listens on any more is left over from a process that did not end in order. */
static mc_error *
remove_stale(const struct sockaddr_un *address, apr_pool_t *pool)
{
    int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (probe < 0)
        return mc_error_create(pool, MC_ERR_IO, "no socket: %s", strerror(errno));
    bool answered = connect(probe, (const struct sockaddr *)address, sizeof(*address)) == 0;
    int reason = errno;
    close(probe);
    if (answered)
        return mc_error_create(pool, MC_ERR_IO, "%s: another process listens there", address->sun_path);
    if (reason == ECONNREFUSED)
        unlink(address->sun_path);
    return MC_OK;
}

static mc_error *
listen_local(mc_sockets *sockets, const char *path, int backlog, apr_pool_t *pool)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    if (strlen(path) >= sizeof(address.sun_path))
        return mc_error_create(pool, MC_ERR_CONFIG, "%s: a socket's path has at most %lu characters", path,
                               (unsigned long)sizeof(address.sun_path) - 1);
    memcpy(address.sun_path, path, strlen(path) + 1);
    MC_TRY(remove_stale(&address, pool));
    int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (descriptor < 0 || bind(descriptor, (const struct sockaddr *)&address, sizeof(address)) != 0 ||
        listen(descriptor, backlog) != 0) {
        mc_error *error = mc_error_create(pool, MC_ERR_IO, "%s: %s", path, strerror(errno));
        if (descriptor >= 0)
            close(descriptor);
        return error;
    }
    sockets->descriptors[sockets->count++] = descriptor;
    sockets->path = path;
    return MC_OK;
}

static int
open_listener(const struct addrinfo *at, int backlog)
{
    int on = 1;
    int descriptor = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (descriptor < 0)
        return -1;
    setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(descriptor, at->ai_addr, at->ai_addrlen) == 0 && listen(descriptor, backlog) == 0)
        return descriptor;
    int reason = errno;
    close(descriptor);
    errno = reason;
    return -1;
}

/* HOST:PORT, [HOST]:PORT or :PORT, as host and port. */
static bool
split_address(char **host, const char **port, const char *address, apr_pool_t *pool)
{
    const char *colon = strrchr(address, ':');
    int number;
    if (colon == NULL || !mc_parse_int(&number, colon + 1, 1, 65535))
        return false;
    size_t length = (size_t)(colon - address);
    if (length >= 2 && address[0] == '[' && address[length - 1] == ']') {
        address++;
        length -= 2;
    }
    *host = length == 0 ? NULL : apr_pstrmemdup(pool, address, length);
    *port = colon + 1;
    return true;
}

static mc_error *
listen_network(mc_sockets *sockets, const char *address, int backlog, apr_pool_t *pool)
{
    char *host;
    const char *port;
    if (!split_address(&host, &port, address, pool))
        return mc_error_create(pool, MC_ERR_CONFIG, "'%s' is neither HOST:PORT nor the path of a local socket",
                               address);
    const struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE };
    struct addrinfo *found;
    int wrong = getaddrinfo(host, port, &hints, &found);
    if (wrong != 0)
        return mc_error_create(pool, MC_ERR_IO, "%s: %s", address, gai_strerror(wrong));
    for (const struct addrinfo *at = found; at != NULL && sockets->count < MC_SOCKETS_MAX; at = at->ai_next) {
        int descriptor = open_listener(at, backlog);
        if (descriptor >= 0)
            sockets->descriptors[sockets->count++] = descriptor;
    }
    int reason = errno;
    freeaddrinfo(found);
    if (sockets->count == 0)
        return mc_error_create(pool, MC_ERR_IO, "%s: %s", address, strerror(reason));
    return MC_OK;
}

/* sd_listen_fds(3): LISTEN_PID is ours and LISTEN_FDS sockets follow descriptor 2. */
static void
take_passed(mc_sockets *sockets)
{
    enum { FIRST = 3 };
    const char *process = getenv("LISTEN_PID");
    const char *passed = getenv("LISTEN_FDS");
    int id;
    int count;
    if (process == NULL || passed == NULL || !mc_parse_int(&id, process, 1, INT32_MAX) || id != (int)getpid() ||
        !mc_parse_int(&count, passed, 1, MC_SOCKETS_MAX))
        return;
    for (int i = 0; i < count; i++)
        if (is_listening(FIRST + i)) {
            fcntl(FIRST + i, F_SETFD, FD_CLOEXEC);
            sockets->descriptors[sockets->count++] = FIRST + i;
        }
}

mc_error *
mc_sockets_open(mc_sockets *sockets, const char *address, int backlog, apr_pool_t *pool)
{
    *sockets = (mc_sockets){ .count = 0 };
    if (address != NULL && address[0] == '/')
        return listen_local(sockets, address, backlog, pool);
    if (address != NULL)
        return listen_network(sockets, address, backlog, pool);
    take_passed(sockets);
    sockets->spawned = sockets->count == 0 && is_listening(STDIN_FILENO);
    if (sockets->spawned)
        sockets->descriptors[sockets->count++] = STDIN_FILENO;
    return MC_OK;
}

void
mc_sockets_remove(const mc_sockets *sockets)
{
    if (sockets->path != NULL)
        unlink(sockets->path);
}
