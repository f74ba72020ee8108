/*
 * <telemetry> of a configuration, and the two moments at which a request is looked at: when it begins, and when its
 * answer is known.
 */
#ifndef MC_TELEMETRY_TELEMETRY_H
#define MC_TELEMETRY_TELEMETRY_H

#include "base/account.h"
#include "mapcache/config.h"
#include "mapcache/trace.h"

typedef struct mc_telemetry {
    struct mc_export_target *target;    /* where traces go; NULL: nowhere */
    uint64_t threshold;                 /* a trace begins where a random number is below it */
    int most_traces;                    /* a second, of a process; 0: no limit */
    bool trusts;                        /* "traceparent" of whoever asks decides, where there is one */
    struct mc_line_file *access, *slow; /* NULL: no such lines */
    bool tells_hits;                    /* lines of requests that were hits, too */
    bool json;                          /* lines are JSON, else logfmt */
    apr_interval_time_t slow_after;     /* microseconds */
} mc_telemetry;

extern const mc_key mc_telemetry_keys[];

/* <telemetry>; NULL after a complaint that refuses it, and where `node` is NULL: nothing is looked at. Nothing is
 * opened before the first request that needs it. */
mc_telemetry *mc_telemetry_from_config(const mc_node *node, mc_build *build);

/*
 * At the begin of a request: whether it is traced, and by which trace (account->context). `headers`: of the client's
 * request, or NULL. Returns what the request's trace has to keep (mc_trace_keep); 0: nothing, no trace is needed.
 */
unsigned mc_telemetry_begin(const mc_telemetry *telemetry, mc_account *account, const apr_table_t *headers,
                            const mc_process *process);

/* Whether mc_telemetry_end has something to do for a request that has begun. */
bool mc_telemetry_wants(const mc_telemetry *telemetry, const mc_account *account);

/* What a request has been, once its spans have ended. */
typedef struct mc_telemetry_answer {
    apr_time_t begin;             /* by mc_clock_now() */
    apr_interval_time_t duration; /* microseconds */
    uint64_t bytes;               /* of the body */
    const char *result;           /* a word of mc_answer_result_name */
    bool hit;                     /* a stored tile that went out as it is */
} mc_telemetry_answer;

/* At the end of a request, its spans ended: exports them, writes lines. */
void mc_telemetry_end(const mc_telemetry *telemetry, const mc_account *account, const mc_telemetry_answer *answer,
                      mc_ctx *ctx, apr_pool_t *pool);

#endif
