/* The thread that sends purges to one address of a cache in front. */
#ifndef MC_CDN_PURGER_H
#define MC_CDN_PURGER_H

#include "cdn/cdn.h"
#include "cdn/purgers.h"
#include "mapcache/ctx.h"

typedef struct mc_purger mc_purger;

/* Copies what it needs of `cdn`. `url`: one of its addresses. `process` and `log` live longer. */
mc_purger *mc_purger_start(const mc_cdn *cdn, const char *url, mc_process *process, const mc_log *log);

/* Ends the thread, and waits for it; drops the reference of who has started it. */
void mc_purger_stop(mc_purger *purger);

/* Of those who wait for it. */
mc_purger *mc_purger_ref(mc_purger *purger);
void mc_purger_unref(mc_purger *purger);

/* Whether it sends to that address as the cdn says. */
bool mc_purger_serves(const mc_purger *purger, const mc_cdn *cdn, const char *url);

/* Adds keys or addresses, between mc_purger_lock and mc_purger_unlock. */
void mc_purger_lock(mc_purger *purger);
void mc_purger_add(mc_purger *purger, const char *text, bool delayed);
void mc_purger_unlock(mc_purger *purger);

/* Counts, and says, that so many addresses are not purged. */
void mc_purger_lose(mc_purger *purger, int64_t count);

/* The serial of what was added last; and waiting until all up to it is purged, as mc_purgers_flush. */
uint64_t mc_purger_serial(mc_purger *purger);
bool mc_purger_await(mc_purger *purger, uint64_t serial, mc_ctx *ctx);

mc_purger_state mc_purger_look(mc_purger *purger);

#endif
