/* What this room counts. */
#ifndef MC_CHANGES_CHANGES_COUNTERS_H
#define MC_CHANGES_CHANGES_COUNTERS_H

#include "base/metrics.h"

/* name (OpenMetrics, without the mapcache_ prefix), help */
#define MC_CHANGES_COUNTERS(X)                                                                                         \
    X(change_reads_total, "Times that a change log was read.")                                                         \
    X(change_rows_total, "Rows of change logs that were read.")                                                        \
    X(change_marks_total, "Ranges of tiles that changes have marked as old.")                                          \
    X(change_losses_total, "Times that a change log had lost what was not read, so that everything was marked.")

MC_CHANGES_COUNTERS(MC_COUNTER_DECLARE)

#endif
