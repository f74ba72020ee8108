/*
 * A load generator: USERS users, each with a connection of its own and REQUESTS requests one after the other.
 * Usage: load PORT PATHS USERS REQUESTS RAMP INTERVAL TIMEOUT
 *
 * PATHS is a file with a path a line; request k of user i asks for line i * REQUESTS + k (begun anew at its end). The
 * users begin evenly over RAMP seconds. INTERVAL seconds lie between the times at which a user's requests are due; a
 * user never has two of them open, and one that is late sends at once. Both may be 0: as fast as it goes. Prints a line
 * for each request: when it was sent (microseconds since the start), how long it took, how late it was, the status
 * (0: no answer), bytes of the body, and 1 if these begin as a PNG does.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { HEAD_MAX = 16384, BLOCK = 1 << 18, SKETCH = 8 };

typedef enum { IDLE, SENDING, HEAD, BODY, CHUNK_SIZE, CHUNK_DATA, CHUNK_END, TRAILER, UNTIL_CLOSE, DONE, OVER } state;

typedef struct user {
    int number, socket, asked;
    state now;
    int64_t due, sent, left; /* left: bytes of the body or chunk that are still to come */
    char *request;
    size_t request_size, written;
    char head[HEAD_MAX];
    size_t head_size;
    bool reused, close;
    int status;
    int64_t bytes;
    uint8_t sketch[SKETCH]; /* the first bytes of the body */
} user;

static struct {
    int port, users, requests, poll, path_count;
    int64_t start, ramp, interval, timeout;
    char **paths;
    uint8_t block[BLOCK];
    user *all;
    int left;
} run;

static int64_t
clock_microseconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static void
exit_with_errno(const char *what)
{
    perror(what);
    exit(1);
}

static bool
is_png(const uint8_t *bytes, int64_t count)
{
    return count > SKETCH && memcmp(bytes, "\x89PNG\r\n\x1a\n", SKETCH) == 0;
}

static void
hang_up(user *u)
{
    if (u->socket >= 0)
        close(u->socket);
    u->socket = -1;
}

/* The request has its answer, or will not get one. */
static void
finish_request(user *u, bool good)
{
    int64_t end = clock_microseconds();
    printf("%lld %lld %lld %d %lld %d\n", (long long)(u->sent - run.start), (long long)(end - u->sent),
           (long long)(u->sent - u->due), good ? u->status : 0, (long long)u->bytes, is_png(u->sketch, u->bytes));
    if (!good || u->close)
        hang_up(u);
    u->asked++;
    u->due = run.interval > 0 ? u->due + run.interval : end;
    u->now = u->asked < run.requests ? IDLE : OVER;
    if (u->now == OVER) {
        hang_up(u);
        run.left--;
    }
}

static void
dial_server(user *u)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons((uint16_t)run.port) };
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    u->socket = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (u->socket < 0)
        exit_with_errno("socket");
    int on = 1;
    setsockopt(u->socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    if (connect(u->socket, (struct sockaddr *)&address, sizeof(address)) != 0 && errno != EINPROGRESS) {
        hang_up(u);
        return;
    }
    struct epoll_event event = { .events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = u };
    if (epoll_ctl(run.poll, EPOLL_CTL_ADD, u->socket, &event) != 0)
        exit_with_errno("epoll_ctl");
}

static void send_more(user *u);

/* Sends the request from its beginning; on a new connection if there is none. */
static void
ask_server(user *u)
{
    u->reused = u->socket >= 0;
    u->written = u->head_size = 0;
    u->bytes = 0;
    u->status = 0;
    u->close = false;
    u->now = SENDING;
    if (!u->reused)
        dial_server(u);
    if (u->socket < 0)
        finish_request(u, false);
    else if (u->reused)
        send_more(u);
}

