/*
 * Lets a bounded number of threads through at a time; the others wait, without polling, in the order in which they
 * came.
 */
#ifndef MC_BASE_GATE_H
#define MC_BASE_GATE_H

#include "mapcache/ctx.h"

typedef struct mc_gate mc_gate;

/* `places`: how many may be inside, at least 1. */
mc_gate *mc_gate_create(int places);
void mc_gate_destroy(mc_gate *gate); /* nobody may be inside or wait */

/* MC_ERR_UNAVAILABLE where the context's deadline passes first; it is not inside then. A NULL gate is always open. A
 * context is inside of one gate at most. */
mc_error *mc_gate_enter(mc_gate *gate, mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;
void mc_gate_leave(mc_ctx *ctx);

/*
 * Around a wait for somebody else (a database) that may happen inside: the place is another one's meanwhile. Stepping
 * back in goes before all who have not begun, and waits for one of those inside to leave or to step out, however long.
 * Both do nothing where the context is not inside.
 */
mc_gate *mc_gate_step_out(mc_ctx *ctx);
void mc_gate_step_in(mc_gate *gate, mc_ctx *ctx);

#endif
