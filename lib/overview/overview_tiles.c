/* Which levels for vector tiles a source gets: see overview_tiles.h. */
#include "overview/overview_tiles.h"

#include <math.h>
#include <string.h>

/* Square units of a tile for each row: where a row has more, features are so large in tiles that nothing can be left
 * out of them. */
#define UNITS_FOR_ROW 256
/* A level is kept where it has at most this part of the bytes of the next finer one. */
#define WORTH_OF_FINER 0.7
/* Against the source itself, all levels together. */
#define WORTH_OF_ALL_TILES 0.4
/* A tile of 256 pixels also reads the cells around it, whose features reach into the tile's margin: with a tile of
 * eight cells a side these are half as many as its own. */
enum { TILE_CELL_PIXELS = 32 };
/* Two resolutions that differ by less are the same. */
#define SAME_PART 1e-6

static double
unit_of_tile(const mc_overview_job *job, int z)
{
    return mc_vector_tile_lattice_of(job->grid, z).width / job->tiles->options->extent;
}

/* Whether tiles of a level of the grid need an overview. */
static bool
needs_tile_level(const mc_overview_job *job, int z)
{
    const double unit = unit_of_tile(job, z);
    const double width = (job->bounds.maxx - job->bounds.minx) / unit;
    const double height = (job->bounds.maxy - job->bounds.miny) / unit;
    return z >= job->layer->minzoom && z <= job->layer->maxzoom &&
           fmax(width, 1) * fmax(height, 1) <= UNITS_FOR_ROW * job->rows;
}

/* The levels that tiles need, the finest first. */
static mc_error *
create_tile_levels(mc_overview_level *levels, int *zooms, int *count, const mc_overview_job *job)
{
    const mc_level *of = job->grid->levels;
    *count = 0;
    for (int z = job->grid->level_count - 1; z >= 0; z--) {
        if (!needs_tile_level(job, z))
            continue;
        levels[*count] = (mc_overview_level){ .resolution = of[z].resolution,
                                              .until = z > 0 ? of[z - 1].resolution : 2 * of[z].resolution,
                                              .cell = TILE_CELL_PIXELS,
                                              .window = mc_overview_find_window(job),
                                              .digits = mc_twkb_digits(unit_of_tile(job, z)) };
        MC_TRY(job->store->create(job, &levels[*count]));
        zooms[(*count)++] = z;
    }
    return MC_OK;
}

/* Whether the finer of two levels serves the tiles of the coarser one: places of the one are places of the other. */
static bool
serves_coarser_tiles(const mc_overview_level *finer, const mc_overview_level *coarser)
{
    const double times = coarser->resolution / finer->resolution;
    return fabs(coarser->resolution / finer->until - 1) < SAME_PART && fabs(times - rint(times)) < SAME_PART;
}

/* Which of the levels from `first` on are worth their room, and until where they serve; the bytes of these. */
static double
choose_from(bool *chosen, mc_overview_level *levels, int first, int count)
{
    mc_overview_level *finer = NULL;
    double all = 0;
    for (int i = first; i < count; i++) {
        const bool served = finer != NULL && serves_coarser_tiles(finer, &levels[i]);
        chosen[i] = !levels[i].given_up &&
                    (!served || (finer->bytes > 0 && (double)levels[i].bytes <= WORTH_OF_FINER * (double)finer->bytes));
        if (served && !chosen[i])
            finer->until = levels[i].until;
        if (chosen[i])
            finer = &levels[i];
        all += chosen[i] ? (double)levels[i].bytes : 0;
    }
    return all;
}

/* Of the levels that were filled: where all are too large together, the finest go. */
static void
choose_tile_levels(bool *chosen, mc_overview_level *levels, int count, double most, apr_pool_t *pool)
{
    mc_overview_level *tried = apr_palloc(pool, sizeof(*tried) * (size_t)(count + 1));
    double all = HUGE_VAL;
    for (int first = 0; first < count && all > most; first++) {
        memcpy(tried, levels, sizeof(*tried) * (size_t)count);
        memset(chosen, 0, sizeof(*chosen) * (size_t)count);
        all = choose_from(chosen, tried, first, count);
    }
    memcpy(levels, tried, sizeof(*levels) * (size_t)count);
    for (int i = 0; i < count && all > most; i++)
        chosen[i] = false;
}

mc_error *
mc_overview_build_tile_levels(mc_overview_job *job)
{
    const size_t most = (size_t)job->grid->level_count + 1;
    mc_overview_level *levels = apr_pcalloc(job->pool, sizeof(*levels) * most);
    int *zooms = apr_pcalloc(job->pool, sizeof(*zooms) * most), count;
    bool *chosen = apr_pcalloc(job->pool, sizeof(*chosen) * most);
    const mc_vector_tile_lattice first = mc_vector_tile_lattice_of(job->grid, 0);
    if (fabs(first.width / first.height - 1) > SAME_PART)
        return mc_overview_refuse(job, "the tiles of its grid are no squares");
    MC_TRY(create_tile_levels(levels, zooms, &count, job));
    if (count > 0)
        MC_TRY(mc_overview_sift_tiles(levels, zooms, count, WORTH_OF_ALL_TILES * job->bytes, job));
    choose_tile_levels(chosen, levels, count, WORTH_OF_ALL_TILES * job->bytes, job->pool);
    for (int i = 0; i < count; i++) {
        if (!chosen[i] && !levels[i].given_up)
            mc_overview_tell_level(job, &levels[i], 0, "no level, which would not be worth its room");
        MC_TRY(chosen[i] ? mc_overview_finish_level(job, &levels[i]) : job->store->drop(job, &levels[i]));
    }
    return MC_OK;
}
