/* What the files of connections share. */
#ifndef MC_REMOTE_REMOTE_PRIVATE_H
#define MC_REMOTE_REMOTE_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/breaker.h"
#include "remote/stream.h"
#include "remote/tls.h"

enum { MC_REMOTE_IDLE_MAX = 64, MC_REMOTE_REASON_MAX = 200 };

struct mc_remote {
    mc_remote_address address; /* its texts are the server's own copies */
    mc_remote_tls tls;         /* where address.tls points */
    char *name;
    char *identity; /* all that tells it apart from others */
    size_t identity_size;
    apr_time_t used;   /* mc_clock_now(): when it was found last; the list's lock */
    atomic_int opened; /* connections that are there, kept ones and others */
    mc_breaker breaker;
    atomic_int late;      /* requests in a row that had little time, and no answer in it */
    pthread_mutex_t lock; /* of all below */
    mc_stream *idle[MC_REMOTE_IDLE_MAX];
    int idle_count;
    char reason[MC_REMOTE_REASON_MAX]; /* of the last failure */
    const mc_tls_engine *engine;       /* NULL before the first connection with TLS */
    void *tls_settings;                /* of the engine; likewise */
};

struct mc_stream {
    mc_remote *remote;
    const mc_remote_call *call;
    int descriptor;
    mc_tls_session *session; /* NULL: not encrypted */
    bool fresh, ended, silent;
    bool begun;            /* something of the answer has come */
    apr_time_t kept_since; /* mc_clock_now(), while it is idle */
    size_t begin, end;     /* of what has come and is not read */
    uint8_t buffer[MC_STREAM_BUFFER];
};

/* An open socket to the server; a new connection's TLS and greeting are not its affair. */
mc_error *mc_remote_connect(int *descriptor, mc_remote *remote, const mc_remote_call *call) MC_CHECKED;

/* Waits for the socket; MC_ERR_IO where the server says nothing. */
mc_error *mc_remote_wait(int descriptor, short events, mc_remote *remote, const mc_remote_call *call) MC_CHECKED;

/* MC_ERR_IO with the server's name. */
static inline MC_CHECKED mc_error *
mc_remote_failure(const mc_remote *remote, const char *reason, apr_pool_t *pool)
{
    return mc_error_create(pool, MC_ERR_IO, "%s: %s", remote->name, reason);
}

/* A kept connection, or NULL. */
mc_stream *mc_remote_take_idle(mc_remote *remote);
void mc_remote_keep_idle(mc_remote *remote, mc_stream *stream);

/* Closes kept connections that nobody has used for a while; all of them if `all`. */
void mc_remote_close_idle(mc_remote *remote, bool all);

/* Closes and frees, whatever state it is in. */
void mc_stream_free(mc_stream *stream);

#endif
