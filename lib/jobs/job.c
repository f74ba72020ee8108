/* From a job specification to a job, and from a job to what a worker has to do: both with a configuration at hand. */
#include <apr_strings.h>
#include <math.h>
#include <string.h>

#include "base/hash.h"
#include "mapcache/jobs.h"
#include "mapcache/server.h"
#include "seed/area.h"
#include "text/text.h"

/* Units are as large as a worker may lose, and so many that workers share them evenly; but no more than a queue bears
 * well. */
enum { SIDE = 8, SIDE_OF_TILES = 32, FEW_UNITS = 64, MANY_UNITS = 200000 };

/* Blocks of metatiles that are held against an area to count them: some tenths of a second. */
enum { LOOKS = 100000 };

/* What a name or a value may have, in bytes. */
enum { TEXT_MAX = 1000 };

static mc_error *refuse_job_parameter(const char *parameter, apr_pool_t *pool, const char *format, ...) MC_PRINTF(3, 4);

static mc_error *
refuse_job_parameter(const char *parameter, apr_pool_t *pool, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const char *text = apr_pvsprintf(pool, format, args);
    va_end(args);
    return mc_error_located(pool, MC_ERR_INVALID_PARAMETER, parameter, "%s", mc_message_text(text, 300, pool));
}

static mc_error *
find_tileset(mc_tileset **tileset, const char *parameter, const char *name, const mc_config *config, apr_pool_t *pool)
{
    *tileset = name == NULL ? NULL : apr_hash_get(config->tilesets_by_name, name, APR_HASH_KEY_STRING);
    if (*tileset == NULL)
        return refuse_job_parameter(parameter, pool, "%s", mc_config_lacks_tileset(config, name, pool));
    if ((*tileset)->not_built != NULL)
        return refuse_job_parameter(parameter, pool, "tileset \"%s\": %s", name, (*tileset)->not_built);
    return MC_OK;
}

static mc_error *
check_target(const mc_tileset *tileset, const mc_grid_link *link, const mc_job_spec *spec, const mc_config *config,
             apr_pool_t *pool)
{
    mc_tileset *target;
    if (spec->mode != MC_JOB_TRANSFER)
        return spec->target == NULL ? MC_OK : refuse_job_parameter("target", pool, "only a transfer has a target");
    if (spec->target == NULL)
        return refuse_job_parameter("target", pool, "a transfer needs the tileset that it copies to");
    MC_TRY(find_tileset(&target, "target", spec->target, config, pool));
    if (mc_tileset_link(target, link->grid->name) == NULL)
        return refuse_job_parameter("target", pool, "%s", mc_tileset_lacks_grid(target, link->grid->name, pool));
    if (!mc_tileset_same_dimensions(target, tileset))
        return refuse_job_parameter("target", pool, "tilesets \"%s\" and \"%s\" have different dimensions",
                                    tileset->name, target->name);
    return MC_OK;
}

/* The values of all dimensions, so that the defaults of one host do not matter on another. */
static mc_error *
write_job_dimensions(const char **query, const mc_tileset *tileset, const apr_table_t *given, apr_pool_t *pool)
{
    const char **values;
    mc_error *error = mc_tileset_values(&values, tileset, given, pool);
    if (error != MC_OK)
        return refuse_job_parameter("dimensions", pool, "%s", mc_error_chain(error, pool));
    *query = "";
    for (int i = 0; i < tileset->dimension_count; i++) {
        if (strlen(values[i]) > TEXT_MAX)
            return refuse_job_parameter("dimensions", pool, "the value of dimension \"%s\" is too long",
                                        tileset->dimensions[i]->name);
        *query = apr_pstrcat(pool, *query, i == 0 ? "" : "&",
                             mc_url_encode(tileset->dimensions[i]->name, "", true, false, pool), "=",
                             mc_url_encode(values[i], "", true, false, pool), NULL);
    }
    return MC_OK;
}

