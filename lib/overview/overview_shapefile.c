/* Building and dropping the overviews of a shapefile. */
#include "overview/overview_shapefile.h"

#include <apr_strings.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "grid/earth.h"
#include "vector/shapefile/shapefile_levels.h"

enum { STYLE_DIGITS = 16 };

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

/* A change after this look is seen by the times of the files. */
static mc_error *
find_shapefile_origin(mc_level_data *origin, const mc_overview_shapefile *shapefile, const char *srs)
{
    const mc_overview_job *job = &shapefile->job;
    mc_shapefile_origin_look(origin, shapefile->shp, srs);
    if (mc_level_origin_fresh(&origin->origin, apr_time_now()))
        apr_sleep(MC_LEVEL_ORIGIN_FRESH);
    return mc_level_origin_digest(&origin->origin.content, &origin->origin, origin->files, job->ctx, job->pool);
}

static mc_error *
build_locked(mc_overview_shapefile *shapefile, const char *srs)
{
    mc_overview_job *job = &shapefile->job;
    mc_level_data origin, now;
    MC_TRY(find_shapefile_origin(&origin, shapefile, srs));
    int *fields = apr_palloc(job->pool, sizeof(*fields) * (size_t)(job->attribute_count + 1));
    for (int i = 0; i < job->attribute_count; i++)
        fields[i] =
            shapefile->shp->attributes == NULL ? -1 : mc_dbf_find(shapefile->shp->attributes, job->attributes[i]);
    shapefile->fields = fields;
    MC_TRY(mc_overview_find_shapes(shapefile));
    MC_TRY(mc_overview_build_levels(job));
    mc_shapefile_origin_look(&now, shapefile->shp, srs);
    if (!mc_level_origin_untouched(&origin.origin, &now.origin))
        return mc_error_create(job->pool, MC_ERR_UNAVAILABLE, "%s has changed while it was read: build again",
                               job->name);
    MC_TRY(mc_level_writer_finish(shapefile->writer, job->digest, &origin.origin));
    if (job->levels == 0)
        mc_overview_tell(job, false, "no level is worth its room: maps read the shapefile");
    return MC_OK;
}

mc_error *
mc_overview_open_shapefile(const char **srs, mc_overview_shapefile *shapefile, const mc_tileset *tileset)
{
    mc_overview_job *job = &shapefile->job;
    mc_shp *shp;
    MC_TRY(mc_shp_open(&shp, shapefile->config.path, shapefile->config.encoding, job->pool));
    shapefile->shp = shp;
    *srs = shapefile->config.srs != NULL ? shapefile->config.srs : shp->projection;
    if (*srs == NULL)
        return mc_overview_refuse(job, "its CRS is not known: there is neither a .prj file nor <srs>");
    if (tileset->format != NULL && tileset->format->type == MC_FORMAT_MVT)
        return mc_overview_refuse(job, "vector tiles of shapefiles read the shapefile");
    if (job->layer->style->digest == 0)
        return mc_overview_refuse(job, "its style is not known by a digest");
    MC_TRY(find_shapefile_srid(job, tileset, *srs));
    return mc_overview_set_rules(job, tileset);
}

mc_error *
mc_overview_build_shapefile(mc_overview_shapefile *shapefile, const mc_tileset *tileset)
{
    mc_overview_job *job = &shapefile->job;
    const char *srs;
    MC_TRY(mc_overview_open_shapefile(&srs, shapefile, tileset));
    MC_TRY(mc_level_writer_open(
        &shapefile->writer,
        mc_level_file_path(mc_shapefile_base(shapefile->config.path, job->pool), job->digest, job->pool), job->pool));
    return build_locked(shapefile, srs);
}

/* Whether a file of the folder is an overview of the shapefile, or what is left of building one: NAME.STYLE.mcov, with
 * an ending behind it or none. */
