/* What this room counts. */
#ifndef MC_TILESET_TILESET_COUNTERS_H
#define MC_TILESET_TILESET_COUNTERS_H

#include "base/metrics.h"

/* name (OpenMetrics, without the mapcache_ prefix), help */
#define MC_TILESET_COUNTERS(X)                                                                                         \
    X(renders_total, "Metatiles rendered.")                                                                            \
    X(render_waits_total, "Requests that waited for another one's render.")                                            \
    X(remembered_failures_total, "Requests answered with the error of a render that failed a moment before.")          \
    X(stale_tiles_total, "Expired tiles that were served because rendering them again failed.")                        \
    X(refreshes_total, "Tiles that were drawn anew behind answers that had the old ones.")                             \
    X(refresh_failures_total, "Tiles that could not be drawn anew behind answers.")

MC_TILESET_COUNTERS(MC_COUNTER_DECLARE)

#endif
