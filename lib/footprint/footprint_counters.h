/* What this room counts. */
#ifndef MC_FOOTPRINT_FOOTPRINT_COUNTERS_H
#define MC_FOOTPRINT_FOOTPRINT_COUNTERS_H

#include "base/metrics.h"

/* name (OpenMetrics, without the mapcache_ prefix), help */
#define MC_FOOTPRINT_COUNTERS(X)                                                                                       \
    X(footprint_hits_total, "Tiles of maps whose footprint was in the memory of the process.")                         \
    X(footprint_misses_total, "Tiles of maps that were read and decoded for their footprint.")                         \
    X(footprint_absences_total, "Tiles of maps that were known to be absent one by one.")                              \
    X(watched_files_total,                                                                                             \
      "Product files that maps did not look at, because nothing is reported of their watched folder.")                 \
    X(coverage_skips_total, "Tiles of maps that lay outside of what their file is known to have.")

MC_FOOTPRINT_COUNTERS(MC_COUNTER_DECLARE)

#endif
