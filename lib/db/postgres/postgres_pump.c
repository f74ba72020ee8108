/* The bytes between libpq and a server, by way of a pair of sockets. */
#include "db/postgres/postgres_pump.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mapcache/error.h"

/* Bytes that either end of the pair has room for, or as many as the kernel allows: libpq's own piece is 8 KB. */
#define ROOM_BYTES (256 * 1024)

static void
close_sockets(mc_pg_pump *pump)
{
    if (pump->joined) {
        close(pump->outside);
        close(pump->inside);
    }
    free(pump->unsent);
    *pump = (mc_pg_pump){ 0 };
}

static bool
is_theirs(const mc_pg_pump *pump, const PGconn *pg)
{
    struct stat status;
    return fstat(PQsocket(pg), &status) == 0 && status.st_ino == pump->theirs && S_ISSOCK(status.st_mode);
}

/* libpq's descriptor becomes one end of the pair; what the descriptor was before has another number from now on. */
bool
mc_pg_pump_join(mc_pg_pump *pump, PGconn *pg)
{
    int pair[2], room = ROOM_BYTES;
    struct stat status;
    if (pump->joined)
        return true;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) != 0)
        return false;
    int outside = fcntl(PQsocket(pg), F_DUPFD_CLOEXEC, 0);
    if (outside < 0 || fstat(pair[0], &status) != 0 || dup3(pair[0], PQsocket(pg), O_CLOEXEC) < 0) {
        if (outside >= 0)
            close(outside);
        close(pair[0]);
        close(pair[1]);
        return false;
    }
    close(pair[0]);
    (void)setsockopt(pair[1], SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
    (void)setsockopt(PQsocket(pg), SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
    *pump = (mc_pg_pump){ .joined = true, .outside = outside, .inside = pair[1], .theirs = status.st_ino };
    return true;
}

void
mc_pg_pump_follow(mc_pg_pump *pump, PGconn *pg)
{
    if (pump->joined && !is_theirs(pump, pg))
        close_sockets(pump);
}

int
mc_pg_pump_socket(const mc_pg_pump *pump, const PGconn *pg)
{
    return pump->joined ? pump->outside : PQsocket(pg);
}

/* The answer to a request for encryption is one letter, and no message; but 'E' is the first one of a message that says
 * what is the matter. */
static bool
is_before_messages(const PGconn *pg)
{
    return PQstatus(pg) == CONNECTION_SSL_STARTUP || PQstatus(pg) == CONNECTION_GSS_STARTUP;
}

void
mc_pg_pump_failed(mc_pg_pump *pump, int failure)
{
    pump->failure = failure;
    (void)shutdown(pump->inside, SHUT_WR);
}

size_t
mc_pg_pump_in(mc_pg_pump *pump, PGconn *pg)
{
    char bytes[MC_PG_PUMP_BYTES];
    bool encrypted = PQsslInUse(pg) || PQgssEncInUse(pg);
    bool letter = !encrypted && is_before_messages(pg);
    pump->asked = false;
    ssize_t size = recv(pump->outside, bytes, letter ? 1 : sizeof(bytes), MSG_DONTWAIT);
    if (size < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (size <= 0) {
        mc_pg_pump_failed(pump, size < 0 ? errno : 0);
        return 0;
    }
    if (!encrypted && (!letter || bytes[0] == 'E'))
        pump->complaint = mc_pg_frames_pass(&pump->frames, bytes, (size_t)size);
    if (pump->complaint == NULL && send(pump->inside, bytes, (size_t)size, MSG_NOSIGNAL) != size)
        pump->complaint = "what it sends is not wanted";
    return (size_t)size;
}

int
mc_pg_pump_waiting(const PGconn *pg)
{
    int waiting = 0;
    return ioctl(PQsocket(pg), FIONREAD, &waiting) == 0 ? waiting : 0;
}

/* Sends what there is room for; what is left becomes, or stays, what is unsent. */
static bool
send_outside(mc_pg_pump *pump, const char *bytes, size_t size)
{
    while (size > 0 && !pump->deaf) {
        ssize_t sent = send(pump->outside, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno != EAGAIN && errno != EINTR)
            pump->deaf = true; /* reading shows what is the matter, and perhaps the server's last words */
        if (sent < 0 && errno == EAGAIN)
            break;
        bytes += sent > 0 ? sent : 0;
        size -= sent > 0 ? (size_t)sent : 0;
    }
    char *before = pump->unsent;
    bool all = size == 0 || pump->deaf;
    pump->unsent_size = all ? 0 : size;
    pump->unsent = all ? NULL : malloc(size);
    MC_ASSERT(all || pump->unsent != NULL);
    if (!all)
        memcpy(pump->unsent, bytes, size);
    free(before);
    return all;
}

mc_pg_out
mc_pg_pump_out(mc_pg_pump *pump)
{
    char bytes[MC_PG_PUMP_BYTES];
    mc_pg_out out = MC_PG_OUT_NOTHING;
    if (!pump->joined)
        return out;
    if (pump->unsent != NULL && !send_outside(pump, pump->unsent, pump->unsent_size))
        return MC_PG_OUT_LEFT;
    for (ssize_t size = sizeof(bytes); size == sizeof(bytes);) {
        size = recv(pump->inside, bytes, sizeof(bytes), MSG_DONTWAIT);
        if (size > 0 && !send_outside(pump, bytes, (size_t)size))
            return MC_PG_OUT_LEFT;
        if (size > 0)
            out = MC_PG_OUT_GONE;
    }
    pump->asked = pump->asked || out == MC_PG_OUT_GONE;
    return out;
}

void
mc_pg_pump_close(mc_pg_pump *pump)
{
    (void)mc_pg_pump_out(pump);
    close_sockets(pump);
}
