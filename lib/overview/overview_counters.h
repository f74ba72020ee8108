/* What this room counts. */
#ifndef MC_OVERVIEW_OVERVIEW_COUNTERS_H
#define MC_OVERVIEW_OVERVIEW_COUNTERS_H

#include "base/metrics.h"

/* name (OpenMetrics, without the mapcache_ prefix), help */
#define MC_OVERVIEW_COUNTERS(X)                                                                                        \
    X(overview_updates_total, "Times that overviews of a table were brought up to date after changes.")                \
    X(overview_update_rows_total, "Rows of tables that were looked at again for that.")                                \
    X(overview_builds_total, "Updates that have built the overviews of a table anew.")                                 \
    X(overview_update_failures_total, "Updates of overviews that failed or were put off; they are tried again.")

MC_OVERVIEW_COUNTERS(MC_COUNTER_DECLARE)

#endif
