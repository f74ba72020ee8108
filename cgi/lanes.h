/*
 * Whose turn it is: quick requests are answered by as many threads as there are processors, so that none of them waits
 * for a processor while it holds a request. A thread whose request gets slow (it waits for an origin or a lock, it
 * draws a map) leaves the turn to another one, and queues for its turn afterwards. What is slow without saying so is
 * found out by the supervisor.
 */
#ifndef MC_CGI_LANES_H
#define MC_CGI_LANES_H

#include <apr_time.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

typedef struct mc_lanes {
    int quick;                  /* threads that may be at quick work at a time */
    bool (*start)(void *baton); /* starts one more thread, which is awake; false: there may be no more */
    void *baton;
    pthread_mutex_t lock; /* of all below; innermost */
    pthread_cond_t unparked, turn;
    int awake;    /* threads that wait for events, or have one and are not slow */
    int parked;   /* threads that nobody needs now */
    int recalled; /* of those, to be woken */
    int turns;    /* handed to those who queue */
    bool stopping;
    _Atomic int running;  /* threads with an event that are not slow; also changed without the lock */
    _Atomic int queueing; /* threads that wait for their turn; changed under the lock */
    _Atomic bool crowded; /* more are awake than need be; changed under the lock */
} mc_lanes;

/* One thread. */
typedef struct mc_lane {
    mc_lanes *lanes;
    _Atomic int state;
    _Atomic apr_time_t since; /* when it took its event */
    int depth;                /* of slow scopes; the thread's own */
} mc_lane;

void mc_lanes_init(mc_lanes *lanes, int quick, bool (*start)(void *baton), void *baton);
void mc_lanes_destroy(mc_lanes *lanes); /* after its threads have ended */
void mc_lanes_stop(mc_lanes *lanes);    /* parked threads end */

/* Before waiting for an event: sleeps while enough others wait for one. False: the thread is to end. */
bool mc_lane_ready(mc_lane *lane);

/* An event has been taken at `now`; it is done with. */
void mc_lane_enter(mc_lane *lane, apr_time_t now);
void mc_lane_leave(mc_lane *lane);

/* The request's hook for mc_slow_begin and mc_slow_end. */
void mc_lane_slow(void *lane, bool begins);

/* By the supervisor: a thread that has been at its event for longer than `patience` leaves the turn to another one. */
void mc_lane_rescue(mc_lane *lane, apr_time_t now, apr_interval_time_t patience);

#endif
