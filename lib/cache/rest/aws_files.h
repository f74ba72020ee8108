/* The file of credentials that the configuration names. */
#ifndef MC_CACHE_REST_AWS_FILES_H
#define MC_CACHE_REST_AWS_FILES_H

#include "cache/rest/sigv4.h"

/* The secret of a file: the first three lines, or "name = value" lines of the section [profile]; id NULL: none. */
void mc_aws_parse_file(mc_aws_secret *secret, const char *text, const char *profile, apr_pool_t *pool);

#endif
