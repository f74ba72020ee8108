/*
 * Rows of a COPY past libpq: while they come in the open, messages are taken from the server's socket into a buffer of
 * our own, and rows are read where they lie. Whatever else the server says goes to libpq, which misses these rows no
 * more than those that it has given already.
 */
#ifndef MC_DB_POSTGRES_POSTGRES_ROWS_H
#define MC_DB_POSTGRES_POSTGRES_ROWS_H

#include "db/postgres/postgres_pump.h"

/* All 0 at first. */
typedef struct mc_pg_rows {
    bool past;        /* what arrives goes past libpq */
    bool libpq_asked; /* libpq may have a row, or the end */
    size_t owed;      /* bytes still to come of a message whose beginning libpq has */
    char *bytes; /* from `begin` to `end` messages, the last one perhaps not whole; there is room for a byte more */
    size_t begin, end; /* `begin`: where a message begins */
    size_t room;
    char covered; /* the byte at `begin`, where is_covered: there is the zero that ends the row before */
    bool is_covered;
    bool short_read; /* the last reading left nothing behind */
    char *row;       /* the last row, in memory of libpq; NULL: it lies in `bytes`, or there is none */
} mc_pg_rows;

/* After the head of a COPY, which libpq has, perhaps with the first rows. */
void mc_pg_rows_begin(mc_pg_rows *rows);

/* The next row that has arrived, with a zero behind it, valid and writable until the next call. Returns what
 * PQgetCopyData does: its size; 0: more has to arrive, or the pump has a complaint; -1: none follows; -2: the
 * connection has failed. */
int mc_pg_rows_next(char **row, mc_pg_rows *rows, mc_pg_pump *pump, PGconn *pg);

/* From now on what arrives goes past libpq, unless libpq has half a head. Returns whether it does. After
 * mc_pg_rows_next has returned 0. */
bool mc_pg_rows_go_past(mc_pg_rows *rows, const mc_pg_pump *pump, const PGconn *pg);

/* Takes what has come, without waiting, in place of mc_pg_pump_in. libpq has to read where libpq_asked is set after it:
 * it got the rest of its message, or finds the end of the connection. */
size_t mc_pg_rows_in(mc_pg_rows *rows, mc_pg_pump *pump);

/* Nobody reads on: gives back memory, but for what any COPY needs. */
void mc_pg_rows_end(mc_pg_rows *rows);
void mc_pg_rows_free(mc_pg_rows *rows);

#endif
