/* What this room counts. */
#ifndef MC_CACHE_CACHE_COUNTERS_H
#define MC_CACHE_CACHE_COUNTERS_H

#include "base/metrics.h"

/* name (OpenMetrics, without the mapcache_ prefix), help */
#define MC_CACHE_COUNTERS(X)                                                                                           \
    X(cache_hits_total, "Tiles found in their cache.")                                                                 \
    X(cache_misses_total, "Tiles not found in their cache.")                                                           \
    X(cache_errors_total, "Cache operations that failed.")                                                             \
    X(memory_hits_total, "Tiles answered from memory.")                                                                \
    X(memory_evictions_total, "Entries dropped from memory to stay inside its bound.")                                 \
    X(memory_emptied_total, "Parts of the shared memory emptied because a process was killed while it wrote.")         \
    X(behind_stored_total, "Tiles stored behind the answer (<write>behind</write> of a multitier cache).")             \
    X(behind_lost_total, "Tiles that waited to be stored behind the answer and were lost.")

MC_CACHE_COUNTERS(MC_COUNTER_DECLARE)

#endif
