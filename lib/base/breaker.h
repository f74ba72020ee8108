/*
 * A circuit breaker: whether a server is worth asking. One that has failed is left alone for a while, and nobody waits
 * for it; then one caller finds out. Each failure that follows doubles the while.
 */
#ifndef MC_BASE_BREAKER_H
#define MC_BASE_BREAKER_H

#include <apr_time.h>
#include <pthread.h>
#include <stdbool.h>

/* After how many failures in a row a server is left alone, and for how many microseconds: the first time, and at most.
 */
typedef struct mc_breaker_rules {
    int failures;
    apr_interval_time_t first, most;
} mc_breaker_rules;

typedef struct mc_breaker {
    const mc_breaker_rules *rules;
    pthread_mutex_t lock;  /* of all below */
    apr_time_t open_until; /* mc_clock_now(); 0: closed, everybody may ask */
    int failures;          /* in a row */
} mc_breaker;

/* The rules must live as long as the breaker. */
void mc_breaker_start(mc_breaker *breaker, const mc_breaker_rules *rules);
void mc_breaker_end(mc_breaker *breaker);

/*
 * Closed: true. Open: false until its time is over; then true for one caller, who reports what he found. Where he
 * reports nothing, because his own request ended, the next one is let through after the same while.
 */
bool mc_breaker_admits(mc_breaker *breaker);

/* The same without the right to ask: whether the breaker is closed. */
bool mc_breaker_is_closed(mc_breaker *breaker);

void mc_breaker_report(mc_breaker *breaker, bool works);

#endif
