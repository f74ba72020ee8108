/* See postgres_rows.h. */
#include "db/postgres/postgres_rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/bytes.h"
#include "mapcache/error.h"

/* Bytes of the buffer at first, and of a reading at least. A connection keeps KEPT_ROOM at most. */
#define FIRST_ROOM ((size_t)128 * 1024)
#define READ_LEAST ((size_t)32 * 1024)
/* And at most: what is behind a row counts as come for that row, for which MC_PG_ROW_MAX has room. */
#define READ_MOST ((size_t)512 * 1024)
#define KEPT_ROOM ((size_t)1024 * 1024)

void
mc_pg_rows_begin(mc_pg_rows *rows)
{
    rows->past = rows->is_covered = rows->short_read = false;
    rows->libpq_asked = true;
    rows->owed = rows->begin = rows->end = 0;
}

void
mc_pg_rows_free(mc_pg_rows *rows)
{
    PQfreemem(rows->row);
    free(rows->bytes);
    *rows = (mc_pg_rows){ 0 };
}

void
mc_pg_rows_end(mc_pg_rows *rows)
{
    if (rows->room > KEPT_ROOM) {
        mc_pg_rows_free(rows);
        return;
    }
    PQfreemem(rows->row);
    rows->row = NULL;
    mc_pg_rows_begin(rows);
}

bool
mc_pg_rows_go_past(mc_pg_rows *rows, const mc_pg_pump *pump, const PGconn *pg)
{
    if (!rows->past && pump->joined && !PQsslInUse((PGconn *)pg) && !PQgssEncInUse((PGconn *)pg) &&
        pump->frames.head_size == 0) {
        rows->past = true;
        rows->owed = pump->frames.left;
    }
    return rows->past;
}

/* To the end of the pair that libpq reads from. */
static void
hand_to_libpq(mc_pg_rows *rows, mc_pg_pump *pump, size_t size)
{
    if (send(pump->inside, rows->bytes + rows->begin, size, MSG_NOSIGNAL) != (ssize_t)size)
        pump->complaint = "libpq does not take what it sends";
    rows->begin += size;
    rows->libpq_asked = true;
}

/* Grows with what has come, never with what a message says of itself. */
static void
make_reading_room(mc_pg_rows *rows)
{
    size_t used = rows->end - rows->begin;
    if (rows->room > rows->end + READ_LEAST)
        return;
    if (used > 0 && rows->begin > 0)
        memmove(rows->bytes, rows->bytes + rows->begin, used);
    rows->begin = 0;
    rows->end = used;
    if (used < rows->room / 2)
        return;
    rows->room = rows->room == 0 ? FIRST_ROOM : rows->room * 2;
    rows->bytes = realloc(rows->bytes, rows->room);
    MC_ASSERT(rows->bytes != NULL);
}

size_t
mc_pg_rows_in(mc_pg_rows *rows, mc_pg_pump *pump)
{
    make_reading_room(rows);
    char *to = rows->bytes + rows->end;
    size_t room = rows->room - rows->end - 1;
    room = room < READ_MOST ? room : READ_MOST;
    if (rows->owed > 0 && room > MC_PG_PUMP_BYTES) /* for libpq, which gets all of it at once */
        room = MC_PG_PUMP_BYTES;
    ssize_t size = recv(pump->outside, to, room, MSG_DONTWAIT);
    pump->asked = false;
    rows->short_read = size < (ssize_t)room;
    if (size < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (size <= 0) {
        mc_pg_pump_failed(pump, size < 0 ? errno : 0);
        rows->libpq_asked = true;
        return 0;
    }
    pump->complaint = mc_pg_frames_pass(&pump->frames, to, (size_t)size);
    if (pump->complaint != NULL)
        return (size_t)size;
    rows->end += (size_t)size;
    if (rows->owed > 0) {
        size_t theirs = rows->owed < (size_t)size ? rows->owed : (size_t)size;
        rows->owed -= theirs;
        hand_to_libpq(rows, pump, theirs);
    }
    return (size_t)size;
}

/* Bytes of the message at `begin`; 0: it is not whole. */
static size_t
whole_message_size(const mc_pg_rows *rows)
{
    size_t have = rows->end - rows->begin;
    if (have < MC_PG_HEAD)
        return 0;
    size_t size = 1 + (size_t)mc_big_number(rows->bytes + rows->begin + 1, 4);
    return size <= have ? size : 0;
}

/* The byte behind the row is the next message's, or none yet. */
static int
take_lying_row(char **row, mc_pg_rows *rows, size_t size)
{
    *row = rows->bytes + rows->begin + MC_PG_HEAD;
    rows->begin += size;
    rows->is_covered = rows->begin < rows->end;
    rows->covered = rows->bytes[rows->begin];
    rows->bytes[rows->begin] = '\0';
    return (int)(size - MC_PG_HEAD);
}

/* In pieces, for which the pair of sockets has room. */
static void
pass_bytes_on(mc_pg_rows *rows, mc_pg_pump *pump, PGconn *pg, size_t left)
{
    while (left > 0 && pump->complaint == NULL) {
        size_t piece = left < MC_PG_PUMP_BYTES ? left : MC_PG_PUMP_BYTES;
        hand_to_libpq(rows, pump, piece);
        left -= piece;
        while (pump->complaint == NULL && mc_pg_pump_waiting(pg) > 0 && PQconsumeInput(pg))
            continue;
    }
}

/* Notices, settings and notifications come amid rows; behind all else nothing is a row any more. */
static void
pass_message_on(mc_pg_rows *rows, mc_pg_pump *pump, PGconn *pg, size_t size)
{
    const char kind = rows->bytes[rows->begin];
    rows->past = kind == 'N' || kind == 'S' || kind == 'A';
    pass_bytes_on(rows, pump, pg, rows->past ? size : rows->end - rows->begin);
}

/* libpq knows that no row follows: what the server has said since is libpq's. */
static void
leave_rows(mc_pg_rows *rows, mc_pg_pump *pump, PGconn *pg)
{
    rows->past = false;
    pass_bytes_on(rows, pump, pg, rows->end - rows->begin);
}

int
mc_pg_rows_next(char **row, mc_pg_rows *rows, mc_pg_pump *pump, PGconn *pg)
{
    PQfreemem(rows->row);
    rows->row = *row = NULL;
    if (rows->is_covered)
        rows->bytes[rows->begin] = rows->covered;
    rows->is_covered = false;
    while (pump->complaint == NULL) {
        if (rows->libpq_asked) {
            int size = PQgetCopyData(pg, &rows->row, 1);
            *row = rows->row;
            if (size < 0)
                leave_rows(rows, pump, pg);
            if (size != 0)
                return size;
            rows->libpq_asked = false;
        }
        size_t size = whole_message_size(rows);
        if (size == 0)
            break;
        if (rows->bytes[rows->begin] != 'd')
            pass_message_on(rows, pump, pg, size);
        else if (size > MC_PG_HEAD)
            return take_lying_row(row, rows, size);
        else /* nothing at all, which is no row */
            rows->begin += size;
    }
    return 0;
}
