/* What the tables of commands and options tell people: --help, manual pages, the completion of shells. */
#ifndef MC_CLI_HELP_H
#define MC_CLI_HELP_H

#include <stdbool.h>
#include <stdio.h>

#include "options.h"

/* The commands of the program; the last one has no name. */
void mc_cli_list_commands(FILE *out, const mc_cli_command *commands, const char *group);

/* --help of a command. `message`, if not NULL, stands below the usage line. */
void mc_cli_print_help(FILE *out, const mc_cli_command *command, const char *program, const char *message);

/* Says what is wrong with the use of a command: on standard error with a hint; mapcache_seed writes the message and
 * the list of its options to standard output, as MapCache's seeder does. */
void mc_cli_refuse(const mc_cli_call *call, const char *problem);

/* Whether a row is a command of the group: "jobs work" of "jobs". */
bool mc_cli_is_command_of(const mc_cli_command *row, const char *group);

/* Whether the program is called as MapCache calls its own: "mapcache_seed". */
bool mc_cli_is_drop_in_name(const char *program);

/* The manual page that a command stands in: "mapcache-jobs(1)". */
const char *mc_cli_page_of(const mc_cli_command *command, apr_pool_t *pool);

/* The example at `at`, and where the next one begins; NULL: there is none left. */
const char *mc_cli_next_example(const char **command, const char **meaning, const char *at, apr_pool_t *pool);

#endif
