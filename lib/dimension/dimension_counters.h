/* What this room counts. */
#ifndef MC_DIMENSION_DIMENSION_COUNTERS_H
#define MC_DIMENSION_DIMENSION_COUNTERS_H

#include "base/metrics.h"

/* name (OpenMetrics, without the mapcache_ prefix), help */
#define MC_DIMENSION_COUNTERS(X)                                                                                       \
    X(dimension_queries_total, "Questions that databases of dimensions were asked.")                                   \
    X(dimension_remembered_total, "Questions of dimensions that the memory of the process answered.")

MC_DIMENSION_COUNTERS(MC_COUNTER_DECLARE)

#endif
