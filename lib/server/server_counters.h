/* What this room counts. */
#ifndef MC_SERVER_SERVER_COUNTERS_H
#define MC_SERVER_SERVER_COUNTERS_H

#include "base/metrics.h"

/* name (OpenMetrics, without the mapcache_ prefix), help */
#define MC_SERVER_COUNTERS(X)                                                                                          \
    X(requests_total, "Requests handled.")                                                                             \
    X(client_errors_total, "Responses with a 4xx status.")                                                             \
    X(server_errors_total, "Responses with a 5xx status.")                                                             \
    X(not_modified_total, "Responses with status 304.")                                                                \
    X(response_bytes_total, "Bytes of response bodies.")

MC_SERVER_COUNTERS(MC_COUNTER_DECLARE)

#endif
