/*
 * Whether the stores and databases of a configuration answer, found out behind the back of whoever wants to know: by
 * one thread of the process at a time, at most once in three seconds (one while a database fails), and only where
 * somebody asks. Who asks gets what was found last, and never waits.
 */
#ifndef MC_SERVICE_OPERATIONS_PROBES_H
#define MC_SERVICE_OPERATIONS_PROBES_H

#include "mapcache/server.h"

typedef struct mc_probes mc_probes;

/* What was found of one database. What was found of a store stands in the state of its cache, as that of operations of
 * requests (mc_cache_fails). */
typedef struct mc_probe_result {
    const char *connection; /* with secrets */
    bool fails;
    mc_error_kind error; /* where it fails */
    apr_time_t failed;   /* mc_clock_now(), where it fails */
} mc_probe_result;

typedef struct mc_probe_round {
    apr_time_t ended;            /* mc_clock_now() of the end of the last round; 0: there was none */
    apr_array_header_t *results; /* of mc_probe_result */
} mc_probe_round;

/* `process` and `log` live longer. */
mc_probes *mc_probes_create(mc_process *process, const mc_log *log);

/* Waits for the round under way, which ends soon then. NULL is ignored. */
void mc_probes_destroy(mc_probes *probes);

/*
 * What the last round for the configuration's file has found; begins a round where that is old enough, none is under
 * way, and ctx->owner keeps the configuration meanwhile. A round takes ten seconds at most: what it does not get to
 * stays as it was. NULL probes have found nothing. Results live in `pool`.
 */
mc_probe_round mc_probes_ask(mc_probes *probes, const mc_config *config, const mc_ctx *ctx, apr_pool_t *pool);

#endif
