/* Units of a job: which metatiles each of them holds. Arithmetic only, the same on every host. */
#include "mapcache/jobs.h"
#include "seed/hilbert.h"

/* Metatile numbers along one axis, half-open. */
typedef struct block_span {
    int first, last;
} block_span;

static block_span
metatile_span(int min, int max, int tiles)
{
    return min < max ? (block_span){ min / tiles, (max - 1) / tiles + 1 } : (block_span){ 0, 0 };
}

static block_span
job_level_columns(const mc_job *job, int level)
{
    const mc_tile_range *limits = &job->limits[level];
    return limits->miny < limits->maxy ? metatile_span(limits->minx, limits->maxx, job->columns) : (block_span){ 0, 0 };
}

static block_span
job_level_rows(const mc_job *job, int level)
{
    const mc_tile_range *limits = &job->limits[level];
    return limits->minx < limits->maxx ? metatile_span(limits->miny, limits->maxy, job->rows) : (block_span){ 0, 0 };
}

static int64_t
blocks_along(block_span metatiles, int side)
{
    return ((int64_t)metatiles.last - metatiles.first + side - 1) / side;
}

/* What of a side is left: 0 to `whole`. */
static int64_t
clamp_unit_side(int64_t left, int64_t whole)
{
    return left < 0 ? 0 : left < whole ? left : whole;
}

static int64_t
units_of(const mc_job *job, int level)
{
    return blocks_along(job_level_columns(job, level), job->side) * blocks_along(job_level_rows(job, level), job->side);
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

/* Of the places of a rectangle that begins at 0,0 the n-th along Hilbert's curve: whole quarters are passed over by
 * what the rectangle has of them. */
static void
follow_curve(int *column, int *row, int64_t n, int64_t columns, int64_t rows)
{
    int64_t x = 0, y = 0, half = 1;
    int way = 0;
    while (half * 2 < columns || half * 2 < rows)
        half *= 2;
    for (; half > 0 && (columns > 1 || rows > 1); half /= 2) {
        int64_t count = 0;
        int i = -1;
        do {
            n -= count;
            int quarter = mc_hilbert[way].quarter[++i];
            *column = (int)(x + (quarter & 1) * half);
            *row = (int)(y + (quarter >> 1) * half);
            count = clamp_unit_side(columns - *column, half) * clamp_unit_side(rows - *row, half);
        } while (n >= count);
        x = *column;
        y = *row;
        way = mc_hilbert[way].way[i];
    }
    *column = (int)x;
    *row = (int)y;
}

static int
least_block_side(int a, int b)
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
    block_span columns = job_level_columns(job, level), rows = job_level_rows(job, level);
    int64_t across = blocks_along(columns, job->side);
    int column = (int)(unit % across), row = (int)(unit / across);
    if (job->order == MC_SEED_HILBERT)
        follow_curve(&column, &row, unit, across, blocks_along(rows, job->side));
    mc_job_block block = { .z = job->minzoom + level,
                           .column = columns.first + column * job->side,
                           .row = rows.first + row * job->side };
    block.columns = least_block_side(job->side, columns.last - block.column);
    block.rows = least_block_side(job->side, rows.last - block.row);
    return block;
}
