/*
 * The commands of `mapcache`. Each is one function in a file of its own and one row of the table in main.c.
 */
#ifndef MC_CLI_COMMANDS_H
#define MC_CLI_COMMANDS_H

/* As main(): argv[0] is the command's own name. Returns the exit status. */
typedef int mc_command(int argc, const char *const *argv);

mc_command mc_command_check;      /* check FILE: every complaint about a configuration; 0, 1 refused, 2 warnings */
mc_command mc_command_compact;    /* compact: free pages and dead rows, orphans; 0, 1 wrong use, 2 a store failed */
mc_command mc_command_cube;       /* cube ingest, cube dates: images into data cubes */
mc_command mc_command_detail;     /* detail: mapcache_detail's options, JSON and exit codes */
mc_command mc_command_index;      /* index FILE.shp ...: their spatial indexes */
mc_command mc_command_ingest;     /* ingest: images to tiles; 0, 1 an error, 2 interrupted, 3 bad images passed over */
mc_command mc_command_jobs;       /* jobs: the queue that seeders share */
mc_command mc_command_keys;       /* keys: the reference of all configuration keys */
mc_command mc_command_parameters; /* parameters: the reference of all parameters of requests */
mc_command mc_command_seed;       /* seed: mapcache_seed's options and exit codes */
mc_command mc_command_trace;      /* trace < error.log: call trees, --summary, --html FILE */

#endif