/* Of what the numbers of units and tiles mean on a grid. An order that earlier versions do not know makes it another
 * grid for them: they leave the job to others. */
static const char *
model_of(const mc_grid *grid, const mc_job *job, apr_pool_t *pool)
{
    double numbers[] = { grid->extent.minx,        grid->extent.miny,         grid->extent.maxx,   grid->extent.maxy,
                         (double)grid->tile_width, (double)grid->tile_height, (double)grid->origin };
    uint64_t hash = mc_hash64(numbers, sizeof(numbers), 1);
    for (int z = job->minzoom; z <= job->maxzoom && z < grid->level_count; z++) {
        double level[] = { grid->levels[z].resolution, grid->levels[z].columns, grid->levels[z].rows };
        hash = mc_hash64(level, sizeof(level), hash);
    }
    return apr_psprintf(pool, "%s%016" APR_UINT64_T_HEX_FMT,
                        job->order == MC_SEED_LEVELS ? "" : mc_job_order_name(job->order), (apr_uint64_t)hash);
}

/* As the seeder does: levels above max-cached-zoom are never stored. */
static mc_error *
choose_job_zooms(mc_job *job, const mc_job_spec *spec, const mc_grid_link *link, apr_pool_t *pool)
{
    bool fills = spec->mode == MC_JOB_SEED || spec->mode == MC_JOB_RESEED;
    int first = link->minzoom, last = link->maxzoom;
    if (fills && link->max_cached_zoom >= 0 && last > link->max_cached_zoom)
        last = link->max_cached_zoom;
    if (last >= link->grid->level_count)
        last = link->grid->level_count - 1;
    int highest = last;
    if (spec->has_zoom) {
        first = spec->minzoom > first ? spec->minzoom : first;
        last = spec->maxzoom < last ? spec->maxzoom : last;
    }
    if (first > last)
        return refuse_job_parameter("zoom", pool,
                                    "grid \"%s\" of tileset \"%s\" has none of these zoom levels: it has %d to %d",
                                    job->grid, job->tileset, link->minzoom, highest);
    job->minzoom = first;
    job->maxzoom = last;
    return MC_OK;
}

static mc_tile_range
intersect_job_limits(mc_tile_range a, mc_tile_range b)
{
    mc_tile_range both = mc_tile_range_intersection(&a, &b);
    return both.minx < both.maxx && both.miny < both.maxy ? both : (mc_tile_range){ 0, 0, 0, 0 };
}

/* *region: NULL where the job has no area. */
static mc_error *
read_job_region(mc_seed_region **region, const mc_job *job, const mc_grid *grid, apr_pool_t *pool)
{
    *region = NULL;
    if (!job->has_area)
        return MC_OK;
    MC_TRY(mc_seed_area_parse(region, job->area, strlen(job->area), "the area",
                              *job->area_srs == '\0' ? NULL : job->area_srs, grid, job->maxzoom, pool));
    if (*region == NULL)
        return mc_error_create(pool, MC_ERR_CORRUPT, "the area has no polygon, line or point");
    return MC_OK;
}

/* The metatiles of a job: its limits, and what of them its area meets. */
static mc_seed_area
seed_area_of_job(const mc_job *job, const mc_grid *grid, const mc_seed_region *region, apr_pool_t *pool)
{
    mc_tile_range *limits = apr_pcalloc(pool, sizeof(*limits) * (size_t)grid->level_count);
    for (int z = job->minzoom; z <= job->maxzoom; z++)
        limits[z] = job->limits[z - job->minzoom];
    return (mc_seed_area){ .grid = grid,
                           .minzoom = job->minzoom,
                           .maxzoom = job->maxzoom,
                           .limits = limits,
                           .columns = job->columns,
                           .rows = job->rows,
                           .region = region };
}

