/* What servers and libraries write, as words for people. */
#ifndef MC_CLI_SERVE_WORDS_H
#define MC_CLI_SERVE_WORDS_H

#include <apr_pools.h>
#include <stdbool.h>

#include "mapcache/error.h"

/* A line of an error log of httpd, nginx or the FastCGI program: what it says, without times, processes and
 * passwords; NULL where nobody needs to read it. */
const char *mc_serve_log_words(const char *line, apr_pool_t *pool);

/* An error and its causes, without passwords. Line breaks are kept: a configuration has a line for each mistake. */
const char *mc_serve_error_words(const mc_error *error, apr_pool_t *pool);

/* A text in which anything may stand, for a terminal: its lines, those after the first one indented, so that none can
 * pass for a line of the program. Other control characters are blanks. What is too long or too many is left out. */
const char *mc_serve_terminal_lines(const char *text, apr_pool_t *pool);

#endif
