/* What this room counts. */
#ifndef MC_DB_SQLITE_SQLITE_COUNTERS_H
#define MC_DB_SQLITE_SQLITE_COUNTERS_H

#include "base/metrics.h"

/* name (OpenMetrics, without the mapcache_ prefix), help */
#define MC_SQLITE_COUNTERS(X)                                                                                          \
    X(handles_opened_total, "SQLite files opened.")                                                                    \
    X(bare_opens_total, "SQLite files opened for their pages alone.")                                                  \
    X(handles_evicted_total, "SQLite handles closed to stay inside the bound.")

MC_SQLITE_COUNTERS(MC_COUNTER_DECLARE)

#endif