static void
cut_limits(mc_job *job, const mc_tile_range *wanted, apr_pool_t *pool)
{
    int levels = job->maxzoom - job->minzoom + 1;
    mc_tile_range *limits = apr_palloc(pool, sizeof(*limits) * (size_t)levels);
    for (int i = 0; i < levels; i++)
        limits[i] = intersect_job_limits(job->limits[i], wanted[job->minzoom + i]);
    job->limits = limits;
}

static mc_error *
choose_area(mc_job *job, const mc_job_spec *spec, const mc_grid *grid, apr_pool_t *pool)
{
    mc_seed_region *region;
    job->has_area = spec->area != NULL;
    job->area = job->has_area ? spec->area : "";
    job->area_srs = spec->area_srs == NULL ? "" : spec->area_srs;
    if (!job->has_area)
        return *job->area_srs == '\0' ? MC_OK
                                      : refuse_job_parameter("area_srs", pool, "area_srs is of use with an area only");
    mc_error *error = read_job_region(&region, job, grid, pool);
    if (error != MC_OK)
        return refuse_job_parameter("area", pool, "%s", mc_error_chain(error, pool));
    mc_extent bounds = mc_region_bounds(region);
    /* Half a pixel of the coarsest level more: what only touches a border of tiles is the region's affair. */
    double more = grid->levels[job->minzoom].resolution / 2;
    bounds = (mc_extent){ bounds.minx - more, bounds.miny - more, bounds.maxx + more, bounds.maxy + more };
    cut_limits(job, mc_seed_limits(grid, &bounds, pool), pool);
    mc_seed_area area = seed_area_of_job(job, grid, region, pool);
    job->metatiles = mc_seed_estimate(&area, LOOKS);
    return MC_OK;
}

static void
choose_limits(mc_job *job, const mc_job_spec *spec, const mc_tileset *tileset, const mc_grid_link *link,
              apr_pool_t *pool)
{
    bool draws = spec->mode == MC_JOB_SEED || spec->mode == MC_JOB_RESEED;
    const mc_tile_range *data = draws && !spec->has_extent ? mc_tileset_data_limits(tileset, link, pool) : NULL;
    job->has_extent = spec->has_extent;
    job->extent = spec->extent;
    job->limits = &link->limits[job->minzoom];
    cut_limits(job,
               spec->has_extent ? mc_seed_limits(link->grid, &spec->extent, pool)
               : data != NULL   ? data
                                : link->limits,
               pool);
    job->metatiles = mc_job_metatiles(job);
}

static void
choose_side(mc_job *job, int wanted)
{
    job->side = wanted > 0 ? wanted : job->columns * job->rows == 1 ? SIDE_OF_TILES : SIDE;
    while (wanted == 0 && job->side > 2 && mc_job_units(job) < FEW_UNITS)
        job->side /= 2;
    while (wanted == 0 && job->side < MC_JOBS_SIDE_MAX && mc_job_units(job) > MANY_UNITS)
        job->side *= 2;
    job->units = mc_job_units(job);
}

static mc_error *
check_numbers(const mc_job_spec *spec, apr_pool_t *pool)
{
    if (spec->priority < -MC_JOBS_PRIORITY_MAX || spec->priority > MC_JOBS_PRIORITY_MAX)
        return refuse_job_parameter("priority", pool, "a priority is a number from %d to %d", -MC_JOBS_PRIORITY_MAX,
                                    MC_JOBS_PRIORITY_MAX);
    if (spec->attempts < 0 || spec->attempts > MC_JOBS_ATTEMPTS_MAX)
        return refuse_job_parameter("attempts", pool, "a unit is tried 1 to %d times", MC_JOBS_ATTEMPTS_MAX);
    if (spec->side < 0 || spec->side > MC_JOBS_SIDE_MAX)
        return refuse_job_parameter("side", pool, "a unit is 1 to %d metatiles wide", MC_JOBS_SIDE_MAX);
    if (!(spec->rate >= 0 && spec->rate <= 1e9))
        return refuse_job_parameter("rate", pool, "a rate is a number of tiles per second up to 10^9");
    if (spec->has_extent && !mc_extent_valid(&spec->extent))
        return refuse_job_parameter("extent", pool, "an extent is four numbers: minx, miny, maxx, maxy");
    if (spec->area != NULL && strlen(spec->area) > MC_JOBS_AREA_MAX)
        return refuse_job_parameter("area", pool, "the text of an area has at most %d MB: simplify it",
                                    MC_JOBS_AREA_MAX >> 20);
    if (spec->older < 0)
        return refuse_job_parameter("older", pool, "a time is a number of seconds since 1970");
    if (spec->older > 0 && spec->mode == MC_JOB_RESEED)
        return refuse_job_parameter("older", pool,
                                    "reseed draws tiles of any age; seed with a time draws the older ones");
    return MC_OK;
}

