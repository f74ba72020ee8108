/*
 * Any bytes as what a PostgreSQL server sends amid a COPY, in pieces, to the real libpq with the reader of rows past it
 * in between. The rows that come out are those of the book (PostgreSQL's manual, "Message Formats"), in their order and
 * with a zero byte behind each.
 */
#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "db/postgres/postgres_frames.c"
#include "db/postgres/postgres_pump.c"
#include "db/postgres/postgres_rows.c"

#include "fuzz_support.h"

enum { STEPS = 64, MESSAGES_MOST = 4096, PIECES = 48 /* about, at most */ };

static const char greeting[] = "R\0\0\0\10\0\0\0\0Z\0\0\0\5I";
static const char copy_begins[] = "H\0\0\0\7\1\0\0";

static int listener = -1;
static char address[160];

/* A server of our own, in this very thread: it takes what libpq sends without a look at it. */
static void
listen_at_address(void)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    char folder[] = "/tmp/fuzz_pgrows.XXXXXX";
    MC_ASSERT(mkdtemp(folder) != NULL);
    (void)snprintf(at.sun_path, sizeof(at.sun_path), "%s/.s.PGSQL.5432", folder);
    (void)snprintf(address, sizeof(address), "host=%s port=5432 user=x dbname=x sslmode=disable gssencmode=disable",
                   folder);
    listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    MC_ASSERT(listener >= 0 && bind(listener, (struct sockaddr *)&at, sizeof(at)) == 0 && listen(listener, 8) == 0);
}

static void
leave_address(void)
{
    char path[200];
    char *folder = strchr(address, '/');
    if (folder == NULL)
        return;
    folder[strcspn(folder, " ")] = '\0';
    (void)snprintf(path, sizeof(path), "%s/.s.PGSQL.5432", folder);
    (void)unlink(path);
    (void)rmdir(folder);
}

/* A connection at the beginning of a COPY. */
typedef struct copying {
    PGconn *pg;
    int server;
    mc_pg_pump pump;
    mc_pg_rows rows;
    bool ended; /* libpq has found the end of the connection */
} copying;

static void
say(int server, const void *bytes, size_t size)
{
    MC_ASSERT(send(server, bytes, size, MSG_NOSIGNAL) == (ssize_t)size);
}

