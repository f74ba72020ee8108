/* See ogr_area.h. */
#include "ogr_area.h"

#include <stdio.h>

const char *
mc_ogr_area_check(const mc_seed_ogr *ogr, bool has_extent, const char *file)
{
    if (ogr->source != NULL && has_extent)
        return "the area comes from one of --extent and --ogr-datasource";
    if (ogr->source != NULL && file != NULL)
        return "the area comes from one of --area and --ogr-datasource";
    if (ogr->source == NULL && (ogr->layer != NULL || ogr->where != NULL || ogr->sql != NULL))
        return "--ogr-layer, --ogr-where and --ogr-sql need --ogr-datasource";
    if (ogr->sql != NULL && (ogr->layer != NULL || ogr->where != NULL))
        return "--ogr-sql stands for --ogr-layer and --ogr-where";
    return NULL;
}

mc_error *
mc_ogr_area_read(mc_seed_region **region, const mc_seed_ogr *wanted, const mc_grid *grid, int finest, apr_pool_t *pool)
{
    int64_t features, invalid;
    MC_TRY(mc_seed_area_ogr(region, &features, &invalid, wanted, grid, finest, pool));
    if (invalid > 0)
        fprintf(stderr, "%lld of %lld features have no valid geometry and are passed over\n", (long long)invalid,
                (long long)features);
    return MC_OK;
}

static bool
looks_like_degrees(const mc_extent *e)
{
    return e->minx >= -360 && e->maxx <= 360 && e->miny >= -180 && e->maxy <= 180;
}

/* Degrees on a grid of metres are near its middle; metres on a grid of degrees are nowhere. */
void
mc_ogr_area_warn(const mc_seed_region *region, const mc_grid *grid)
{
    mc_extent bounds = mc_region_bounds(region);
    bool degrees = looks_like_degrees(&grid->extent), area = looks_like_degrees(&bounds);
    if (degrees != area)
        fprintf(stderr,
                "********************************************************************************\n"
                "* WARNING: the area seems to be in %s, grid %s is in %s.\n"
                "* Its coordinates must be those of the grid (%s), or --area-srs must name theirs.\n"
                "********************************************************************************\n",
                area ? "degrees" : "metres", grid->name, degrees ? "degrees" : "metres", grid->srs);
}
