/*
 * What stands between libpq and a server. libpq makes room for as much as a message says that it has, up to a gigabyte,
 * and reads until nothing more is there, also past every deadline. So libpq's socket is one end of a pair: each byte
 * passes through our hands, as many at once as we want, and the heads of messages are looked at before libpq sees them.
 */
#ifndef MC_DB_POSTGRES_POSTGRES_PUMP_H
#define MC_DB_POSTGRES_POSTGRES_PUMP_H

#include <libpq-fe.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "db/postgres/postgres_frames.h"

enum { MC_PG_PUMP_BYTES = 32 * 1024 }; /* at once */

typedef struct mc_pg_pump {
    bool joined;  /* it stands between the two; before, libpq has the server's socket */
    int outside;  /* the server's socket */
    int inside;   /* our end of the pair */
    ino_t theirs; /* which socket is libpq's end */
    mc_pg_frames frames;
    char *unsent; /* what the server has not taken yet; NULL: nothing */
    size_t unsent_size;
    bool asked;            /* what was sent last has had no answer yet */
    bool deaf;             /* the server takes nothing any more */
    int failure;           /* errno of the last reading; 0: none */
    const char *complaint; /* what is wrong with what the server sends; NULL: nothing */
} mc_pg_pump;

/* Steps between libpq and the server that it has connected to, unless it stands there. Nothing may have been read.
 * False: no descriptors. */
bool mc_pg_pump_join(mc_pg_pump *pump, PGconn *pg);

/* Steps aside where libpq has gone on to another socket. */
void mc_pg_pump_follow(mc_pg_pump *pump, PGconn *pg);

/* What poll() is asked about. */
int mc_pg_pump_socket(const mc_pg_pump *pump, const PGconn *pg);

/* Hands libpq what has come, MC_PG_PUMP_BYTES at most, without waiting; returns how much, 0 also at the end, which
 * libpq finds. libpq must have read what it was handed before. Nothing is handed over with a complaint. */
size_t mc_pg_pump_in(mc_pg_pump *pump, PGconn *pg);

/* The server says no more, for this errno or (0) because it has ended: libpq finds the end. */
void mc_pg_pump_failed(mc_pg_pump *pump, int failure);

/* Bytes that libpq was handed and has not read. */
int mc_pg_pump_waiting(const PGconn *pg);

typedef enum mc_pg_out {
    MC_PG_OUT_LEFT,   /* the server does not take the rest now */
    MC_PG_OUT_GONE,   /* libpq had written something, and the server has it all */
    MC_PG_OUT_NOTHING /* libpq had written nothing */
} mc_pg_out;

/* Sends what libpq has written, without waiting. */
mc_pg_out mc_pg_pump_out(mc_pg_pump *pump);

/* After PQfinish: sends the last word, and closes what is ours. */
void mc_pg_pump_close(mc_pg_pump *pump);

#endif
