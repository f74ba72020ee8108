/* The options of `mapcache cube`. */
#ifndef MC_CLI_CUBE_OPTIONS_H
#define MC_CLI_CUBE_OPTIONS_H

#include "mapcache/cube_ingest.h"

typedef struct mc_cube_options {
    const char *config, *cube;
    const char *list, *time, *scratch;
    const char *date; /* "START" or "START/STEP" */
    const char *step; /* behind the slash; NULL: there is none */
    bool placed;
    double at[2];
    mc_raster_options raster;
    int64_t cache_limit;
    int threads;
    bool quiet, json, verbose, help;
    const apr_array_header_t *paths; /* const char *: the arguments */
} mc_cube_options;

/* NULL, or what is wrong. argv[0] is "ingest", "dates" or "overviews". */
const char *mc_cube_options_parse(mc_cube_options *options, int argc, const char *const *argv, apr_pool_t *pool);

/* The message (if not NULL) and a hint on standard error, or the list of options on standard output. */
void mc_cube_usage(const char *message);

#endif
