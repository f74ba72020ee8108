/*
 * The least server around ST_AsMVT: a thread for each client, connections to the database that stay open, a prepared
 * statement for each table, and the bytes as they come. It keeps no tiles and packs nothing. Usage: asmvt PORT
 * CONNECTION [NAME STATEMENT]...
 *
 * A statement has the parameters level, column and row (from the top), and one value of one row. GET
 * /NAME/LEVEL/COLUMN/ROW asks for it; the answer is 200 with its bytes, 404 for a name that is none, 500 when the
 * database has failed.
 */
#include <libpq-fe.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum { REQUEST_MAX = 8192, NAME_MAX_BYTES = 64, BACKLOG = 64, IDLE_MAX = 16 };

static const char *connection_text;
static char **statements; /* name, text, name, text, ... */
static int statement_count;

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static PGconn *idle[IDLE_MAX]; /* connections that no client uses, under the guard */
static int idle_count;

/* Of no client any more, or of one that is new. */
static PGconn *
take_connection(void)
{
    pthread_mutex_lock(&guard);
    PGconn *kept = idle_count > 0 ? idle[--idle_count] : NULL;
    pthread_mutex_unlock(&guard);
    if (kept != NULL) {
        return kept;
    }
    PGconn *db = PQconnectdb(connection_text);
    for (int i = 0; i + 1 < statement_count && PQstatus(db) == CONNECTION_OK; i += 2) {
        PQclear(PQprepare(db, statements[i], statements[i + 1], 3, NULL));
    }
    return db;
}

static void
keep_connection(PGconn *db)
{
    pthread_mutex_lock(&guard);
    int kept = PQstatus(db) == CONNECTION_OK && idle_count < IDLE_MAX;
    if (kept) {
        idle[idle_count++] = db;
    }
    pthread_mutex_unlock(&guard);
    if (!kept) {
        PQfinish(db);
    }
}

static int
send_to_client(int client, struct iovec *parts, int count)
{
    while (count > 0) {
        ssize_t sent = writev(client, parts, count);
        if (sent <= 0) {
            return -1;
        }
        for (; count > 0 && (size_t)sent >= parts->iov_len; parts++, count--) {
            sent -= (ssize_t)parts->iov_len;
        }
        if (count > 0) {
            parts->iov_base = (char *)parts->iov_base + sent;
            parts->iov_len -= (size_t)sent;
        }
    }
    return 0;
}

static int
send_tile_response(int client, int status, char *body, size_t size)
{
    char head[256];
    int length =
        snprintf(head, sizeof head,
                 "HTTP/1.1 %d %s\r\nContent-Type: application/vnd.mapbox-vector-tile\r\nContent-Length: %zu\r\n\r\n",
                 status, status == 200 ? "OK" : "Error", size);
    struct iovec parts[2] = { { head, (size_t)length }, { body, size } };
    return send_to_client(client, parts, 2);
}

static int
answer_tile_query(int client, PGconn *db, const char *request)
{
    char name[NAME_MAX_BYTES], level[12], column[12], row[12];
    if (sscanf(request, "GET /%63[a-z0-9_]/%11[0-9]/%11[0-9]/%11[0-9]", name, level, column, row) != 4) {
        return send_tile_response(client, 404, NULL, 0);
    }
    const char *values[3] = { level, column, row };
    PGresult *found = PQexecPrepared(db, name, 3, values, NULL, NULL, 1);
    int good = PQresultStatus(found) == PGRES_TUPLES_OK && PQntuples(found) == 1;
    if (!good) {
        fprintf(stderr, "asmvt: %s", PQerrorMessage(db));
    }
    int failed = good ? send_tile_response(client, 200, PQgetvalue(found, 0, 0), (size_t)PQgetlength(found, 0, 0))
                      : send_tile_response(client, 500, NULL, 0);
    PQclear(found);
    return failed;
}

static void *
serve_client(void *with)
{
    int client = (int)(long)with, on = 1;
    char text[REQUEST_MAX];
    size_t have = 0;
    PGconn *db = take_connection();
    setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    for (;;) {
        ssize_t got = read(client, text + have, sizeof text - 1 - have);
        if (got <= 0) {
            break;
        }
        have += (size_t)got;
        text[have] = 0;
        char *end = strstr(text, "\r\n\r\n");
        if (end == NULL && have < sizeof text - 1) {
            continue;
        }
        if (end == NULL || answer_tile_query(client, db, text) != 0) {
            break;
        }
        have -= (size_t)(end + 4 - text);
        memmove(text, end + 4, have);
    }
    keep_connection(db);
    close(client);
    return NULL;
}

int
main(int argc, char **argv)
{
    if (argc < 5) {
        fprintf(stderr, "usage: asmvt PORT CONNECTION [NAME STATEMENT]...\n");
        return 2;
    }
    connection_text = argv[2];
    statements = argv + 3;
    statement_count = argc - 3;
    signal(SIGPIPE, SIG_IGN);
    int on = 1, listener = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons((unsigned short)atoi(argv[1])),
                                   .sin_addr = { htonl(INADDR_LOOPBACK) } };
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) != 0 || listen(listener, BACKLOG) != 0) {
        perror("asmvt");
        return 1;
    }
    for (;;) {
        int client = accept(listener, NULL, NULL);
        pthread_t thread;
        if (client >= 0 && pthread_create(&thread, NULL, serve_client, (void *)(long)client) == 0) {
            pthread_detach(thread);
        }
    }
}
