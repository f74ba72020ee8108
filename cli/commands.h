/*
 * The commands of `mapcache`: one row of commands.c for each of them, with its options, its check and its function.
 */
#ifndef MC_CLI_COMMANDS_H
#define MC_CLI_COMMANDS_H

#include "cli/common/options.h"

extern const mc_cli_option_table mc_adopt_option_table, mc_check_option_table, mc_compact_option_table,
    mc_copy_option_table, mc_cube_option_table, mc_detail_option_table, mc_doctor_option_table, mc_help_option_table,
    mc_ingest_option_table, mc_index_option_table, mc_invalidate_option_table, mc_jobs_option_table,
    mc_keys_option_table, mc_overviews_option_table, mc_purge_option_table, mc_seed_option_table, mc_serve_option_table,
    mc_trace_option_table, mc_version_option_table;

/* Which of the commands that share a table. */
enum {
    MC_JOBS_ENQUEUE = 1,
    MC_JOBS_WORK = 2,
    MC_JOBS_LIST = 4,
    MC_JOBS_SHOW = 8,
    MC_JOBS_WATCH = 16,
    MC_JOBS_CHANGE = 32,
    MC_JOBS_PRUNE = 64,
    MC_CUBE_INGEST = 1,
    MC_CUBE_DATES = 2,
    MC_CUBE_OVERVIEWS = 4,
    MC_OVERVIEWS_BUILD = 1,
    MC_OVERVIEWS_DROP = 2,
    MC_OVERVIEWS_UPDATE = 4,
    MC_OVERVIEWS_LIST = 8,
};

/* What is wrong with the options and arguments of a call together; NULL: nothing. */
const char *mc_check_adopt_options(mc_cli_call *call);
const char *mc_check_trace_options(mc_cli_call *call);
const char *mc_check_copy_options(mc_cli_call *call);
const char *mc_check_cube_options(mc_cli_call *call);
const char *mc_check_detail_options(mc_cli_call *call);
const char *mc_check_doctor_options(mc_cli_call *call);
const char *mc_check_ingest_options(mc_cli_call *call);
const char *mc_check_invalidate_options(mc_cli_call *call);
const char *mc_check_jobs_options(mc_cli_call *call);
const char *mc_check_overviews_options(mc_cli_call *call);
const char *mc_check_purge_options(mc_cli_call *call);
const char *mc_check_seed_options(mc_cli_call *call);
const char *mc_check_serve_options(mc_cli_call *call);

/* A call of a command: the exit status. */
int mc_command_adopt(mc_cli_call *call);
int mc_command_check(mc_cli_call *call);
int mc_command_compact(mc_cli_call *call);
int mc_command_copy(mc_cli_call *call);
int mc_command_cube(mc_cli_call *call);
int mc_command_detail(mc_cli_call *call);
int mc_command_index(mc_cli_call *call);
int mc_command_ingest(mc_cli_call *call);
int mc_command_doctor(mc_cli_call *call);
int mc_command_invalidate(mc_cli_call *call);
int mc_command_jobs(mc_cli_call *call);
int mc_command_keys(mc_cli_call *call);
int mc_command_overviews(mc_cli_call *call);
int mc_command_parameters(mc_cli_call *call);
int mc_command_urls(mc_cli_call *call);
int mc_command_purge(mc_cli_call *call);
int mc_command_seed(mc_cli_call *call);
int mc_command_serve(mc_cli_call *call);
int mc_command_trace(mc_cli_call *call);

/* The rows; the last one has no name. */
extern const mc_cli_command mc_cli_commands[];
int mc_command_help(mc_cli_call *call);
int mc_command_version(mc_cli_call *call);

#endif
