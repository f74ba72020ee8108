/* What the tables of commands and options tell people: --help, manual pages, the completion of shells. */
#ifndef MC_CLI_HELP_H
#define MC_CLI_HELP_H

#include <stdio.h>

#include "options.h"

/* The commands of the program; the last one has no name. */
void mc_cli_list_commands(FILE *out, const mc_cli_command *commands, const char *group);

/* --help of a command. `message`, if not NULL, stands below the usage line. */
void mc_cli_print_help(FILE *out, const mc_cli_command *command, const char *program, const char *message);

/* Says what is wrong with the use of a command: on standard error with a hint; mapcache_seed writes the message and
 * the list of its options to standard output, as MapCache's seeder does. */
void mc_cli_refuse(const mc_cli_call *call, const char *problem);

/* Writes mapcache.1, mapcache-seed.1 and the others into a folder. False: one of them cannot be written, it has been
 * said. */
bool mc_cli_write_manual(const char *folder, const mc_cli_command *commands, apr_pool_t *pool);

/* The completion for bash. */
void mc_cli_print_completion(FILE *out, const mc_cli_command *commands, apr_pool_t *pool);

#endif
