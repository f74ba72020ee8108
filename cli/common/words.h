/* Numbers as people read them. */
#ifndef MC_CLI_WORDS_H
#define MC_CLI_WORDS_H

#include <apr_pools.h>
#include <stdint.h>

/* "0 B", "999 B", "1.5 kB", "12.3 MB": units of 1000, as file managers have them. */
const char *mc_cli_size_words(double bytes, apr_pool_t *pool);

/* "1 tile", "2 tiles". */
const char *mc_cli_count_words(int64_t count, const char *noun, apr_pool_t *pool);

/* "1 h 05 min", "3 min 20 s", "12 s" */
const char *mc_cli_duration_words(double seconds, apr_pool_t *pool);

#endif