/* What libpq has said is of no interest. */
static void
forget_said(int server)
{
    char bytes[1024];
    while (recv(server, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
        continue;
}

static void
begin_copy(copying *c)
{
    int steps = 0;
    *c = (copying){ .pg = PQconnectStart(address) };
    c->server = accept(listener, NULL, NULL);
    MC_ASSERT(c->pg != NULL && c->server >= 0);
    say(c->server, greeting, sizeof(greeting) - 1);
    while (PQconnectPoll(c->pg) != PGRES_POLLING_OK)
        MC_ASSERT(++steps < STEPS && PQstatus(c->pg) != CONNECTION_BAD);
    MC_ASSERT(PQsetnonblocking(c->pg, 1) == 0 && mc_pg_pump_join(&c->pump, c->pg) && PQsendQuery(c->pg, "COPY"));
    MC_ASSERT(PQflush(c->pg) == 0 && mc_pg_pump_out(&c->pump) == MC_PG_OUT_GONE);
    forget_said(c->server);
    say(c->server, copy_begins, sizeof(copy_begins) - 1);
    MC_ASSERT(mc_pg_pump_in(&c->pump, c->pg) == sizeof(copy_begins) - 1 && PQconsumeInput(c->pg) && !PQisBusy(c->pg));
    PGresult *result = PQgetResult(c->pg);
    MC_ASSERT(PQresultStatus(result) == PGRES_COPY_OUT);
    PQclear(result);
    mc_pg_rows_begin(&c->rows);
}

static void
end_copy(copying *c)
{
    mc_pg_rows_end(&c->rows);
    mc_pg_rows_free(&c->rows);
    PQfinish(c->pg);
    mc_pg_pump_close(&c->pump);
    close(c->server);
}

/* The same by the book, up to the first message that is for libpq: where such a message says that it is longer than
 * what stands in it, libpq takes the rest for messages, with or without us. */
typedef struct book {
    const uint8_t *rows[MESSAGES_MOST];
    size_t sizes[MESSAGES_MOST];
    int count;
    bool plain; /* nothing but rows, and perhaps one message that ends them */
} book;

static void
read_book(book *by, const uint8_t *data, size_t size)
{
    *by = (book){ .plain = true };
    for (size_t at = 0; size - at >= MC_PG_HEAD && by->count < MESSAGES_MOST;) {
        const uint8_t kind = data[at];
        const uint64_t length = mc_big_number(data + at + 1, 4);
        if (length < 4 || length >= size - at)
            break;
        if (kind == 'd' && length > 4) {
            by->rows[by->count] = data + at + MC_PG_HEAD;
            by->sizes[by->count++] = (size_t)length - 4;
        }
        if (kind == 'N' || kind == 'S' || kind == 'A')
            by->plain = false;
        if (kind != 'd')
            break;
        at += 1 + (size_t)length;
    }
    by->plain = by->plain && by->count < MESSAGES_MOST;
}

/* The rows that have arrived. False: none follows. */
static bool
take_rows(copying *c, int *seen, const book *by)
{
    char *row;
    int size;
    while ((size = mc_pg_rows_next(&row, &c->rows, &c->pump, c->pg)) > 0) {
        MC_ASSERT(row[size] == '\0' && (*seen < by->count || !by->plain));
        if (*seen < by->count)
            MC_ASSERT((size_t)size == by->sizes[*seen] && memcmp(row, by->rows[*seen], (size_t)size) == 0);
        memset(row, 'x', (size_t)size); /* it is the caller's until the next call */
        ++*seen;
    }
    return size == 0 && c->pump.complaint == NULL;
}

/* As postgres_wire.c takes what has come. False: nothing has. */
static bool
take_arrived(copying *c)
{
    const bool own = mc_pg_rows_go_past(&c->rows, &c->pump, c->pg);
    const size_t size = own ? mc_pg_rows_in(&c->rows, &c->pump) : mc_pg_pump_in(&c->pump, c->pg);
    c->rows.libpq_asked = c->rows.libpq_asked || !own;
    if (c->rows.libpq_asked && c->pump.complaint == NULL)
        do
            c->ended = c->ended || !PQconsumeInput(c->pg);
        while (mc_pg_pump_waiting(c->pg) > 0 && !c->ended);
    for (PGnotify *told; (told = PQnotifies(c->pg)) != NULL;)
        PQfreemem(told);
    return size > 0;
}

static void
ignore_notice(void *baton, const PGresult *result)
{
    (void)baton;
    (void)result;
}

/* In pieces of so many bytes, and the end of the connection behind them. */
static void
copy_in_pieces(const book *by, const uint8_t *data, size_t size, size_t piece)
{
    copying c;
    int seen = 0;
    begin_copy(&c);
    PQsetNoticeReceiver(c.pg, ignore_notice, NULL);
    bool more = take_rows(&c, &seen, by);
    for (size_t at = 0; more && at < size; at += piece) {
        say(c.server, data + at, piece < size - at ? piece : size - at);
        while (more && take_arrived(&c))
            more = take_rows(&c, &seen, by);
        more = more && take_rows(&c, &seen, by);
    }
    (void)shutdown(c.server, SHUT_WR);
    for (int i = 0; more && !c.ended && i < STEPS; i++) {
        (void)take_arrived(&c);
        more = take_rows(&c, &seen, by);
    }
    MC_ASSERT(!more || c.ended);
    MC_ASSERT(c.pump.complaint != NULL || seen >= by->count);
    end_copy(&c);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static book by;
    if (size < 2)
        return 0;
    if (listener < 0) {
        listen_at_address();
        atexit(leave_address);
    }
    const size_t piece = 1 + (size_t)data[0] * data[0] / 4 + size / PIECES;
    read_book(&by, data + 1, size - 1);
    copy_in_pieces(&by, data + 1, size - 1, piece);
    copy_in_pieces(&by, data + 1, size - 1, 64 * 1024);
    return 0;
}
