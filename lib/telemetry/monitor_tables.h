/* The tables of a monitor, as they lie in shared memory. */
#ifndef MC_TELEMETRY_MONITOR_TABLES_H
#define MC_TELEMETRY_MONITOR_TABLES_H

#include "telemetry/incidents.h"
#include "telemetry/process_reports.h"
#include "telemetry/slow_requests.h"

typedef struct mc_incident_table {
    mc_monitor_turn turn; /* of the rest */
    uint64_t last;        /* number of the last incident */
    mc_incident incidents[MC_INCIDENTS_MAX];
} mc_incident_table;

typedef struct mc_slow_table {
    _Atomic int64_t threshold;  /* microseconds: faster requests are of no interest before `expires` */
    _Atomic apr_time_t expires; /* mc_clock_now() from which there is room for any request */
    mc_monitor_turn turn;       /* of the rest */
    uint64_t last;              /* number of the request that was added last */
    mc_slow_request requests[MC_SLOW_REQUESTS_MAX];
} mc_slow_table;

/* Apart from the reports, which take no memory before they are written. */
typedef struct mc_process_slot {
    _Atomic int process;  /* whose slot it is; 0: nobody's */
    mc_monitor_turn turn; /* of the report of the same index */
} mc_process_slot;

struct mc_monitor {
    mc_incident_table incidents;
    mc_slow_table slow;
    mc_process_slot slots[MC_PROCESS_REPORTS_MAX];
    mc_process_report reports[MC_PROCESS_REPORTS_MAX];
};

#endif
