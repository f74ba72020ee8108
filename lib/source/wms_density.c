/*
 * Vendor parameters of WMS servers for fine screens. No standard has one. Servers ignore parameters that they do not
 * know (WMS 1.3.0 6.6.1 tells clients so), and QGIS as a client sends all three to every server.
 *
 *     QGIS Server, ArcGIS, mapcache   DPI=181               90.7 is a pixel of 0.28 mm
 *     MapServer                       MAP_RESOLUTION=144    72 is the default of a map file's RESOLUTION
 *     GeoServer                       FORMAT_OPTIONS=dpi:181
 */
#include "source/wms_density.h"

#include <apr_strings.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "grid/earth.h"
#include "text/text.h"

#define METRES_PER_INCH 0.0254
#define MAPSERVER_DPI 72.0
#define STANDARD_DPI (METRES_PER_INCH / MC_PIXEL_METRES)

/* Whole numbers: some servers read nothing else. */
static const char *
scaled_dpi(const char *configured, double fallback, double density, apr_pool_t *pool)
{
    double dpi;
    if (configured == NULL || !mc_parse_double(&dpi, configured) || !(dpi > 0 && dpi < 1e6))
        dpi = fallback;
    return apr_psprintf(pool, "%.0f", rint(dpi * density));
}

/* GeoServer's list, "key:value;key:value": dpi is replaced where the list has one, else appended. */
static const char *
scaled_options(const char *options, double density, apr_pool_t *pool)
{
    for (const char *at = options; at != NULL && *at != '\0';) {
        size_t length = strcspn(at, ";");
        if (strncasecmp(at, "dpi:", 4) == 0) {
            const char *dpi = apr_pstrmemdup(pool, at + 4, length - 4);
            return apr_pstrcat(pool, apr_pstrmemdup(pool, options, (size_t)(at - options)),
                               "dpi:", scaled_dpi(dpi, STANDARD_DPI, density, pool), at + length, NULL);
        }
        at += length + (at[length] == ';' ? 1 : 0);
    }
    return apr_pstrcat(pool, options == NULL ? "" : options, options == NULL || *options == '\0' ? "" : ";",
                       "dpi:", scaled_dpi(NULL, STANDARD_DPI, density, pool), NULL);
}

void
mc_wms_add_density(apr_table_t *params, mc_density_parameters which, double density, apr_pool_t *pool)
{
    if (!(density > 1))
        return;
    if (which == MC_DENSITY_ALL || which == MC_DENSITY_DPI)
        apr_table_setn(params, "DPI", scaled_dpi(apr_table_get(params, "DPI"), STANDARD_DPI, density, pool));
    if (which == MC_DENSITY_ALL || which == MC_DENSITY_MAP_RESOLUTION)
        apr_table_setn(params, "MAP_RESOLUTION",
                       scaled_dpi(apr_table_get(params, "MAP_RESOLUTION"), MAPSERVER_DPI, density, pool));
    if (which == MC_DENSITY_ALL || which == MC_DENSITY_FORMAT_OPTIONS)
        apr_table_setn(params, "FORMAT_OPTIONS",
                       scaled_options(apr_table_get(params, "FORMAT_OPTIONS"), density, pool));
}
