/* What this room counts. */
#ifndef MC_SOURCE_SOURCE_COUNTERS_H
#define MC_SOURCE_SOURCE_COUNTERS_H

#include "base/metrics.h"

/* name (OpenMetrics, without the mapcache_ prefix), help */
#define MC_SOURCE_COUNTERS(X)                                                                                          \
    X(origin_rests_total, "Requests not sent because their origin had failed several times in a row.")

MC_SOURCE_COUNTERS(MC_COUNTER_DECLARE)

#endif