static void
start_request(user *u)
{
    const char *path =
        run.paths[((size_t)u->number * (size_t)run.requests + (size_t)u->asked) % (size_t)run.path_count];
    free(u->request);
    if (asprintf(
            &u->request,
            "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nUser-Agent: load\r\nAccept: */*\r\nAccept-Encoding: gzip\r\n\r\n",
            path, run.port) < 0)
        exit_with_errno("asprintf");
    u->request_size = strlen(u->request);
    u->sent = clock_microseconds();
    ask_server(u);
}

/* The connection broke. A kept one may have been closed by the server meanwhile: then the request is sent once more. */
static void
end_broken_connection(user *u)
{
    bool again = u->reused && u->head_size == 0;
    hang_up(u);
    if (again)
        ask_server(u);
    else
        finish_request(u, u->now == UNTIL_CLOSE && u->bytes > 0);
}

static void
send_more(user *u)
{
    while (u->written < u->request_size) {
        ssize_t size = send(u->socket, u->request + u->written, u->request_size - u->written, MSG_NOSIGNAL);
        if (size < 0 && (errno == EAGAIN || errno == ENOTCONN))
            return;
        if (size < 0) {
            end_broken_connection(u);
            return;
        }
        u->written += (size_t)size;
    }
    u->now = HEAD;
}

static const char *
find_header_field(const char *head, const char *name)
{
    size_t size = strlen(name);
    for (const char *line = strstr(head, "\r\n"); line != NULL; line = strstr(line + 2, "\r\n"))
        if (strncasecmp(line + 2, name, size) == 0 && line[2 + size] == ':')
            return line + 3 + size + strspn(line + 3 + size, " ");
    return NULL;
}

/* What follows the head, by its fields (RFC 9112, 6.3). */
static void
understand_head(user *u)
{
    const char *length = find_header_field(u->head, "Content-Length"),
               *coding = find_header_field(u->head, "Transfer-Encoding");
    const char *connection = find_header_field(u->head, "Connection");
    u->status = u->head_size > 12 ? atoi(u->head + 9) : 0;
    u->close = connection != NULL && strncasecmp(connection, "close", 5) == 0;
    u->left = length == NULL ? 0 : atoll(length);
    if (coding != NULL && strncasecmp(coding, "chunked", 7) == 0)
        u->now = CHUNK_SIZE;
    else if (length == NULL)
        u->now = UNTIL_CLOSE;
    else
        u->now = u->left > 0 ? BODY : DONE;
}

/* Head, size of a chunk or line of a trailer: bytes up to and with an end. Returns how many were taken; *whole says if
 * the end was among them. */
static size_t
take_until(user *u, const uint8_t *bytes, size_t count, const char *end, bool *whole)
{
    size_t size = strlen(end);
    for (size_t i = 0; i < count && u->head_size + 1 < HEAD_MAX; i++) {
        u->head[u->head_size++] = (char)bytes[i];
        if (u->head_size >= size && memcmp(u->head + u->head_size - size, end, size) == 0) {
            u->head[u->head_size] = '\0';
            *whole = true;
            return i + 1;
        }
    }
    *whole = false;
    return count;
}

static size_t
take_body_bytes(user *u, const uint8_t *bytes, size_t count)
{
    size_t size = u->now == UNTIL_CLOSE || (int64_t)count < u->left ? count : (size_t)u->left;
    for (size_t i = 0; i < size && u->bytes + (int64_t)i < SKETCH; i++)
        u->sketch[u->bytes + (int64_t)i] = bytes[i];
    u->bytes += (int64_t)size;
    if (u->now == UNTIL_CLOSE)
        return size;
    u->left -= (int64_t)size;
    if (u->left == 0)
        u->now = u->now == BODY ? DONE : CHUNK_END;
    return size;
}

