/* The options of the seeder (docs/reference/services.md 9.1), read and checked as far as that needs no configuration.
 */
#ifndef MC_CLI_SEED_OPTIONS_H
#define MC_CLI_SEED_OPTIONS_H

#include <apr_tables.h>

#include "cli/common/options.h"
#include "mapcache/seed.h"
#include "seed/area.h"

/* What `mapcache copy` has found out for one run: from where to where, and afterwards how many tiles. The tilesets are
 * copies that nobody else uses. */
typedef struct mc_seed_pair {
    const struct mc_config *config; /* whose budgets hold */
    mc_tileset *source, *target;
    const mc_grid_link *source_link, *target_link;
    bool convert;
    bool drawn; /* the grids have different tiles: the target's are walked over, and drawn from stored ones */
    int64_t tiles, kept, failed; /* copied or equal; there before; failed blocks */
} mc_seed_pair;

typedef struct mc_seed_options {
    mc_seed_pair *pair; /* of MC_SEED_COPY and MC_SEED_COMPARE, instead of the names below */
    bool drop_in;       /* called as mapcache_seed: MapCache's seeder passes over some things */
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
    bool force, quiet, non_interactive, verbose, resume, json, dry_run, no_backoff;
    apr_time_t older;
    int threads_wanted, processes_wanted; /* 0: not given */
    int workers;
    bool processes;
    double percent;
    double rate; /* tiles per second; 0: no limit */
    double thread_delay;
    int retries;
    apr_table_t *dimensions, *headers;
} mc_seed_options;

/* One run of the seeder; the exit status. The call says under which name, and whether quietly. */
int mc_seed_run(const mc_cli_call *call, const mc_seed_options *options);

/* Whether an interrupt, or too many failures, ended the last run before its end. */
bool mc_seed_was_interrupted(void);

/* What `mapcache seed` and `mapcache purge` read in the same way into a struct that begins with mc_seed_options. */
mc_cli_value_parser mc_seed_parse_zooms, mc_seed_parse_extent, mc_seed_parse_age;

/* Rows of the commands that work on a part of a tileset; AT(field) is the offset in the command's own options. */
#define MC_SEED_AREA_OPTIONS                                                                                           \
    MC_OPTION_VALUE("extent", 'e', "MINX,MINY,MAXX,MAXY", AT(seed), mc_seed_parse_extent, "in units of the grid"),     \
        MC_OPTION_TEXT("area", 0, "FILE", AT(seed.area),                                                               \
                       "only tiles that meet its polygons, lines and points: GeoJSON or WKT"),                         \
        MC_OPTION_TEXT("area-srs", 0, "SRS", AT(seed.area_srs),                                                        \
                       "CRS of the area's coordinates, x first; default: what the file says"),                         \
        MC_OPTION_TEXT("ogr-datasource", 'd', "NAME", AT(seed.ogr.source),                                             \
                       "the same from a vector source of GDAL, in units of the grid; not with -e"),                    \
        MC_OPTION_TEXT("ogr-layer", 'l', "NAME", AT(seed.ogr.layer), "its layer, needed if it has several"),           \
        MC_OPTION_TEXT("ogr-where", 'w', "FILTER", AT(seed.ogr.where), "only features with these attributes"),         \
        MC_OPTION_TEXT("ogr-sql", 's', "QUERY", AT(seed.ogr.sql), "a query instead of layer and filter")

/* What is wrong with the options that limit the area; NULL: nothing. */
const char *mc_seed_check_area(const mc_seed_options *options);

#endif
