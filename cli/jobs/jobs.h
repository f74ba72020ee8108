/* What the parts of `mapcache jobs` share. */
#ifndef MC_CLI_JOBS_H
#define MC_CLI_JOBS_H

#include <stdio.h>

#include "mapcache/jobs.h"
#include "mapcache/server.h"
#include "seed/area.h"

/* One run of `mapcache jobs COMMAND`. */
typedef struct jobs_run_options {
    const char *config, *connection, *area;
    mc_seed_ogr ogr; /* of enqueue, as `area`; source NULL: none */
    bool json, verbose;

    mc_job_spec spec; /* enqueue */
    apr_table_t *dimensions;

    int processes, threads, retries; /* work */
    bool drain, quiet;
    const char *name;

    bool has_state, all; /* list, cancel, ... */
    mc_job_state state;
    int limit;
    apr_int64_t older;       /* prune: seconds */
    apr_array_header_t *ids; /* of int64_t */
} jobs_options;

typedef struct jobs_cli {
    apr_pool_t *pool;
    const char *command;
    jobs_options options;
    mc_server *server;
    const mc_config *model; /* NULL: only a connection was given */
    mc_jobs *jobs;
    mc_runtime *runtime;
    mc_log log;
    mc_ctx ctx;
} jobs_cli;

/* Reads the configuration, and finds the queue. NULL, or what is wrong. */
const char *mc_cli_jobs_load(jobs_cli *cli);

/* Makes the process of the server's model, or of a bare connection: not before a fork. NULL, or what is wrong. */
const char *mc_cli_jobs_open(jobs_cli *cli, int processes);

/* What a worker shows of itself. */
typedef struct jobs_display {
    bool quiet, json, terminal;
    apr_time_t began, shown; /* mc_clock_now() */
} jobs_display;

jobs_display mc_cli_jobs_display(const jobs_cli *cli);
void mc_cli_jobs_progress(jobs_display *display, const mc_jobs_session_result *so_far, int64_t job); /* now and then */
void mc_cli_jobs_end(const jobs_display *display, const mc_jobs_session_result *result, int status);

/* The worker session of the calling process, without what it shows; ends once *stop is not 0. */
mc_jobs_session mc_cli_jobs_session(const jobs_cli *cli, const volatile int *stop);

/* Exit statuses. */
int mc_cli_jobs_work(jobs_cli *cli);
int mc_cli_jobs_processes(jobs_cli *cli); /* before the process is made */
int mc_cli_jobs_watch(jobs_cli *cli);
int mc_cli_jobs_show(jobs_cli *cli, const mc_job *job);
int mc_cli_jobs_failed(const jobs_cli *cli, const mc_error *error); /* says so on standard error: 1 */

/* One line about a job. */
void mc_cli_jobs_line(const mc_job *job, double rate);

#endif
