/*
 * Which servers have failed so often in a row that they are left alone for a while: nobody waits for them then. After
 * the while one request finds out whether the server is back.
 */
#ifndef MC_HTTP_BREAKER_H
#define MC_HTTP_BREAKER_H

#include <apr_time.h>
#include <stdbool.h>

/* Failures in a row, and microseconds: the first while, and the longest. */
enum { MC_BREAKER_FAILURES = 3, MC_BREAKER_PAUSE = APR_USEC_PER_SEC, MC_BREAKER_PAUSE_MOST = 30 * APR_USEC_PER_SEC };

/* The servers of a process; for all threads. */
typedef struct mc_breakers mc_breakers;

mc_breakers *mc_breakers_create(void);
void mc_breakers_destroy(mc_breakers *breakers); /* NULL is ignored */

/* 0: `server` (any name of at most 255 bytes, e.g. "https://host:443") may be asked at `now` (mc_clock_now()). Else for
 * how many microseconds more it is left alone. */
apr_interval_time_t mc_breaker_pause(mc_breakers *breakers, const char *server, apr_time_t now);

/* After a server was asked: whether it has answered. An answer that refuses is one. */
void mc_breaker_judge(mc_breakers *breakers, const char *server, bool works, apr_time_t now);

#endif
