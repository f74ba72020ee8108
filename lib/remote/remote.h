/*
 * Servers that a process talks to by connections of its own: found by where they are, shared by all caches and lockers
 * that name the same one, with the connections that are kept and a circuit breaker.
 */
#ifndef MC_REMOTE_REMOTE_H
#define MC_REMOTE_REMOTE_H

#include "mapcache/buf.h"
#include "mapcache/ctx.h"

/* Microseconds that a server may say nothing where nobody has said otherwise. */
#define MC_REMOTE_SILENCE (2 * APR_USEC_PER_SEC)

typedef struct mc_remotes mc_remotes; /* those of a process */
typedef struct mc_remote mc_remote;   /* one server */
typedef struct mc_stream mc_stream;   /* a connection, for one thread at a time (remote/stream.h) */

mc_remotes *mc_remotes_create(void);
void mc_remotes_destroy(mc_remotes *remotes); /* no connection may be in use; NULL is ignored */

/* How a connection is encrypted. The files are read once, for the first connection. */
typedef struct mc_remote_tls {
    const char *name;        /* that the server's certificate must bear; NULL: the host's */
    const char *authorities; /* file of the certificates that sign servers'; NULL: the system's */
    const char *certificate; /* file of the client's own, with those that sign it; NULL: none */
    const char *key;         /* file of its key; NULL: the same file */
} mc_remote_tls;

/* Reads what the server says to the commands of the greeting. */
typedef mc_error *mc_remote_greet(mc_stream *stream, int commands);

/* Where a server is, and how one begins to talk to it: all that tells two apart. */
typedef struct mc_remote_address {
    const char *kind; /* "memcached": for messages */
    const char *host; /* name or address; NULL: `socket` */
    int port;
    const char *socket;       /* path of a local socket */
    const mc_remote_tls *tls; /* NULL: not encrypted */
    const char *greeting; /* sent on each new connection; may hold a password, so that no message quotes it; or NULL */
    size_t greeting_size;
    int greeting_commands;
    mc_remote_greet *greet;
    bool told; /* by another server, not by the configuration: such servers never take the places of others */
} mc_remote_address;

/* The server of that address. It stays while it has connections that somebody uses, and for an hour after it was found
 * last: whoever needs it for longer finds it again. NULL: there are too many. */
mc_remote *mc_remote_find(mc_remotes *remotes, const mc_remote_address *address);

/* Forgets the servers that nobody has found since `before` (mc_clock_now()), and of which nobody uses a connection. */
void mc_remotes_forget(mc_remotes *remotes, apr_time_t before);

/* "memcached at host:port": for messages of the log. */
const char *mc_remote_name(const mc_remote *remote);

/* Where the server is: a host's name or address, "" of a local socket. */
const char *mc_remote_host(const mc_remote *remote);

/* Whether to ask the server now (mc_breaker_admits): once it is true, the caller asks. */
bool mc_remote_admits(mc_remote *remote);

/* Tells the breaker what asking from `begun` on (mc_clock_now()) has come to, where that was done without
 * mc_remote_exchange_all: MC_OK, or the error. */
void mc_remote_judge(mc_remote *remote, const mc_error *error, apr_time_t begun, apr_pool_t *pool);

/* For whom a server is asked. */
typedef struct mc_remote_call {
    mc_ctx *ctx;
    apr_pool_t *pool;            /* of results and errors */
    apr_interval_time_t silence; /* microseconds that the server may say nothing; 0: MC_REMOTE_SILENCE */
} mc_remote_call;

/* The error of a server that is not asked because it has failed a moment ago, with what was wrong. */
mc_error *mc_remote_resting(mc_remote *remote, const mc_remote_call *call) MC_CHECKED;

/* Visits the servers that were found since then (mc_clock_now()); `works`: the last one who asked got an answer. */
void mc_remotes_visit(mc_remotes *remotes, apr_time_t since, void (*visit)(void *baton, const char *name, bool works),
                      void *baton);

/*
 * A request and its answer. `read` takes the whole answer, and nothing behind it. On a kept connection that the server
 * ends at this moment the request is sent once more, on a new one, and `read` begins anew: requests must bear that.
 */
typedef struct mc_remote_exchange {
    mc_remote *remote;
    const mc_buf *request;
    mc_error *(*read)(void *baton, mc_stream *stream);
    void *baton;
    /*
     * MC_OK: `read` has returned that. MC_ERR_UNAVAILABLE: the client has gone, or had no time left for an answer.
     * MC_ERR_FORBIDDEN: the server does not let us in. MC_ERR_IO, MC_ERR_CORRUPT: the server cannot be reached, says
     * nothing, ends the connection, or says what it should not; then its breaker opens.
     */
    mc_error *error;
    mc_stream *stream; /* while it lasts */
} mc_remote_exchange;

/* Several at a time: all requests are sent before the first answer is read, so that this takes as long as one. */
void mc_remote_exchange_all(mc_remote_exchange *list, int count, const mc_remote_call *call);

#endif