mc_error *
mc_job_make(mc_job *job, const mc_job_spec *spec, const mc_config *config, apr_pool_t *pool)
{
    mc_tileset *tileset;
    MC_TRY(check_numbers(spec, pool));
    MC_TRY(find_tileset(&tileset, "tileset", spec->tileset, config, pool));
    const mc_grid_link *link = mc_tileset_link(tileset, spec->grid);
    if (link == NULL)
        return refuse_job_parameter("grid", pool, "%s", mc_tileset_lacks_grid(tileset, spec->grid, pool));
    if ((spec->mode == MC_JOB_SEED || spec->mode == MC_JOB_RESEED) && tileset->source == NULL)
        return refuse_job_parameter(
            "tileset", pool, "tileset \"%s\" has no source: there is nothing to draw its tiles from", tileset->name);
    if ((spec->mode == MC_JOB_SEED || spec->mode == MC_JOB_RESEED) && tileset->cache != NULL &&
        tileset->cache->ops->keeps_nothing)
        return refuse_job_parameter("tileset", pool, "tileset \"%s\" has a cache of type none, which keeps nothing",
                                    tileset->name);
    MC_TRY(check_target(tileset, link, spec, config, pool));
    bool single = spec->mode == MC_JOB_TRANSFER;
    int columns, rows;
    mc_tileset_metatile_size(&columns, &rows, tileset, link->grid);
    *job = (mc_job){ .mode = spec->mode,
                     .order = spec->has_order ? spec->order : MC_SEED_LEVELS,
                     .priority = spec->priority,
                     .attempts = spec->attempts == 0 ? 3 : spec->attempts,
                     .tileset = tileset->name,
                     .grid = link->grid->name,
                     .target = spec->target == NULL ? "" : spec->target,
                     .older = apr_time_from_sec(spec->older),
                     .rate = spec->rate,
                     .columns = single ? 1 : columns,
                     .rows = single ? 1 : rows,
                     .owner = spec->owner == NULL ? "" : mc_message_text(spec->owner, 100, pool) };
    MC_TRY(write_job_dimensions(&job->dimensions, tileset, spec->dimensions, pool));
    MC_TRY(choose_job_zooms(job, spec, link, pool));
    choose_limits(job, spec, tileset, link, pool);
    MC_TRY(choose_area(job, spec, link->grid, pool));
    choose_side(job, spec->side);
    job->model = model_of(link->grid, job, pool);
    return job->metatiles > 0 ? MC_OK
                              : refuse_job_parameter("extent", pool, "no tile of grid \"%s\" lies inside", job->grid);
}

/* --- a worker's side -------------------------------------------------------------------------------------------- */

static mc_error *
job_config_error(const mc_job *job, apr_pool_t *pool, const char *why)
{
    return mc_error_create(pool, MC_ERR_CONFIG, "job %" APR_INT64_T_FMT ": %s", (apr_int64_t)job->id, why);
}

