/* What this room counts. */
#ifndef MC_SOURCE_MAPSERVER_MAPSERVER_COUNTERS_H
#define MC_SOURCE_MAPSERVER_MAPSERVER_COUNTERS_H

#include "base/metrics.h"

/* name (OpenMetrics, without the mapcache_ prefix), help */
#define MC_MAPSERVER_COUNTERS(X)                                                                                       \
    X(mapserver_maps_total, "Maps drawn by processes of MapServer.")                                                   \
    X(mapserver_started_total, "Processes of MapServer that were started.")                                            \
    X(mapserver_lost_total, "Processes of MapServer that ended in the middle of a map, or were killed for it.")

MC_MAPSERVER_COUNTERS(MC_COUNTER_DECLARE)

#endif
