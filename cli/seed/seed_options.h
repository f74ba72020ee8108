/* The options of the seeder (spec services 9.1), read and checked as far as that needs no configuration. */
#ifndef MC_CLI_SEED_OPTIONS_H
#define MC_CLI_SEED_OPTIONS_H

#include <apr_tables.h>

#include "mapcache/seed.h"
#include "seed/area.h"

typedef struct mc_seed_options {
    bool drop_in; /* called as mapcache_seed: MapCache's seeder passes over some things */
    const char *config, *tileset, *grid, *transfer, *cache;
    const char *failures, *retry, *list, *checkpoint; /* files */
    mc_seed_mode mode;
    bool has_order;
    mc_seed_order order;
    bool has_zoom, has_extent;
    int minzoom, maxzoom;
    mc_extent extent;
    const char *area, *area_srs;
    mc_seed_ogr ogr; /* source NULL: none */
    bool outside;
    int metatile_columns, metatile_rows; /* 0: the tileset's */
    bool force, quiet, non_interactive, verbose, help, resume, json, dry_run, no_backoff;
    apr_time_t older;
    int workers;
    bool processes;
    double percent;
    double rate; /* tiles per second; 0: no limit */
    double thread_delay;
    int retries;
    apr_table_t *dimensions, *headers;
} mc_seed_options;

/* NULL, or what is wrong. */
const char *mc_seed_options_parse(mc_seed_options *options, int argc, const char *const *argv, apr_pool_t *pool);

/* The program's name, the message (if not NULL) and the list of options, on standard output; of `mapcache seed` the
 * message alone, on standard error. */
void mc_seed_usage(const char *program, const char *message);

#endif