static bool
is_overview_name(const char *name, const char *base)
{
    const size_t length = strlen(base);
    return strncmp(name, base, length) == 0 && name[length] == '.' &&
           strspn(name + length + 1, "0123456789abcdef") == STYLE_DIGITS &&
           strncmp(name + length + 1 + STYLE_DIGITS, ".mcov", 5) == 0;
}

mc_error *
mc_overview_list_styles(apr_array_header_t **styles, const mc_overview_job *job, const char *base)
{
    const char *slash = strrchr(base, '/'), *name = slash == NULL ? base : slash + 1;
    const char *folder = slash == NULL ? "." : apr_pstrmemdup(job->pool, base, (size_t)(slash - base) + 1);
    const struct dirent *entry;
    DIR *listing = opendir(folder);
    *styles = apr_array_make(job->pool, 4, sizeof(uint64_t));
    if (listing == NULL)
        return mc_error_create(job->pool, MC_ERR_IO, "the folder %s cannot be read", folder);
    while (errno = 0, (entry = readdir(listing)) != NULL)
        if (is_overview_name(entry->d_name, name))
            APR_ARRAY_PUSH(*styles, uint64_t) = strtoull(entry->d_name + strlen(name) + 1, NULL, 16);
    const int code = errno;
    closedir(listing);
    return code == 0 ? MC_OK : mc_error_create(job->pool, MC_ERR_IO, "the folder %s cannot be read to its end", folder);
}

mc_error *
mc_overview_drop_shapefile(mc_overview_shapefile *shapefile, const mc_tileset *tileset)
{
    mc_overview_job *job = &shapefile->job;
    (void)tileset;
    const char *base = mc_shapefile_base(shapefile->config.path, job->pool);
    apr_array_header_t *styles;
    int dropped = 0;
    MC_TRY(mc_overview_list_styles(&styles, job, base));
    for (int i = 0; i < styles->nelts; i++) {
        const char *path = mc_level_file_path(base, APR_ARRAY_IDX(styles, i, uint64_t), job->pool);
        apr_pool_t *own;
        bool removed = false;
        apr_pool_create(&own, job->pool);
        mc_error *error = mc_level_writer_open(&shapefile->writer, path, own);
        if (error == MC_OK)
            error = mc_level_writer_remove(&removed, shapefile->writer);
        error = mc_error_copy(error, job->pool);
        apr_pool_destroy(own);
        MC_TRY(error);
        dropped += removed;
    }
    if (dropped == 0)
        mc_overview_tell(job, false, "there are no overviews");
    else
        mc_overview_tell(job, false, "%d files dropped", dropped);
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

/* In the file parts are counted without a sign. */
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

typedef struct spool_reading {
    mc_feature_reading base;
    mc_level_spool *spool;
} spool_reading;

static mc_error *
read_spool_map(mc_feature_reading *base, apr_pool_t *pool)
{
    mc_level_reading r;
    mc_level_reading_begin(&r, base, false, pool);
    mc_error *error = mc_level_spool_read(&r, ((spool_reading *)base)->spool, &base->map->box, pool);
    mc_level_reading_end(&r);
    return error;
}

static mc_error *
draw_level_spool(const mc_overview_job *job, const mc_overview_level *level, const mc_feature_query *query,
                 mc_feature_visitor *visit, void *baton, int64_t *skipped, apr_pool_t *pool)
{
    spool_reading r = { .base = { .layer = job->layer->name, .visit = visit, .baton = baton, .ctx = job->ctx },
                        .spool = level->target };
    mc_error *error = mc_reading_worlds(&r.base, query, NULL, NULL, read_spool_map, pool);
    *skipped += r.base.skipped;
    return error;
}

const mc_overview_store_ops mc_overview_file_store = { .create = create_level_spool,
                                                       .begin = pass_window,
                                                       .write = spool_block,
                                                       .end = pass_window,
                                                       .draw = draw_level_spool,
                                                       .finish = keep_level_spool,
                                                       .drop = pass_window };
