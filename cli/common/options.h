/* Options of commands: one table for the parser and for --help. */
#ifndef MC_CLI_OPTIONS_H
#define MC_CLI_OPTIONS_H

#include <apr_getopt.h>
#include <apr_tables.h>
#include <stdbool.h>

/* Where an option goes that is taken as it is written. A list ends with letter 0. */
typedef struct mc_option_place {
    int letter;
    const char **text; /* one of them */
    bool *flag;
} mc_option_place;

/* Of an option without such a place. False: the value cannot be read. */
typedef bool mc_option_take(void *baton, int letter, const char *text, apr_pool_t *pool);

/* NULL, or what is wrong. Options and arguments stand in any order; *arguments: const char *. */
const char *mc_options_parse(const apr_array_header_t **arguments, const apr_getopt_option_t *rows,
                             const mc_option_place *places, mc_option_take *take, void *baton, int argc,
                             const char *const *argv, apr_pool_t *pool);

/* The table on standard output, as --help shows it. */
void mc_options_list(const apr_getopt_option_t *rows);

/* "R,G,B", or one number for all three, 0 to 255. False for anything else. */
bool mc_option_color(unsigned char rgb[3], const char *text);

#endif
