/* What this room counts. */
#ifndef MC_HTTP_HTTP_COUNTERS_H
#define MC_HTTP_HTTP_COUNTERS_H

#include "base/metrics.h"

/* name (OpenMetrics, without the mapcache_ prefix), help */
#define MC_HTTP_COUNTERS(X)                                                                                            \
    X(origin_requests_total, "Requests sent to origins.")                                                              \
    X(origin_errors_total, "Requests to origins that failed.")                                                         \
    X(origin_bytes_total, "Bytes received from origins.")                                                              \
    X(store_requests_total, "Requests sent to stores of tiles over HTTP.")                                             \
    X(store_errors_total, "Requests to stores of tiles over HTTP that failed.")                                        \
    X(store_bytes_total, "Bytes received from stores of tiles over HTTP.")

MC_HTTP_COUNTERS(MC_COUNTER_DECLARE)

#endif
