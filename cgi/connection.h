/*
 * One connection of a web server: reads records, answers requests one after the other, writes as much as the socket
 * takes. Owned by one thread at a time; who waits for the socket, and how, is the loop's matter.
 */
#ifndef MC_CGI_CONNECTION_H
#define MC_CGI_CONNECTION_H

#include "generation.h"
#include "records.h"

typedef struct mc_connection mc_connection;

/* What all connections share. */
typedef struct mc_connections {
    mc_generations *generations;
    mc_fcgi_bodies bodies; /* that requests bring */
    _Atomic int active;    /* requests that are complete and not yet answered in full */
    _Atomic bool draining; /* the process is to end: connections close after their response */
} mc_connections;

typedef enum mc_connection_wait {
    MC_CONNECTION_READS,  /* serve again when there is something to read */
    MC_CONNECTION_WRITES, /* serve again when the socket takes more */
    MC_CONNECTION_ENDS,   /* it has ended: destroy it */
} mc_connection_wait;

/* What a connection that waits for the web server is about: each has a bound of its own. */
typedef enum mc_connection_phase {
    MC_PHASE_START,  /* nothing of a request has come, and none came before */
    MC_PHASE_PARAMS, /* of a request, not all variables have come */
    MC_PHASE_OTHER,  /* between requests, in a body, in a response */
} mc_connection_phase;

/* Of a connection that nobody serves. */
mc_connection_phase mc_connection_phase_of(const mc_connection *connection);

/* Takes a connected, non-blocking stream socket over. */
mc_connection *mc_connection_create(int descriptor, mc_connections *shared);
void mc_connection_destroy(mc_connection *connection); /* closes the socket */

/* Does everything that can be done without waiting for the web server. `slow` is told of what takes long (mc_ctx). */
mc_connection_wait mc_connection_serve(mc_connection *connection, mc_connections *shared,
                                       void (*slow)(void *baton, bool begins), void *slow_baton);

#endif
