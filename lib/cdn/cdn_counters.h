/* What this room counts. */
#ifndef MC_CDN_CDN_COUNTERS_H
#define MC_CDN_CDN_COUNTERS_H

#include "base/metrics.h"

/* name (OpenMetrics, without the mapcache_ prefix), help */
#define MC_CDN_COUNTERS(X)                                                                                             \
    X(cdn_purges_total, "Purge requests that caches in front (<cdn>) have taken.")                                     \
    X(cdn_purged_keys_total, "Surrogate keys, and addresses of tiles, that these requests have named.")                \
    X(cdn_purge_failures_total, "Purge requests that failed; they are sent again.")                                    \
    X(cdn_purges_coarsened_total, "Times that keys of parts of a tileset became that of the whole tileset, because "   \
                                  "too many waited.")                                                                  \
    X(cdn_purges_lost_total, "Addresses of tiles that were not purged because too many had changed at a time.")

MC_CDN_COUNTERS(MC_COUNTER_DECLARE)

#endif
