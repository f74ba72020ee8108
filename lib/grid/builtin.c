/* The grids that every configuration has (docs/reference/configuration.md 2.1). Their numbers are part of what clients
 * see in capabilities. */
#include <apr_strings.h>

#include "grid/earth.h"
#include "grid/grid_private.h"

static const double degrees[] = {
    0.703125,
    0.3515625,
    0.17578125,
    8.7890625e-2,
    4.39453125e-2,
    2.197265625e-2,
    1.0986328125e-2,
    5.4931640625e-3,
    2.74658203125e-3,
    1.373291015625e-3,
    6.866455078125e-4,
    3.4332275390625e-4,
    1.71661376953125e-4,
    8.58306884765625e-5,
    4.29153442382812e-5,
    2.14576721191406e-5,
    1.07288360595703e-5,
    5.36441802978516e-6,
};

static const double metres[] = {
    156543.0339280410,  78271.51696402048,  39135.75848201023, 19567.87924100512,  9783.939620502561,
    4891.969810251280,  2445.984905125640,  1222.992452562820, 611.4962262814100,  305.7481131407048,
    152.8740565703525,  76.43702828517624,  38.21851414258813, 19.10925707129406,  9.554628535647032,
    4.777314267823516,  2.388657133911758,  1.194328566955879, 0.5971642834779395, 0.2985821417389697,
    0.1492910708694849, 0.0746455354347424,
};

#define WEB_MERCATOR(name, srs, alias)                                                                                 \
    {                                                                                                                  \
        name, srs, alias, "GoogleMapsCompatible", "global-mercator",                                                   \
            { -MC_WEB_MERCATOR_EDGE, -MC_WEB_MERCATOR_EDGE, MC_WEB_MERCATOR_EDGE, MC_WEB_MERCATOR_EDGE }, 1, metres,   \
            sizeof(metres) / sizeof(metres[0])                                                                         \
    }

static const struct {
    const char *name, *srs, *alias, *title, *profile;
    mc_extent extent;
    double metres_per_unit;
    const double *resolutions;
    int count;
} builtins[] = {
    { "WGS84",
      "EPSG:4326",
      NULL,
      "GoogleCRS84Quad",
      "global-geodetic",
      { -180, -90, 180, 90 },
      MC_METRES_PER_DEGREE,
      degrees,
      sizeof(degrees) / sizeof(degrees[0]) },
    WEB_MERCATOR("GoogleMapsCompatible", "EPSG:3857", "EPSG:900913"),
    WEB_MERCATOR("g", "EPSG:900913", "EPSG:3857"),
};

void
mc_grid_builtins(apr_hash_t *grids, apr_pool_t *pool)
{
    for (size_t i = 0; i < sizeof(builtins) / sizeof(builtins[0]); i++) {
        mc_grid *grid = apr_pcalloc(pool, sizeof(*grid));
        grid->name = builtins[i].name;
        grid->srs = builtins[i].srs;
        apr_array_header_t *aliases = apr_array_make(pool, 1, sizeof(const char *));
        if (builtins[i].alias != NULL)
            APR_ARRAY_PUSH(aliases, const char *) = builtins[i].alias;
        grid->aliases = aliases;
        grid->extent = builtins[i].extent;
        grid->metres_per_unit = builtins[i].metres_per_unit;
        grid->origin = MC_BOTTOM_LEFT;
        grid->tile_width = grid->tile_height = 256;
        grid->metadata = mc_metadata_create(pool);
        mc_metadata_set(grid->metadata, "title", builtins[i].title);
        mc_metadata_set(grid->metadata, "profile", builtins[i].profile);
        mc_metadata_set(grid->metadata, "WellKnownScaleSet",
                        apr_pstrcat(pool, "urn:ogc:def:wkss:OGC:1.0:", builtins[i].title, NULL));
        int overfull = mc_grid_set_levels(grid, builtins[i].resolutions, builtins[i].count, pool);
        MC_ASSERT(overfull < 0);
        mc_grid_set_axes(grid);
        mc_grid_set_definition(grid);
        apr_hash_set(grids, grid->name, APR_HASH_KEY_STRING, grid);
    }
}
