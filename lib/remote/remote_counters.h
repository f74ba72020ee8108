/* What this room counts. */
#ifndef MC_REMOTE_REMOTE_COUNTERS_H
#define MC_REMOTE_REMOTE_COUNTERS_H

#include "base/metrics.h"

/* name (OpenMetrics, without the mapcache_ prefix), help */
#define MC_REMOTE_COUNTERS(X)                                                                                          \
    X(remote_requests_total, "Requests sent to memcached and redis servers.")                                          \
    X(remote_errors_total, "Requests to memcached and redis servers that failed.")                                     \
    X(remote_rests_total, "Requests not sent because their memcached or redis server had failed a moment before.")

MC_REMOTE_COUNTERS(MC_COUNTER_DECLARE)

#endif
