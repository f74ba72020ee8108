/*
 * A load generator: USERS users, each with a connection of its own and REQUESTS requests one after the other.
 * Usage: load [-s SECONDS] [-a ADDRESS] [-n ADDRESSES] TARGET PATHS USERS REQUESTS RAMP INTERVAL TIMEOUT
 *
 * TARGET is a port of this machine (HTTP), or the path of a socket (FastCGI: the first part of a path is the script).
 * The users come from so many addresses, from ADDRESS on (127.0.0.1); connections by HTTP are made from them, FastCGI
 * tells them. After SECONDS (0: never) everything ends.
 *
 * PATHS is a file with a path a line; request k of user i asks for line i * REQUESTS + k (begun anew at its end). The
 * users begin evenly over RAMP seconds. INTERVAL seconds lie between the times at which a user's requests are due; a
 * user never has two of them open, and one that is late sends at once. Both may be 0: as fast as it goes. Prints a line
 * for each request: when it was sent (microseconds since the start), how long it took, how late it was, the status
 * (0: no answer; -1: none yet at the end), bytes of the body, 1 if these begin as a PNG does, and 1 if the answer says
 * when to try again. At the end, the error output has the most connections that there were at a time.
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
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { HEAD_MAX = 16384, BLOCK = 1 << 18, SKETCH = 8, FULL_WAIT = 5000 };

/* FastCGI 1.0. */
enum { RECORD_HEADER = 8, BEGIN_REQUEST = 1, END_REQUEST = 3, PARAMS = 4, STDIN = 5, STDOUT = 6 };

typedef enum { IDLE, SENDING, HEAD, BODY, CHUNK_SIZE, CHUNK_DATA, CHUNK_END, TRAILER, UNTIL_CLOSE, DONE, OVER } state;

typedef struct user {
    int number, socket, asked;
    state now;
    int64_t due, sent, left; /* left: bytes of the body or chunk that are still to come */
    char *request;
    size_t request_size, written;
    char head[HEAD_MAX];
    size_t head_size;
    bool reused, close, retry, told_when; /* retry: the socket's queue was full; told_when: Retry-After */
    uint8_t record[RECORD_HEADER];
    size_t record_size, content, padding; /* FastCGI: of the record's header; what is still to come of it */
    int status;
    int64_t bytes;
    uint8_t sketch[SKETCH]; /* the first bytes of the body */
} user;

static struct {
    int port, users, requests, poll, path_count;
    const char *gateway; /* path of the FastCGI socket, or NULL */
    uint32_t address;
    unsigned addresses;
    int64_t start, end, ramp, interval, timeout;
    int64_t *moments; /* when each user has to be looked at */
    int64_t next_look;
    int open, most_open;
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
    if (u->socket >= 0) {
        close(u->socket);
        run.open--;
    }
    u->socket = -1;
}

static void
look_again_at(user *u, int64_t moment)
{
    run.moments[u->number] = moment;
    if (moment < run.next_look)
        run.next_look = moment;
}

static uint32_t
client_address(const user *u)
{
    return run.address + (uint32_t)u->number % run.addresses;
}

static void
print_request(const user *u, int64_t end, int status)
{
    printf("%lld %lld %lld %d %lld %d %d\n", (long long)(u->sent - run.start), (long long)(end - u->sent),
           (long long)(u->sent - u->due), status, (long long)u->bytes, is_png(u->sketch, u->bytes), u->told_when);
}

/* The request has its answer, or will not get one. */
static void
finish_request(user *u, bool good)
{
    int64_t end = clock_microseconds();
    print_request(u, end, good ? u->status : 0);
    if (!good || u->close)
        hang_up(u);
    u->asked++;
    u->due = run.interval > 0 ? u->due + run.interval : end;
    u->now = u->asked < run.requests ? IDLE : OVER;
    look_again_at(u, u->now == IDLE ? u->due : INT64_MAX);
    if (u->now == OVER) {
        hang_up(u);
        run.left--;
    }
}

static int
connect_to_gateway(user *u)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    strncpy(address.sun_path, run.gateway, sizeof(address.sun_path) - 1);
    return connect(u->socket, (struct sockaddr *)&address, sizeof(address));
}

static int
connect_to_port(user *u)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons((uint16_t)run.port) };
    struct sockaddr_in own = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(client_address(u)) };
    int on = 1;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(u->socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    setsockopt(u->socket, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on));
    if (bind(u->socket, (struct sockaddr *)&own, sizeof(own)) != 0)
        exit_with_errno("bind");
    return connect(u->socket, (struct sockaddr *)&address, sizeof(address));
}

