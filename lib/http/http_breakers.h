/*
 * Circuit breakers of servers behind HTTP, stores and origins, by their names (base/breaker.h has the rules), and what
 * an answer tells them.
 */
#ifndef MC_HTTP_HTTP_BREAKERS_H
#define MC_HTTP_HTTP_BREAKERS_H

#include <stdbool.h>

#include "base/breaker.h"
#include "http/http.h"

/* The servers of a process; for all threads. */
typedef struct mc_http_breakers mc_http_breakers;

mc_http_breakers *mc_http_breakers_create(void);
void mc_http_breakers_destroy(mc_http_breakers *breakers); /* NULL is ignored */

/* Whether `server` (any name of at most 255 bytes, e.g. "https://host:443") may be asked: as mc_breaker_admits. */
bool mc_http_breakers_admit(mc_http_breakers *breakers, const char *server);

/* What requests have told of their server, the later ones more than those before them. */
typedef enum mc_http_sign { MC_HTTP_NO_SIGN, MC_HTTP_TROUBLE, MC_HTTP_LIFE } mc_http_sign;

/* What one caller has found out: the strongest sign, and microseconds that trouble took. Begins as { 0 }. */
typedef struct mc_http_finding {
    mc_http_sign sign;
    apr_interval_time_t waited;
} mc_http_finding;

/*
 * Adds what exchanges tell that were sent together at `begun` (mc_clock_now()). Trouble is: no connection, a broken
 * answer, status 429, 502, 503, 504, of a store also 500; no answer in time. Where the time that is over is the
 * request's own, less than a second of it tells nothing (of an origin, which draws, less than ten), and more no more
 * than a failure that is told at once. Any other answer is a sign of life, also one that refuses or is too large.
 */
void mc_http_add_signs(mc_http_finding *finding, const mc_http_exchange *exchanges, int count, apr_time_t begun,
                       const mc_ctx *ctx);

/* Tells the breaker of a server what was found. */
void mc_http_breakers_report(mc_http_breakers *breakers, const char *server, const mc_http_finding *finding);

/* Each server that has failed of late and was asked since then (mc_clock_now()), with its name, and whether the last
 * one who asked got an answer. `visit` calls nothing of this. */
void mc_http_breakers_visit(mc_http_breakers *breakers, apr_time_t since,
                            void (*visit)(void *baton, const char *name, bool works), void *baton);

#endif
