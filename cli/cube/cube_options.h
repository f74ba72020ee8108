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
    bool quiet, json, verbose;
    const apr_array_header_t *paths; /* const char *: the arguments */
} mc_cube_options;

#endif
