/* Which levels a shapefile has, and whether maps are read from them. */
#include <apr_time.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "overview/overview_list.h"
#include "vector/levels/level_file.h"
#include "vector/shapefile/shapefile_levels.h"

/* "2026-11-29T14:05:11Z" of the last change of a file. */
static const char *
tell_file_time(int fd, apr_pool_t *pool)
{
    char *text = apr_pcalloc(pool, 32);
    struct stat status;
    struct tm utc;
    if (fstat(fd, &status) != 0 || gmtime_r(&status.st_mtime, &utc) == NULL)
        return NULL;
    strftime(text, 32, "%Y-%m-%dT%H:%M:%SZ", &utc);
    return text;
}

/* Why maps are not read from the file; NULL: they are. A copy is compared byte by byte. */
static mc_error *
find_origin_fault(const char **fault, const mc_level_file *file, const mc_overview_shapefile *shapefile,
                  const char *srs)
{
    mc_ctx *ctx = shapefile->job.ctx;
    mc_level_data now;
    mc_level_kinship kinship = MC_LEVEL_UNREAD;
    mc_shapefile_origin_look(&now, shapefile->shp, srs);
    while (kinship == MC_LEVEL_UNREAD) {
        MC_TRY(mc_ctx_check(ctx, shapefile->job.pool));
        kinship = mc_level_data_compare(&now, &file->origin, ctx, shapefile->job.pool);
    }
    *fault = mc_level_kinship_fault(kinship);
    return MC_OK;
}

static mc_error *
list_levels_of_file(const mc_level_file *file, const mc_overview_shapefile *shapefile, const char *srs)
{
    const char *fault;
    MC_TRY(find_origin_fault(&fault, file, shapefile, srs));
    const char *built = tell_file_time(file->fd, shapefile->job.pool);
    for (int i = 0; i < file->count; i++) {
        mc_overview_found found = { .levels = 1,
                                    .number = i + 1,
                                    .resolution = file->ranges[i].resolution,
                                    .until = file->ranges[i].until,
                                    .features = file->features[i],
                                    .built = built,
                                    .changes = -1,
                                    .fault = fault };
        for (uint32_t k = 0; k < file->block_counts[i]; k++)
            found.bytes += file->places[i][k].size + MC_LEVEL_FILE_BLOCK;
        mc_overview_list_level(&found, &shapefile->job);
    }
    return MC_OK;
}

static mc_error *
list_shapefile(mc_overview_shapefile *shapefile, const mc_tileset *tileset)
{
    mc_overview_job *job = &shapefile->job;
    const char *base = mc_shapefile_base(shapefile->config.path, job->pool), *srs;
    mc_level_file *file;
    apr_array_header_t *styles;
    int others = 0;
    int64_t other_bytes = 0;
    MC_TRY(mc_overview_open_shapefile(&srs, shapefile, tileset));
    job->rows = shapefile->shp->count;
    MC_TRY(mc_level_file_open(&file, mc_level_file_path(base, job->digest, job->pool), shapefile->shp->main.fd,
                              job->pool));
    if (file == NULL || file->style != job->digest || file->count == 0)
        mc_overview_list_none(job);
    else
        MC_TRY(list_levels_of_file(file, shapefile, srs));
    MC_TRY(mc_overview_list_styles(&styles, job, base));
    for (int i = 0; i < styles->nelts; i++) {
        const uint64_t style = APR_ARRAY_IDX(styles, i, uint64_t);
        struct stat status;
        if (style == job->digest || stat(mc_level_file_path(base, style, job->pool), &status) != 0)
            continue;
        others++;
        other_bytes += (int64_t)status.st_size;
    }
    mc_overview_list_others(job, others, other_bytes);
    return MC_OK;
}

mc_error *
mc_overview_list_shapefile(mc_overview_shapefile *shapefile, const mc_tileset *tileset)
{
    return mc_overview_list_refused(list_shapefile(shapefile, tileset), &shapefile->job);
}
