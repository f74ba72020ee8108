/* Areas from vector sources of GDAL, as the seeder, the queue and the report of stores take them. */
#ifndef MC_CLI_OGR_AREA_H
#define MC_CLI_OGR_AREA_H

#include "seed/area.h"

/* Which options of an area do not go together, `file` being that of --area or NULL; NULL: all do. */
const char *mc_ogr_area_check(const mc_seed_ogr *ogr, bool has_extent, const char *file);

/* mc_seed_area_ogr; says on standard error how many features were passed over. */
mc_error *mc_ogr_area_read(mc_seed_region **region, const mc_seed_ogr *wanted, const mc_grid *grid, int finest,
                           apr_pool_t *pool) MC_CHECKED;

/* Says on standard error where the area's coordinates seem to be degrees, and the grid's metres, or the reverse. */
void mc_ogr_area_warn(const mc_seed_region *region, const mc_grid *grid);

#endif