/* Whether the grid has all tiles that the job's row speaks of. */
static bool
inside_grid(const mc_job *job, const mc_grid *grid)
{
    bool inside = job->maxzoom < grid->level_count;
    for (int z = job->minzoom; z <= job->maxzoom && inside; z++)
        inside = job->limits[z - job->minzoom].maxx <= grid->levels[z].columns &&
                 job->limits[z - job->minzoom].maxy <= grid->levels[z].rows;
    return inside;
}

static mc_error *
find_link(mc_tileset **tileset, mc_grid_link **link, const char *name, const mc_job *job, const mc_config *config,
          apr_pool_t *pool)
{
    const mc_tileset *found = apr_hash_get(config->tilesets_by_name, name, APR_HASH_KEY_STRING);
    if (found == NULL || found->not_built != NULL)
        return job_config_error(job, pool, apr_psprintf(pool, "there is no tileset \"%s\" here", name));
    *link = mc_tileset_link(found, job->grid);
    if (*link == NULL || !inside_grid(job, (*link)->grid) ||
        strcmp(model_of((*link)->grid, job, pool), job->model) != 0)
        return job_config_error(
            job, pool, apr_psprintf(pool, "grid \"%s\" of tileset \"%s\" is another one here", job->grid, name));
    *tileset = apr_pmemdup(pool, found, sizeof(*found));
    return MC_OK;
}

/* The job's values as they are right here: the worker's configuration may be another than that of who asked. */
static mc_error *
read_dimensions(const char ***values, const mc_job *job, const mc_tileset *tileset, apr_pool_t *pool)
{
    const apr_table_t *given = mc_query_parse(job->dimensions, 64, pool);
    mc_error *error = mc_tileset_values(values, tileset, given, pool);
    return error == MC_OK ? MC_OK : job_config_error(job, pool, mc_error_chain(error, pool));
}

mc_error *
mc_job_task(mc_seed_task *task, mc_seed_area *area, const mc_job *job, const mc_config *config, apr_pool_t *pool)
{
    static const mc_seed_mode modes[] = { MC_SEED_FILL, MC_SEED_FILL, MC_SEED_DELETE, MC_SEED_TRANSFER };
    mc_tileset *tileset, *target = NULL;
    mc_grid_link *link, *target_link = NULL;
    MC_TRY(find_link(&tileset, &link, job->tileset, job, config, pool));
    if (job->mode == MC_JOB_TRANSFER) {
        MC_TRY(find_link(&target, &target_link, job->target, job, config, pool));
        if (!mc_tileset_same_dimensions(target, tileset))
            return job_config_error(job, pool, "the tilesets have different dimensions here");
    } else if (job->mode != MC_JOB_DELETE && tileset->source == NULL) {
        return job_config_error(job, pool, "the tileset has no source here");
    }
    const char **values;
    MC_TRY(read_dimensions(&values, job, tileset, pool));
    tileset->metatile_columns = job->columns;
    tileset->metatile_rows = job->rows;
    /* As the seeder: what is read-only for clients is written to, and the source of a transfer is only read. */
    tileset->read_only = job->mode == MC_JOB_TRANSFER && job->older == 0;
    if (tileset->master != NULL) /* of a further format: what it is made of */
        tileset->master->read_only = tileset->read_only;
    *task = (mc_seed_task){ .mode = modes[job->mode],
                            .tileset = tileset,
                            .link = link,
                            .values = values,
                            .target = target,
                            .target_link = target_link,
                            .force = job->mode == MC_JOB_RESEED,
                            .older = job->older };
    mc_seed_region *region;
    mc_error *error = read_job_region(&region, job, link->grid, pool);
    if (error != MC_OK)
        return mc_error_wrap(pool, error, MC_ERR_CONFIG, "job %" APR_INT64_T_FMT, (apr_int64_t)job->id);
    *area = seed_area_of_job(job, link->grid, region, pool);
    return MC_OK;
}
