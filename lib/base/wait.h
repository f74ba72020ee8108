/* Waits that end with the request: at its deadline at the latest, and soon after its client has gone. */
#ifndef MC_BASE_WAIT_H
#define MC_BASE_WAIT_H

#include <poll.h>
#include <pthread.h>

#include "mapcache/ctx.h"

/* Microseconds between two looks at the client of a request that waits. */
#define MC_WAIT_LOOK (200 * 1000)

typedef enum mc_wait_end {
    MC_WAIT_READY, /* there may be what was waited for */
    MC_WAIT_LATE,  /* the moment has passed */
    MC_WAIT_GONE   /* the client of the request has gone */
} mc_wait_end;

/*
 * Waits for `condition` (made by mc_clock_condition), `mutex` held; at most until the moment `until` (mc_clock_now()).
 * MC_WAIT_READY also without a signal: the caller looks at what it waits for, and waits again. The mutex is given up
 * while the client is looked at, too.
 */
mc_wait_end mc_wait_condition(pthread_cond_t *condition, pthread_mutex_t *mutex, apr_time_t until, mc_ctx *ctx);

/* Waits until polled->events come true, at most until `until`. A socket in error is ready, too. */
mc_wait_end mc_wait_socket(struct pollfd *polled, apr_time_t until, mc_ctx *ctx);

/* Sleeps for `pause` microseconds. False, and earlier: the client has gone. */
bool mc_wait_pause(apr_interval_time_t pause, mc_ctx *ctx);

#endif
