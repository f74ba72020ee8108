/* What is made of the tables of commands and options: manual pages, completions of shells, a page of docs, JSON. */
#ifndef MC_CLI_MANUAL_H
#define MC_CLI_MANUAL_H

#include <stdio.h>

#include "cli/common/options.h"

/* Of the version: it stands in the manual pages, which thereby do not depend on the day of the build. */
#define MC_MANUAL_DATE "2026-11-23"

/* Writes mapcache.1, mapcache-seed.1 and the others into a folder. `fcgi`: what `mapcache.fcgi --help` prints, for
 * mapcache.fcgi.8; NULL: without that page. False: one of them cannot be written, it has been said. */
bool mc_write_manual(const char *folder, const char *fcgi, const mc_cli_command *commands, apr_pool_t *pool);

/* The pages of commands, of the name of MapCache for one of them, and of all of them. */
void mc_print_command_page(FILE *out, const mc_cli_command *command, const mc_cli_command *commands, apr_pool_t *pool);
void mc_print_drop_in_page(FILE *out, const mc_cli_command *command, apr_pool_t *pool);
void mc_print_overview_page(FILE *out, const mc_cli_command *commands, apr_pool_t *pool);

/* The pages of the other programs and of the configuration. */
void mc_print_keys_page(FILE *out, apr_pool_t *pool);
void mc_print_module_page(FILE *out, apr_pool_t *pool);
void mc_print_fcgi_page(FILE *out, const char *help, apr_pool_t *pool);

void mc_print_bash_completion(FILE *out, const mc_cli_command *commands, apr_pool_t *pool);
void mc_print_zsh_completion(FILE *out, const mc_cli_command *commands, apr_pool_t *pool);
void mc_print_fish_completion(FILE *out, const mc_cli_command *commands, apr_pool_t *pool);

/* docs/commands.md. */
void mc_print_commands_markdown(FILE *out, const mc_cli_command *commands, apr_pool_t *pool);

/* All commands and options, one object. */
void mc_print_commands_json(const mc_cli_command *commands, apr_pool_t *pool);

/* What the name of an option's value says of what a shell may offer for it. */
typedef enum mc_value_sort {
    MC_VALUE_OTHER,
    MC_VALUE_FILE,
    MC_VALUE_FOLDER,
    MC_VALUE_CHOICE,
} mc_value_sort;

mc_value_sort mc_value_sort_of(const mc_cli_option *option);

/* The name of the program of MapCache that a command stands for, "mapcache_seed"; NULL: there is none. */
const char *mc_drop_in_name_of(const mc_cli_command *command, apr_pool_t *pool);

#endif
