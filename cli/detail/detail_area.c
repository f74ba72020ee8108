/* The area of `mapcache detail`: an extent, or what an OGR source holds. */
#include "detail_area.h"

#include "cli/common/ogr_area.h"
#include "seed/region.h"

mc_error *
mc_detail_area_read(mc_detail_area *area, const mc_grid *grid, int finest, apr_pool_t *pool)
{
    area->grid = grid;
    area->ogr.shape = &area->shape;
    area->ogr.united = true;
    MC_TRY(mc_ogr_area_read(&area->region, &area->ogr, grid, finest, pool));
    if (area->region != NULL)
        MC_TRY(mc_seed_shape_cut(&area->geometry, &area->extent, area->shape, NULL, pool));
    if (area->geometry == NULL)
        return mc_error_create(pool, MC_ERR_CONFIG, "\"%s\" has no features with a geometry there", area->ogr.source);
    return MC_OK;
}

mc_survey_share
mc_detail_area_share(const mc_detail_area *area, int z, const mc_tile_range *tiles)
{
    switch (mc_region_relate_tiles(area->region, area->grid, z, tiles)) {
    case MC_REGION_OUTSIDE:
        return MC_SURVEY_NONE;
    case MC_REGION_INSIDE:
        return MC_SURVEY_ALL;
    default:
        return MC_SURVEY_SOME;
    }
}

mc_error *
mc_detail_area_part(mc_extent *bounds, const char **geometry, const mc_detail_area *area, const mc_extent *box,
                    apr_pool_t *pool)
{
    *geometry = NULL;
    *bounds = mc_extent_intersection(box, &area->extent);
    if (area->region == NULL || mc_region_relate(area->region, box, 0, 0) == MC_REGION_INSIDE)
        return MC_OK;
    return mc_seed_shape_cut(geometry, bounds, area->shape, box, pool);
}
