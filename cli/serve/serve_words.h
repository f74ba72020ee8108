/* What servers and libraries write, as words for people. */
#ifndef MC_CLI_SERVE_WORDS_H
#define MC_CLI_SERVE_WORDS_H

#include <apr_pools.h>
#include <stdbool.h>

/* A line of an error log of httpd, nginx or the FastCGI program: what it says, without times, processes and
 * passwords; NULL where nobody needs to read it. */
const char *mc_serve_log_words(const char *line, apr_pool_t *pool);

#endif
