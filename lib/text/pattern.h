/* Regular expressions of configurations (PCRE2), with a bound on what one search may cost. */
#ifndef MC_TEXT_PATTERN_H
#define MC_TEXT_PATTERN_H

#include <apr_pools.h>
#include <stdbool.h>

/* Never changed once it is made: all threads share it. It lives as long as its pool. */
typedef struct mc_pattern mc_pattern;

/* NULL where the text is none: *problem then says at which character it fails, and why. */
mc_pattern *mc_pattern_compile(const char *text, const char **problem, apr_pool_t *pool);

/* Whether a match stands anywhere in the text; false too where the search would cost too much. */
bool mc_pattern_matches(const mc_pattern *pattern, const char *text);

#endif
