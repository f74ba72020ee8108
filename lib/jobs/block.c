/* Units of a job: which metatiles each of them holds. Arithmetic only, the same on every host. */
#include "mapcache/jobs.h"

/* Metatile numbers along one axis, half-open. */
typedef struct span {
    int first, last;
} span;

static span
span_of(int min, int max, int tiles)
{
    return min < max ? (span){ min / tiles, (max - 1) / tiles + 1 } : (span){ 0, 0 };
}

static span
columns_of(const mc_job *job, int level)
{
    const mc_tile_range *limits = &job->limits[level];
    return limits->miny < limits->maxy ? span_of(limits->minx, limits->maxx, job->columns) : (span){ 0, 0 };
}

static span
rows_of(const mc_job *job, int level)
{
    const mc_tile_range *limits = &job->limits[level];
    return limits->minx < limits->maxx ? span_of(limits->miny, limits->maxy, job->rows) : (span){ 0, 0 };
}

static int64_t
blocks_along(span metatiles, int side)
{
    return ((int64_t)metatiles.last - metatiles.first + side - 1) / side;
}

static int64_t
units_of(const mc_job *job, int level)
{
    return blocks_along(columns_of(job, level), job->side) * blocks_along(rows_of(job, level), job->side);
}

int64_t
mc_job_units(const mc_job *job)
{
    int64_t count = 0;
    for (int level = 0; level <= job->maxzoom - job->minzoom; level++)
        if (__builtin_add_overflow(count, units_of(job, level), &count))
            return INT64_MAX;
    return count;
}

int64_t
mc_job_metatiles(const mc_job *job)
{
    mc_job single = *job;
    single.side = 1;
    return mc_job_units(&single);
}

static int
least(int a, int b)
{
    return a < b ? a : b;
}

mc_job_block
mc_job_block_of(const mc_job *job, int64_t unit)
{
    int level = 0;
    MC_ASSERT(unit >= 0);
    for (; unit >= units_of(job, level); level++) {
        unit -= units_of(job, level);
        MC_ASSERT(level < job->maxzoom - job->minzoom);
    }
    span columns = columns_of(job, level), rows = rows_of(job, level);
    int64_t across = blocks_along(columns, job->side);
    mc_job_block block = { .z = job->minzoom + level,
                           .column = columns.first + (int)(unit % across) * job->side,
                           .row = rows.first + (int)(unit / across) * job->side };
    block.columns = least(job->side, columns.last - block.column);
    block.rows = least(job->side, rows.last - block.row);
    return block;
}
