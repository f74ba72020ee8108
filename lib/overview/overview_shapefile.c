/* Building and dropping the overviews of a shapefile. */
#include "overview/overview_shapefile.h"

#include <apr_strings.h>

#include "grid/earth.h"
#include "vector/shapefile/shapefile_levels.h"

/* The SRID of the grid of the tileset that is in the CRS of the shapefile; 0: there is none. */
static mc_error *
find_shapefile_srid(mc_overview_job *job, const mc_tileset *tileset, const char *srs)
{
    job->srid = 0;
    for (int i = 0; job->srid == 0 && i < tileset->link_count; i++) {
        const mc_grid *grid = tileset->links[i]->grid;
        const mc_feature_query query = { .srs = grid->srs,
                                         .box = mc_grid_tile_extent(grid, 0, 0, 0),
                                         .pixel_grid = { .per_x = 1, .per_y = 1 },
                                         .resolution = grid->levels[0].resolution };
        mc_feature_query own;
        MC_TRY(mc_feature_query_project(&own, &query, srs, job->layer->name, job->pool));
        if (own.pixel_grid.warp == NULL)
            job->srid = mc_crs_epsg(grid->srs, NULL);
    }
    return job->srid != 0 ? MC_OK : mc_overview_refuse(job, "the tileset has no grid of its CRS");
}

static mc_error *
build_locked(mc_overview_shapefile *shapefile, const mc_tileset *tileset, const char *srs)
{
    mc_overview_job *job = &shapefile->job;
    const mc_level_origin origin = mc_shapefile_origin(shapefile->shp, srs);
    int *fields = apr_palloc(job->pool, sizeof(*fields) * (size_t)(job->attribute_count + 1));
    for (int i = 0; i < job->attribute_count; i++)
        fields[i] =
            shapefile->shp->attributes == NULL ? -1 : mc_dbf_find(shapefile->shp->attributes, job->attributes[i]);
    shapefile->fields = fields;
    (void)tileset;
    MC_TRY(mc_overview_find_shapes(shapefile));
    MC_TRY(mc_overview_build_levels(job));
    const mc_level_origin now = mc_shapefile_origin(shapefile->shp, srs);
    if (!mc_level_origin_equal(&origin, &now))
        return mc_error_create(job->pool, MC_ERR_UNAVAILABLE, "%s has changed while it was read: build again",
                               job->name);
    MC_TRY(mc_level_writer_finish(shapefile->writer, job->digest, &origin));
    if (job->levels == 0)
        mc_overview_tell(job, false, "no level is worth its room: maps read the shapefile");
    return MC_OK;
}

mc_error *
mc_overview_build_shapefile(mc_overview_shapefile *shapefile, const mc_tileset *tileset)
{
    mc_overview_job *job = &shapefile->job;
    mc_shp *shp;
    MC_TRY(mc_shp_open(&shp, shapefile->config.path, shapefile->config.encoding, job->pool));
    shapefile->shp = shp;
    const char *srs = shapefile->config.srs != NULL ? shapefile->config.srs : shp->projection;
    if (srs == NULL)
        return mc_overview_refuse(job, "its CRS is not known: there is neither a .prj file nor <srs>");
    if (tileset->format != NULL && tileset->format->type == MC_FORMAT_MVT)
        return mc_overview_refuse(job, "vector tiles of shapefiles read the shapefile");
    if (job->layer->style->digest == 0)
        return mc_overview_refuse(job, "its style is not known by a digest");
    MC_TRY(find_shapefile_srid(job, tileset, srs));
    MC_TRY(mc_overview_set_rules(job, tileset));
    MC_TRY(mc_level_writer_open(
        &shapefile->writer,
        mc_level_file_path(mc_shapefile_base(shapefile->config.path, job->pool), job->digest, job->pool), job->pool));
    return build_locked(shapefile, tileset, srs);
}

mc_error *
mc_overview_drop_shapefile(mc_overview_shapefile *shapefile)
{
    mc_overview_job *job = &shapefile->job;
    bool removed;
    MC_TRY(mc_level_writer_open(
        &shapefile->writer,
        mc_level_file_path(mc_shapefile_base(shapefile->config.path, job->pool), job->layer->style->digest, job->pool),
        job->pool));
    MC_TRY(mc_level_writer_remove(&removed, shapefile->writer));
    mc_overview_tell(job, false, removed ? "levels dropped" : "there are no overviews");
    return MC_OK;
}

/* ---- Levels as parts of a file ---- */

static mc_error *
create_level_spool(const mc_overview_job *job, mc_overview_level *level)
{
    mc_level_spool *spool;
    MC_TRY(mc_level_spool_create(&spool, ((const mc_overview_shapefile *)job)->writer));
    level->target = spool;
    return MC_OK;
}

static mc_error *
pass_window(const mc_overview_job *job, mc_overview_level *level)
{
    (void)job;
    (void)level;
    return MC_OK;
}

/* Parts fall from 0 on, and in the file they are counted without a sign. */
static mc_error *
spool_block(const mc_overview_job *job, mc_overview_level *level, const mc_overview_block *block)
{
    if (block->size > MC_LEVEL_BLOCK_MAX)
        return mc_error_create(job->pool, MC_ERR_LIMIT, "a block of an overview is too large");
    const mc_level_place place = { .box = block->box,
                                   .size = (uint32_t)block->size,
                                   .part = (uint32_t)((int64_t)block->part - INT32_MIN) };
    return mc_level_spool_add(level->target, &place, block->bytes);
}

static mc_error *
keep_level_spool(double *bytes, const mc_overview_job *job, mc_overview_level *level)
{
    const mc_level_range range = { level->resolution, level->until, job->grid->metres_per_unit };
    *bytes = (double)mc_level_spool_keep(level->target, &range, level->digits, level->kept);
    return MC_OK;
}

const mc_overview_store_ops mc_overview_file_store = { .create = create_level_spool,
                                                       .begin = pass_window,
                                                       .write = spool_block,
                                                       .end = pass_window,
                                                       .finish = keep_level_spool,
                                                       .drop = pass_window };
