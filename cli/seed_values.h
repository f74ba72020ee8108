/* Values of options that the seeder and the jobs of the queue have in common. */
#ifndef MC_CLI_SEED_VALUES_H
#define MC_CLI_SEED_VALUES_H

#include <apr_tables.h>

#include "mapcache/grid.h"

/* All are false where the text cannot be used. Two whole numbers with a comma between. */
bool mc_seed_parse_pair(int *first, int *second, const char *text, int min, int max, apr_pool_t *pool);

/* "MINX,MINY,MAXX,MAXY" */
bool mc_seed_parse_extent(mc_extent *extent, const char *text);

/* "now", a local time "YYYY/MM/DD hh:mm", or how long ago: "30m", with s, m, h or d. */
bool mc_seed_parse_age(apr_time_t *older, const char *text, apr_pool_t *pool);

/* "NAME=VALUE" into a table. */
bool mc_seed_parse_assignment(apr_table_t *table, const char *text, apr_pool_t *pool);

#endif
