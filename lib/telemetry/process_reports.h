/*
 * How each process of a server is, and how it finds what it depends on: stores, sources, servers, change logs. Each
 * process has a place of its own in shared memory, and writes there at most once a second, as requests end.
 */
#ifndef MC_TELEMETRY_PROCESS_REPORTS_H
#define MC_TELEMETRY_PROCESS_REPORTS_H

#include "telemetry/monitor.h"

/* Processes, and things of each of them, that there is room for. */
enum { MC_PROCESS_REPORTS_MAX = 128, MC_BACKEND_REPORTS_MAX = 128 };

typedef enum mc_backend_kind { MC_BACKEND_STORE, MC_BACKEND_SOURCE, MC_BACKEND_SERVER, MC_BACKEND_LOG } mc_backend_kind;
typedef enum mc_backend_state { MC_BACKEND_UNASKED, MC_BACKEND_WORKS, MC_BACKEND_FAILS } mc_backend_state;

/* What a process has found of one thing: its own last operation decides. */
typedef struct mc_backend_report {
    mc_backend_kind kind;
    mc_backend_state state;
    uint32_t model; /* of which configuration file it is: mc_process_reports_model; 0: of the process */
    int error;      /* mc_error_kind of the last failure */
    bool leads;     /* of a log: this process looks after stored tiles for all */
    uint64_t calls, failures;
    apr_time_t failed; /* mc_clock_now(): the last failure; 0: none */
    apr_time_t read;   /* mc_clock_now(): of a log, when it was read last; 0: never */
    char name[64], type[20], position[96];
} mc_backend_report;

typedef struct mc_process_report {
    int process;
    apr_time_t started, seen; /* mc_clock_now(): of the process's first report, and of this one */
    apr_time_t modified;      /* microseconds since 1970: of the configuration file that is served */
    bool draining, reload_failed;
    int64_t resident; /* bytes of memory, those that are shared included; 0: not known */
    int64_t budget_used, budget;
    int64_t memory_used, memory; /* of its own memory_cache */
    int64_t behind;              /* bytes of tiles that wait to be stored */
    int workers, workers_idle, io_workers, io_workers_idle;
    int open_files;
    int marks;      /* of tiles that a change has made old */
    unsigned apart; /* things that there was no room for */
    int count;
    mc_backend_report backends[MC_BACKEND_REPORTS_MAX];
} mc_process_report;

/* A number for a configuration file, never 0. */
uint32_t mc_process_reports_model(const char *file);

/* Whether the calling process should report now: `pause` (microseconds) after its last report. One thread at a time
 * gets true, and calls mc_process_reports_put. */
bool mc_process_reports_due(apr_time_t now, apr_interval_time_t pause);

/*
 * Puts the report of this process. Of `report` the members process, started and seen are filled in, and the things of
 * other configuration files than `model` are kept as they were.
 */
void mc_process_reports_put(mc_monitor *monitor, mc_process_report *report, uint32_t model);

/* The process ends, or has ended: its place is free again. */
void mc_process_reports_leave(mc_monitor *monitor);

/* Calls `visit` for a copy of the report of each process that is there. Returns how many there are. */
int mc_process_reports_visit(mc_monitor *monitor, void (*visit)(void *baton, const mc_process_report *report),
                             void *baton, apr_pool_t *pool);

#endif
