/*
 * Circuit breakers of servers by their names: which ones have failed so often in a row that they are left alone for a
 * while (base/breaker.h).
 */
#ifndef MC_HTTP_HTTP_BREAKERS_H
#define MC_HTTP_HTTP_BREAKERS_H

#include <stdbool.h>

#include "base/breaker.h"

/* Of these servers: one failure may be the load of a moment. */
extern const mc_breaker_rules mc_http_breaker_rules;

/* Of origins of maps: one address may have layers that fail beside others that do not. */
extern const mc_breaker_rules mc_http_origin_breaker_rules;

/* The servers of a process; for all threads. */
typedef struct mc_http_breakers mc_http_breakers;

/* The rules live as long as the breakers. */
mc_http_breakers *mc_http_breakers_create(const mc_breaker_rules *rules);
void mc_http_breakers_destroy(mc_http_breakers *breakers); /* NULL is ignored */

/* Whether `server` (any name of at most 255 bytes, e.g. "https://host:443") may be asked: as mc_breaker_admits. */
bool mc_http_breakers_admit(mc_http_breakers *breakers, const char *server);

/* After a server was asked: whether it has answered. An answer that refuses is one. */
void mc_http_breakers_report(mc_http_breakers *breakers, const char *server, bool works);

/* Each server that has failed of late and was asked since then (mc_clock_now()), with its name, and whether it may be
 * asked by all. `visit` calls nothing of this. */
void mc_http_breakers_visit(mc_http_breakers *breakers, apr_time_t since,
                            void (*visit)(void *baton, const char *name, bool works), void *baton);

#endif
