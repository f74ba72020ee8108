/* Which images belong together: those of one time make one pyramid. */
#ifndef MC_CLI_IMAGE_INPUTS_H
#define MC_CLI_IMAGE_INPUTS_H

#include <apr_tables.h>

#include "mapcache/error.h"

/* Images of one time, in the order in which they were named. */
typedef struct mc_ingest_group {
    const char *value;         /* of the time dimension; NULL: there is none */
    apr_array_header_t *paths; /* const char * */
} mc_ingest_group;

/*
 * The images of the arguments and then those of the list (a file, or "-"; NULL: none), each with the value that stands
 * behind a tab in the list, else that which the pattern finds in its name (NULL: none). *groups: mc_ingest_group, in
 * the order of their first images. MC_ERR_CORRUPT names the line or file that has no time, MC_ERR_CONFIG what is wrong
 * with the pattern; MC_ERR_NOT_FOUND without a list.
 */
mc_error *mc_ingest_inputs(apr_array_header_t **groups, const apr_array_header_t *paths, const char *list,
                           const char *pattern, apr_pool_t *pool) MC_CHECKED;

#endif
