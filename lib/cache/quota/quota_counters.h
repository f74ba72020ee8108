/* What this room counts. */
#ifndef MC_CACHE_QUOTA_QUOTA_COUNTERS_H
#define MC_CACHE_QUOTA_QUOTA_COUNTERS_H

#include "base/metrics.h"

/* name (OpenMetrics, without the mapcache_ prefix), help */
#define MC_QUOTA_COUNTERS(X)                                                                                           \
    X(quota_tiles_total, "Tiles removed to keep caches to their max_size.")                                            \
    X(quota_bytes_total, "Bytes of the tiles removed to keep caches to their max_size.")

MC_QUOTA_COUNTERS(MC_COUNTER_DECLARE)

#endif