/* One step through what was received; returns how many bytes it took. */
static size_t
step_response(user *u, const uint8_t *bytes, size_t count)
{
    bool whole = false;
    size_t taken;
    if (u->now == BODY || u->now == CHUNK_DATA || u->now == UNTIL_CLOSE)
        return take_body_bytes(u, bytes, count);
    taken = take_until(u, bytes, count, u->now == HEAD ? "\r\n\r\n" : "\r\n", &whole);
    if (!whole)
        return taken;
    if (u->now == HEAD) {
        understand_head(u);
    } else if (u->now == CHUNK_SIZE) {
        u->left = strtoll(u->head, NULL, 16);
        u->now = u->left > 0 ? CHUNK_DATA : TRAILER;
    } else if (u->now == CHUNK_END) {
        u->now = CHUNK_SIZE;
    } else if (u->head_size == 2) {
        u->now = DONE;
    }
    u->head_size = 0;
    return taken;
}

static void
receive_bytes(user *u)
{
    while (u->socket >= 0 && u->now > SENDING && u->now < DONE) {
        ssize_t size = recv(u->socket, run.block, BLOCK, 0);
        if (size < 0 && errno == EAGAIN)
            return;
        if (size <= 0) {
            end_broken_connection(u);
            return;
        }
        u->reused = false; /* an answer has begun */
        for (size_t at = 0; at < (size_t)size && u->now < DONE;)
            at += step_response(u, run.block + at, (size_t)size - at);
        if (u->now == DONE)
            finish_request(u, true);
    }
}

/* Begins what is due, ends what waits too long; returns milliseconds until the next of them. */
static int
look_at_clock(void)
{
    int64_t time = clock_microseconds(), next = time + 1000000;
    for (int i = 0; i < run.users; i++) {
        user *u = &run.all[i];
        if (u->now == IDLE && u->due <= time)
            start_request(u);
        else if (u->now > IDLE && u->now < DONE && u->sent + run.timeout <= time)
            finish_request(u, false);
        int64_t then = u->now == IDLE ? u->due : u->sent + run.timeout;
        if (u->now != OVER && then < next)
            next = then;
    }
    return next <= time ? 0 : (int)((next - time + 999) / 1000);
}

static void
read_load_paths(const char *file)
{
    FILE *in = fopen(file, "r");
    char *line = NULL;
    size_t room = 0;
    ssize_t size;
    if (in == NULL)
        exit_with_errno(file);
    while ((size = getline(&line, &room, in)) > 1) {
        line[size - 1] = '\0';
        run.paths = realloc(run.paths, sizeof(*run.paths) * (size_t)(run.path_count + 1));
        run.paths[run.path_count++] = strdup(line);
    }
    fclose(in);
    free(line);
    if (run.path_count == 0) {
        fprintf(stderr, "%s: no paths\n", file);
        exit(1);
    }
}

int
main(int argc, char **argv)
{
    if (argc != 8) {
        fprintf(stderr, "usage: load PORT PATHS USERS REQUESTS RAMP INTERVAL TIMEOUT\n");
        return 1;
    }
    run.port = atoi(argv[1]);
    read_load_paths(argv[2]);
    run.left = run.users = atoi(argv[3]);
    run.requests = atoi(argv[4]);
    run.ramp = (int64_t)(atof(argv[5]) * 1e6);
    run.interval = (int64_t)(atof(argv[6]) * 1e6);
    run.timeout = (int64_t)(atof(argv[7]) * 1e6);
    run.all = calloc((size_t)run.users, sizeof(user));
    run.poll = epoll_create1(EPOLL_CLOEXEC);
    if (run.users < 1 || run.requests < 1 || run.all == NULL || run.poll < 0)
        exit_with_errno("load");
    run.start = clock_microseconds();
    for (int i = 0; i < run.users; i++) {
        run.all[i].number = i;
        run.all[i].socket = -1;
        run.all[i].due = run.start + run.ramp * i / run.users;
    }
    while (run.left > 0) {
        struct epoll_event events[64];
        int count = epoll_wait(run.poll, events, 64, look_at_clock());
        for (int i = 0; i < count; i++) {
            user *u = events[i].data.ptr;
            if (u->now == SENDING && (events[i].events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) != 0)
                send_more(u);
            if (u->now == IDLE && (events[i].events & (EPOLLRDHUP | EPOLLHUP)) != 0)
                hang_up(u);
            receive_bytes(u);
        }
    }
    return 0;
}