static void
dial_server(user *u)
{
    u->socket = socket(run.gateway != NULL ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (u->socket < 0)
        exit_with_errno("socket");
    run.open++;
    u->retry = false;
    u->record_size = u->content = u->padding = 0;
    if ((run.gateway != NULL ? connect_to_gateway(u) : connect_to_port(u)) != 0 && errno != EINPROGRESS) {
        u->retry = errno == EAGAIN; /* a local socket's queue is full */
        hang_up(u);
        return;
    }
    if (run.open > run.most_open)
        run.most_open = run.open;
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
    u->close = u->told_when = false;
    u->now = SENDING;
    if (!u->reused)
        dial_server(u);
    if (u->retry) {
        u->now = IDLE;
        look_again_at(u, clock_microseconds() + FULL_WAIT);
    } else if (u->socket < 0)
        finish_request(u, false);
    else if (u->reused)
        send_more(u);
}

static void
write_http(user *u, const char *path)
{
    int size = asprintf(
        &u->request,
        "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nUser-Agent: load\r\nAccept: */*\r\nAccept-Encoding: gzip\r\n\r\n",
        path, run.port);
    if (size < 0)
        exit_with_errno("asprintf");
    u->request_size = (size_t)size;
}

static void
write_record(FILE *out, int type, const char *content, size_t size)
{
    const uint8_t header[RECORD_HEADER] = { 1, (uint8_t)type, 0, 1, (uint8_t)(size >> 8), (uint8_t)size, 0, 0 };
    fwrite(header, 1, sizeof(header), out);
    fwrite(content, 1, size, out);
}

static void
write_variable(FILE *out, const char *name, const char *value, size_t size)
{
    fputc((int)strlen(name), out);
    if (size < 128) {
        fputc((int)size, out);
    } else {
        const uint8_t length[4] = { (uint8_t)(size >> 24 | 0x80), (uint8_t)(size >> 16), (uint8_t)(size >> 8),
                                    (uint8_t)size };
        fwrite(length, 1, sizeof(length), out);
    }
    fputs(name, out);
    fwrite(value, 1, size, out);
}

static void
write_fastcgi(user *u, const char *path)
{
    const char *query = strchrnul(path, '?');
    const char *rest = path + 1 + strcspn(path + 1, "/?");
    uint32_t from = client_address(u);
    char client[16], *variables;
    size_t size;
    snprintf(client, sizeof(client), "%u.%u.%u.%u", from >> 24, from >> 16 & 255, from >> 8 & 255, from & 255);
    FILE *out = open_memstream(&variables, &size);
    write_variable(out, "REQUEST_METHOD", "GET", 3);
    write_variable(out, "SCRIPT_NAME", path, (size_t)(rest - path));
    write_variable(out, "PATH_INFO", rest, (size_t)(query - rest));
    write_variable(out, "QUERY_STRING", query + (*query == '?'), strlen(query + (*query == '?')));
    write_variable(out, "SERVER_NAME", "127.0.0.1", 9);
    write_variable(out, "SERVER_PORT", "80", 2);
    write_variable(out, "REMOTE_ADDR", client, strlen(client));
    fclose(out);
    out = open_memstream(&u->request, &u->request_size);
    write_record(out, BEGIN_REQUEST, "\0\1\1\0\0\0\0\0", 8); /* a responder, whose connection is kept */
    write_record(out, PARAMS, variables, size);
    write_record(out, PARAMS, "", 0);
    write_record(out, STDIN, "", 0);
    fclose(out);
    free(variables);
}

static void
start_request(user *u)
{
    if (!u->retry) {
        const char *path =
            run.paths[((size_t)u->number * (size_t)run.requests + (size_t)u->asked) % (size_t)run.path_count];
        free(u->request);
        if (run.gateway != NULL)
            write_fastcgi(u, path);
        else
            write_http(u, path);
        u->sent = clock_microseconds();
        look_again_at(u, u->sent + run.timeout);
    }
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
        finish_request(u, u->now == UNTIL_CLOSE && u->bytes > 0 && run.gateway == NULL);
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
    u->told_when = find_header_field(u->head, "Retry-After") != NULL;
    if (run.gateway != NULL) {
        const char *status = find_header_field(u->head, "Status");
        u->status = status != NULL ? atoi(status) : 200;
        u->now = UNTIL_CLOSE;
        return;
    }
    u->left = length == NULL ? 0 : atoll(length);
    if (u->status == 204 || u->status == 304)
        u->now = DONE;
    else if (coding != NULL && strncasecmp(coding, "chunked", 7) == 0)
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

/* One step through records of FastCGI: their headers, or what they hold. */
static size_t
step_records(user *u, const uint8_t *bytes, size_t count)
{
    size_t taken = 0;
    if (u->content == 0 && u->padding == 0) {
        u->record[u->record_size++] = bytes[0];
        if (u->record_size == RECORD_HEADER) {
            u->record_size = 0;
            u->content = (size_t)u->record[4] << 8 | u->record[5];
            u->padding = u->record[6];
        }
        taken = 1;
    } else if (u->content > 0) {
        size_t size = count < u->content ? count : u->content;
        if (u->record[1] == STDOUT && u->now == HEAD && u->head_size == 0) {
            memcpy(u->head, "\r\n", 2); /* no line comes before the fields */
            u->head_size = 2;
        }
        taken = u->record[1] == STDOUT ? step_response(u, bytes, size) : size;
        u->content -= taken;
    } else {
        taken = count < u->padding ? count : u->padding;
        u->padding -= taken;
    }
    if (u->record[1] == END_REQUEST && taken > 0 && u->record_size == 0 && u->content == 0 && u->padding == 0)
        u->now = DONE;
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
            at += run.gateway != NULL ? step_records(u, run.block + at, (size_t)size - at)
                                      : step_response(u, run.block + at, (size_t)size - at);
        if (u->now == DONE)
            finish_request(u, true);
    }
}

/* The time is over: whoever waits has no answer yet. */
static void
end_run(int64_t time)
{
    for (int i = 0; i < run.users; i++)
        if (run.all[i].retry || (run.all[i].now > IDLE && run.all[i].now < DONE))
            print_request(&run.all[i], time, -1);
    run.left = 0;
}

/* Begins what is due, ends what waits too long; returns milliseconds until the next of them. */
static int
look_at_clock(void)
{
    int64_t time = clock_microseconds();
    if (run.end > 0 && time >= run.end)
        end_run(time);
    if (time >= run.next_look) {
        run.next_look = run.end > 0 ? run.end : INT64_MAX;
        for (int i = 0; i < run.users; i++) {
            user *u = &run.all[i];
            if (run.moments[i] <= time && u->now == IDLE)
                start_request(u);
            else if (run.moments[i] <= time && u->now != OVER)
                finish_request(u, false);
            if (run.moments[i] < run.next_look)
                run.next_look = run.moments[i];
        }
        time = clock_microseconds();
    }
    return run.left == 0 || run.next_look <= time ? 0
           : run.next_look - time > 1000000       ? 1000
                                                  : (int)((run.next_look - time + 999) / 1000);
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

/* The options before the seven words; false: they are not understood. */
static bool
read_load_options(int argc, char **argv)
{
    struct in_addr address = { htonl(INADDR_LOOPBACK) };
    int option;
    run.addresses = 1;
    while ((option = getopt(argc, argv, "s:a:n:")) != -1) {
        if (option == 's')
            run.end = (int64_t)(atof(optarg) * 1e6);
        else if (option == 'n')
            run.addresses = (unsigned)atoi(optarg);
        else if (option != 'a' || inet_aton(optarg, &address) == 0)
            return false;
    }
    run.address = ntohl(address.s_addr);
    return argc - optind == 7 && run.addresses > 0;
}

static void
prepare_load_run(char **words)
{
    if (strchr(words[0], '/') != NULL)
        run.gateway = words[0];
    run.port = atoi(words[0]);
    read_load_paths(words[1]);
    run.left = run.users = atoi(words[2]);
    run.requests = atoi(words[3]);
    run.ramp = (int64_t)(atof(words[4]) * 1e6);
    run.interval = (int64_t)(atof(words[5]) * 1e6);
    run.timeout = (int64_t)(atof(words[6]) * 1e6);
    run.all = calloc((size_t)run.users, sizeof(user));
    run.moments = calloc((size_t)run.users, sizeof(*run.moments));
    run.poll = epoll_create1(EPOLL_CLOEXEC);
    if (run.users < 1 || run.requests < 1 || run.all == NULL || run.moments == NULL || run.poll < 0)
        exit_with_errno("load");
    run.start = clock_microseconds();
    run.end += run.end > 0 ? run.start : 0;
    for (int i = 0; i < run.users; i++) {
        run.all[i].number = i;
        run.all[i].socket = -1;
        run.moments[i] = run.all[i].due = run.start + run.ramp * i / run.users;
    }
}

int
main(int argc, char **argv)
{
    if (!read_load_options(argc, argv)) {
        fprintf(stderr,
                "usage: load [-s SECONDS] [-a ADDRESS] [-n ADDRESSES] TARGET PATHS USERS REQUESTS RAMP INTERVAL "
                "TIMEOUT\n");
        return 1;
    }
    prepare_load_run(argv + optind);
    while (run.left > 0) {
        struct epoll_event events[64];
        int count = epoll_wait(run.poll, events, 64, look_at_clock());
        for (int i = 0; i < count && run.left > 0; i++) {
            user *u = events[i].data.ptr;
            if (u->now == SENDING && (events[i].events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) != 0)
                send_more(u);
            if (u->now == IDLE && (events[i].events & (EPOLLRDHUP | EPOLLHUP)) != 0)
                hang_up(u);
            receive_bytes(u);
        }
    }
    fprintf(stderr, "%d\n", run.most_open);
    return 0;
}
