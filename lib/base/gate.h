/*
 * Lets a bounded number of threads through at a time; the others wait in a queue, without polling.
 */
#ifndef MC_BASE_GATE_H
#define MC_BASE_GATE_H

#include "mapcache/ctx.h"

typedef struct mc_gate mc_gate;

/* `places`: how many may be inside, at least 1. */
mc_gate *mc_gate_create(int places);
void mc_gate_destroy(mc_gate *gate); /* nobody may be inside or wait */

/* MC_ERR_UNAVAILABLE where the context's deadline passes first; nobody is inside then. A NULL gate is always open. */
mc_error *mc_gate_enter(mc_gate *gate, mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;
void mc_gate_leave(mc_gate *gate);

#endif
