/* What the parts of `mapcache jobs` share. */
#ifndef MC_CLI_JOBS_H
#define MC_CLI_JOBS_H

#include <apr_getopt.h>
#include <stdio.h>

#include "mapcache/jobs.h"
#include "mapcache/server.h"

/* One run of `mapcache jobs COMMAND`. */
typedef struct jobs_run_options {
    const char *config, *connection, *area;
    bool json, help, verbose;

    mc_job_wish wish; /* enqueue */
    apr_table_t *dimensions;

    int threads, retries; /* work */
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

/* NULL, or what is wrong. */
const char *mc_cli_jobs_parse(jobs_options *options, const char *command, int argc, const char *const *argv,
                              apr_pool_t *pool);
void mc_cli_jobs_usage(FILE *out, const char *command);

/* Exit statuses. */
int mc_cli_jobs_work(jobs_cli *cli);
int mc_cli_jobs_watch(jobs_cli *cli);
int mc_cli_jobs_show(jobs_cli *cli, const mc_job *job);
int mc_cli_jobs_failed(const jobs_cli *cli, const mc_error *error); /* says so on standard error: 1 */

/* "12 %": the share of a job that is through. */
double mc_cli_jobs_share(const mc_job *job);
void mc_cli_jobs_line(const mc_job *job, double rate);

#endif
