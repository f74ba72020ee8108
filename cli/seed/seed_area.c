/*
 * Where a run of the seeder goes: an extent, a file of polygons, an OGR source.
 */
#include "cli/common/ogr_area.h"
#include "seed/drawn.h"
#include "seed_setup.h"

/* An extent as a region: of what does not meet it, only a region knows. */
static mc_error *
make_extent_region(mc_seed_region **region, const mc_extent *e, const mc_grid *grid, apr_pool_t *pool)
{
    const double ring[] = { e->minx, e->miny, e->maxx, e->miny, e->maxx, e->maxy, e->minx, e->maxy };
    mc_region_builder *builder;
    MC_TRY(mc_region_begin(&builder, grid, 0, NULL, pool));
    MC_TRY(mc_region_add(builder, MC_REGION_RING, ring, 4, pool));
    *region = mc_region_finish(builder);
    return MC_OK;
}

static mc_error *
read_seed_ogr_region(mc_seed_region **region, mc_seed_setup *setup)
{
    mc_seed_ogr wanted = setup->options.ogr;
    wanted.srs = setup->options.area_srs;
    return mc_ogr_area_read(region, &wanted, setup->area.grid, setup->area.maxzoom, setup->pool);
}

static mc_error *
read_seed_region(mc_seed_region **region, mc_seed_setup *setup)
{
    const mc_seed_options *options = &setup->options;
    if (options->outside && options->has_extent)
        return make_extent_region(region, &options->extent, setup->area.grid, setup->pool);
    if (options->ogr.source != NULL)
        return read_seed_ogr_region(region, setup);
    return mc_seed_area_read(region, options->area, options->area_srs, setup->area.grid, setup->area.maxzoom,
                             setup->pool);
}

/* Beyond its data a layer has no tiles worth drawing. */
static const mc_tile_range *
find_data_limits(mc_seed_setup *setup)
{
    mc_tileset_ask_place_alone(setup->tileset, setup->pool);
    const mc_tile_range *limits = mc_tileset_data_limits(setup->tileset, setup->task.link, setup->pool);
    return limits != NULL ? limits : setup->task.link->limits;
}

const char *
mc_seed_setup_area(mc_seed_setup *setup)
{
    const mc_seed_options *options = &setup->options;
    mc_seed_region *region = NULL;
    setup->area.outside = options->outside;
    if (setup->task.mode == MC_SEED_FILL && !options->has_extent && !options->outside)
        setup->area.limits = find_data_limits(setup);
    else if (options->pair != NULL && options->pair->drawn && !options->has_extent && !options->outside)
        setup->area.limits = mc_seed_drawn_limits(setup->task.link, options->pair->source_link, setup->pool);
    else
        setup->area.limits = options->has_extent && !options->outside
                                 ? mc_seed_limits(setup->area.grid, &options->extent, setup->pool)
                                 : setup->task.link->limits;
    if (!options->outside && options->ogr.source == NULL && options->area == NULL)
        return NULL;
    mc_error *error = read_seed_region(&region, setup);
    if (error != MC_OK)
        return mc_error_chain(error, setup->pool);
    setup->area.region = region;
    setup->nothing = region == NULL;
    if (region != NULL && options->area_srs == NULL)
        mc_ogr_area_warn(region, setup->area.grid);
    return NULL;
}
