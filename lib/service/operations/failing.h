/* What a configuration needs and does not get: stores, databases, change logs, as this process has found them. */
#ifndef MC_SERVICE_OPERATIONS_FAILING_H
#define MC_SERVICE_OPERATIONS_FAILING_H

#include "mapcache/server.h"

typedef struct mc_failing {
    const char *kind;             /* "store", "source", "database", "changes" */
    const char *name;             /* of the cache or source; of a database mc_database_name() */
    mc_error_kind error;          /* of the last failure */
    apr_time_t failed;            /* mc_clock_now() of the last failure; 0: not known */
    apr_array_header_t *tilesets; /* of const char *: names of those that need it */
} mc_failing;

/* How a change log is followed, for people. */
typedef struct mc_change_log_state {
    const char *connection; /* as configured, with secrets */
    const char *database;   /* mc_database_name() */
    bool connected;
    double lag; /* seconds since the log was read last; below 0: it never was */
} mc_change_log_state;

/* Where the database of a connection string is, for everybody: host, port and name of the database, as they are
 * configured; "PostgreSQL" where the string says none of them. No user, no password, no file. */
const char *mc_database_name(const char *connection, apr_pool_t *pool);

/* Microseconds: what nobody has asked for so long is of no interest any more, like a node that a cluster has lost. */
#define MC_AWAY_TIME (300 * APR_USEC_PER_SEC)

/* The change logs that the process follows (mc_change_log_state). */
apr_array_header_t *mc_change_logs_look(const mc_process *process, apr_pool_t *pool);

/* Everything that fails (mc_failing): what probes have found of databases (probes.h), probes and requests of stores,
 * and requests of sources, the last two within MC_AWAY_TIME; change logs that are not followed. *checked:
 * mc_clock_now() of the last round of probes; 0: there was none. Waits for nothing. */
apr_array_header_t *mc_failing_find(apr_time_t *checked, const mc_config *config, const apr_array_header_t *change_logs,
                                    const mc_ctx *ctx, apr_pool_t *pool);

#endif
