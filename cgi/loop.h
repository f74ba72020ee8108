/*
 * The event loop of the FastCGI program. All threads wait on one epoll set; the one that is woken serves the connection
 * to the end of its request, without handing it over. A connection's event is armed once at a time, so that it belongs
 * to one thread. As many threads as processors answer; while requests wait (for origins, for locks) further ones take
 * their place (lanes.h).
 */
#ifndef MC_CGI_LOOP_H
#define MC_CGI_LOOP_H

#include <signal.h>

#include "generation.h"

typedef struct mc_loop_limits {
    int threads;      /* the most requests at the same time */
    int idle_seconds; /* a connection on which nothing happens for so long is closed */
} mc_loop_limits;

/* The signals that mean something to the loop. */
void mc_loop_signals(sigset_t *signals);

typedef enum mc_loop_outcome {
    MC_LOOP_ENDED,  /* no thread of it is left */
    MC_LOOP_LEFT,   /* there was no time for that: threads go on and use everything, the process has to end as it is */
    MC_LOOP_FAILED, /* it could not be started, the log says why */
} mc_loop_outcome;

/*
 * Serves `count` listening sockets until SIGTERM, SIGINT or SIGUSR1; then lets running requests finish, and a load
 * of the configuration, for at most 10 seconds. SIGHUP loads the configuration again. The caller has blocked them
 * (mc_loop_signals).
 */
mc_loop_outcome mc_loop_run(mc_generations *generations, const int *listeners, int count, const mc_loop_limits *limits,
                            apr_pool_t *pool);

#endif
