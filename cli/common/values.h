/* Values of options that commands have in common. */
#ifndef MC_CLI_VALUES_H
#define MC_CLI_VALUES_H

#include <apr_tables.h>

#include "mapcache/tileset.h"

/* All are false where the text cannot be used. Blanks may stand before numbers. Two whole numbers from `min` to `max`:
 * "A,B" */
bool mc_cli_parse_pair(int *first, int *second, const char *text, int min, int max, apr_pool_t *pool);

/* "MIN,MAX", or one level */
bool mc_cli_parse_zooms(int *first, int *last, const char *text, apr_pool_t *pool);

/* "X,Y,X,Y": two corners, any two */
bool mc_cli_parse_corners(double numbers[4], const char *text, apr_pool_t *pool);

/* "MINX,MINY,MAXX,MAXY" */
bool mc_cli_parse_extent(mc_extent *extent, const char *text, apr_pool_t *pool);

/* "now", a local time "YYYY/MM/DD hh:mm", or how long ago: "90s", "30m", "12h", "7d". */
bool mc_cli_parse_age(apr_time_t *older, const char *text, apr_pool_t *pool);

/* "NAME=VALUE" into a table. */
bool mc_cli_parse_assignment(apr_table_t *table, const char *text, apr_pool_t *pool);

/* "R,G,B", or one number for all three, 0 to 255. */
bool mc_cli_parse_color(unsigned char rgb[3], const char *text);

/* A colour that means no data, into an mc_raster_options. */
bool mc_cli_parse_no_data(void *raster, const char *text, apr_pool_t *pool);

/*
 * The values of a tileset's dimensions (mc_tileset_values), given by options. `forgiving`: names of no dimension are
 * only told on standard error, as MapCache's programs pass over them. NULL, or what is wrong.
 */
const char *mc_cli_dimension_values(const char ***values, const mc_tileset *tileset, const apr_table_t *given,
                                    bool forgiving, apr_pool_t *pool);

#endif
