/*
 * How a WMS is told that a map is for a fine screen (docs/reference/configuration.md 3.1).
 */
#ifndef MC_SOURCE_WMS_DENSITY_H
#define MC_SOURCE_WMS_DENSITY_H

#include <apr_tables.h>

/* The values of <density_parameters>, in the order of the key's choices. */
typedef enum mc_density_parameters {
    MC_DENSITY_ALL,
    MC_DENSITY_DPI,
    MC_DENSITY_MAP_RESOLUTION,
    MC_DENSITY_FORMAT_OPTIONS,
    MC_DENSITY_NONE,
} mc_density_parameters;

#define MC_DENSITY_CHOICES "all|dpi|map_resolution|format_options|none"

/* Adds to `params` (values by names in any case; new values in `pool`) what makes an origin draw symbols and text
 * `density` times as large. Of a parameter that is there already, the number is multiplied. Nothing changes for a
 * density up to 1. */
void mc_wms_add_density(apr_table_t *params, mc_density_parameters which, double density, apr_pool_t *pool);

#endif
