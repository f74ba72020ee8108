/*
 * Circuit breakers: whether a server is worth asking. One set of rules for all of them: servers of keys and values
 * (lib/remote), stores behind HTTP and origins of maps (lib/http).
 *
 * A server is left alone after three failures in a row, and at once after a failure that took a quarter of a second or
 * longer: failures that are told at once cost their callers nothing. It is left alone for a quarter of a second; then
 * one caller finds out. Each time that he finds a failure the while doubles, up to eight seconds. What fails meanwhile
 * was asked before, with others: that tells nothing new.
 */
#ifndef MC_BASE_BREAKER_H
#define MC_BASE_BREAKER_H

#include <apr_time.h>
#include <pthread.h>
#include <stdbool.h>

enum { MC_BREAKER_FAILURES = 3 };

/* Microseconds: the first pause and the longest one, and what a failure takes that opens a breaker by itself. */
#define MC_BREAKER_PAUSE (APR_USEC_PER_SEC / 4)
#define MC_BREAKER_PAUSE_MOST (8 * APR_USEC_PER_SEC)
#define MC_BREAKER_COSTLY (APR_USEC_PER_SEC / 4)

typedef struct mc_breaker {
    pthread_mutex_t lock;  /* of all below */
    apr_time_t open_until; /* mc_clock_now(); 0: closed, everybody may ask */
    int failures;          /* in a row */
    bool probing;          /* one caller finds out */
} mc_breaker;

void mc_breaker_start(mc_breaker *breaker);
void mc_breaker_end(mc_breaker *breaker);

/*
 * Closed: true. Open: false until its time is over; then true for one caller, who reports what he found. Where he
 * reports nothing, because his own request ended, the next one is let through after the same while.
 */
bool mc_breaker_admits(mc_breaker *breaker);

/* Whether the last one who asked got an answer; true before anybody has asked. */
bool mc_breaker_works(mc_breaker *breaker);

/* After asking. waited: microseconds that a failure took. */
void mc_breaker_report(mc_breaker *breaker, bool works, apr_interval_time_t waited);

#endif
