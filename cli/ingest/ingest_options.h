/* The options of `mapcache ingest`, read and checked as far as that needs no configuration. */
#ifndef MC_CLI_INGEST_OPTIONS_H
#define MC_CLI_INGEST_OPTIONS_H

#include "mapcache/ingest.h"

typedef struct mc_ingest_options {
    const char *config, *tileset, *grid;
    const char *list, *time, *scratch;
    const char *time_dimension; /* NULL: the tileset's only one */
    int minzoom, maxzoom;       /* -1: to be found out */
    mc_raster_options raster;
    mc_ingest_resample resample;
    uint8_t background[3];
    int64_t cache_limit;
    int threads;
    bool skip_bad, dry_run, quiet, json, verbose;
    apr_table_t *dimensions;         /* name, value */
    const apr_array_header_t *paths; /* const char *: the arguments */
} mc_ingest_options;

#endif
