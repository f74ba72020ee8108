/* What this room counts. */
#ifndef MC_TELEMETRY_TELEMETRY_COUNTERS_H
#define MC_TELEMETRY_TELEMETRY_COUNTERS_H

#include "base/metrics.h"

/* name (OpenMetrics, without the mapcache_ prefix), help */
#define MC_TELEMETRY_COUNTERS(X)                                                                                       \
    X(traces_sampled_total, "Requests whose spans were kept for a receiver of traces.")                                \
    X(traces_exported_total, "Traces that a receiver took.")                                                           \
    X(traces_dropped_total, "Traces that could not be sent, or that the queue had no room for.")

MC_TELEMETRY_COUNTERS(MC_COUNTER_DECLARE)

#endif
