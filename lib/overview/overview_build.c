/* Which levels a source gets: those that maps need, and that are worth their room. */
#include <apr_strings.h>
#include <math.h>

#include "draw/paint/sieve.h"
#include "grid/earth.h"
#include "overview/overview_private.h"
#include "text/text.h"
#include "vector/levels/level_blocks.h"

/* Pixels of the source for each row, or for so many bytes of vertices: where a pixel has less, a map has few rows and
 * few vertices, and needs no overview. */
#define PIXELS_FOR_ROW 16
/* How many features begin in a pixel is counted where the source has so many pixels for each row, or less. */
#define CROWD_PIXELS_FOR_ROW 4
#define BYTES_FOR_PIXEL 32
/* A level is kept where it has at most this part of the bytes of the next finer one. */
#define WORTH 0.8
/* The same where nothing is left out but vertices: the finer one serves both. */
#define WORTH_OF_VERTICES 0.5
/* Against the source itself, a single level and all of them together. */
#define WORTH_OF_TABLE 0.25
#define WORTH_OF_ALL 0.4
/* Features that begin in one pixel of a plane, where any do. Many that each cover a part of a pixel hide it only for
 * maps whose pixels lie as those of the plane do: the plane is then twice as fine as the maps. A plane four times as
 * fine was 4.4 % of the pixels off for 500,000 roads. */
#define CROWD_MOST 2.5
enum { FINENESS_MOST = 2 };
/* The coarsest level: the source is that many pixels wide, or more. */
#define PIXELS_LEAST 4
/* Maps have some cells of blocks in each direction. */
enum { CELL_PIXELS = 128 };
/* Bytes of the source that make a window: a map has the blocks of one window in memory at a time. */
#define WINDOW_BYTES (32 << 20)
/* Steps of a pixel that the coordinates of a level have at least. */
#define PIXEL_STEPS 1000

static double
pixels_of_source(const mc_overview_job *job, double resolution)
{
    return (job->bounds.maxx - job->bounds.minx) / resolution * ((job->bounds.maxy - job->bounds.miny) / resolution);
}

/* Counts at one resolution in how many pixels features begin. In coarser pixels at most four times as many begin. */
static mc_error *
find_crowd(mc_overview_job *job)
{
    double pixels, resolution = job->grid->levels[0].resolution;
    for (int z = 0; z < job->grid->level_count &&
                    pixels_of_source(job, job->grid->levels[z].resolution) <= CROWD_PIXELS_FOR_ROW * job->rows;
         z++)
        resolution = job->grid->levels[z].resolution;
    MC_TRY(job->source->count_squares(&pixels, job, resolution));
    if (!(pixels >= 1))
        return mc_overview_refuse(job, "it has no geometry");
    job->crowd = job->rows / pixels / (resolution * resolution);
    return MC_OK;
}

/* 0: the features are too many for a plane. */
static int
find_fineness(const mc_overview_job *job, double resolution)
{
    for (int fineness = 1; fineness <= FINENESS_MOST; fineness *= 2)
        if (job->crowd * resolution * resolution / (fineness * fineness) <= CROWD_MOST)
            return fineness;
    return 0;
}

/* Whether maps of a resolution need a level. */
static bool
needs_level(const mc_overview_job *job, double resolution)
{
    const double scale = resolution * job->grid->metres_per_unit / MC_PIXEL_METRES;
    const double width = (job->bounds.maxx - job->bounds.minx) / resolution;
    const double height = (job->bounds.maxy - job->bounds.miny) / resolution;
    return (width >= PIXELS_LEAST || height >= PIXELS_LEAST) &&
           pixels_of_source(job, resolution) <= fmax(PIXELS_FOR_ROW * job->rows, job->bytes / BYTES_FOR_PIXEL) &&
           mc_vector_layer_shows(job->layer, scale) && mc_vector_layer_shows(job->layer, 2 * scale * (1 - 1e-6));
}

/* Why there cannot be a level; NULL: there can. */
static const char *
level_refusal(const mc_overview_job *job, const mc_overview_level *level)
{
    const double scale = level->resolution * job->grid->metres_per_unit / MC_PIXEL_METRES;
    const double around = 2.0 * mc_sieve_margin(job->layer->style, scale, level->fineness) + 4;
    const double width = (job->bounds.maxx - job->bounds.minx) / level->resolution * level->fineness;
    const double height = (job->bounds.maxy - job->bounds.miny) / level->resolution * level->fineness;
    const char *refusal = mc_sieve_refusal(job->layer->style, scale, 2 * scale, job->points);
    if (refusal != NULL)
        return refusal;
    if (level->fineness == 0)
        return "its features are too many for a pixel";
    return (width + around) * (height + around) > MC_SIEVE_PIXELS_MAX ||
                   fmax(width, height) + around > MC_SHAPE_REACH / MC_SUBPIXELS
               ? "it has too many pixels"
               : NULL;
}

/* Decimals whose steps are at most a thousandth of a pixel; a map's vertices then fall into the cells of its own
 * thinning as those of the table do. */
static int
find_digits(double resolution)
{
    return mc_twkb_digits(resolution / PIXEL_STEPS * 10);
}

/* Whole pieces. */
int64_t
mc_overview_find_window(const mc_overview_job *job)
{
    const double pieces = floor(WINDOW_BYTES / (job->bytes / (double)(job->pieces + 1) + 1));
    const int64_t most = MC_LEVEL_PLACES / job->piece_ordinals;
    return job->piece_ordinals * (pieces < 1 ? 1 : pieces > (double)most ? most : (int64_t)pieces);
}

void
mc_overview_prepare(mc_overview_level *level, const mc_overview_job *job)
{
    level->digits = find_digits(level->resolution);
    level->cell = CELL_PIXELS;
    level->window = mc_overview_find_window(job);
}

/* The levels that the grid's resolutions need, the finest first. */
static mc_error *
find_needed_levels(mc_overview_level **levels, int *count, mc_overview_job *job)
{
    *count = 0;
    *levels = apr_pcalloc(job->pool, sizeof(**levels) * (size_t)(job->grid->level_count + 1));
    for (int z = job->grid->level_count - 1; z >= 0; z--) {
        mc_overview_level *level = &(*levels)[*count];
        level->resolution = job->grid->levels[z].resolution;
        level->until = 2 * level->resolution;
        if (!needs_level(job, level->resolution))
            continue;
        if (job->crowd == 0)
            MC_TRY(find_crowd(job));
        level->fineness = find_fineness(job, level->resolution);
        mc_overview_prepare(level, job);
        const char *refusal = level_refusal(job, level);
        if (refusal != NULL) {
            mc_overview_tell_level(job, level, 0, "no level: %s", refusal);
            continue;
        }
        MC_TRY(job->store->create(job, level));
        ++*count;
    }
    return MC_OK;
}

/* Whether the finer of two levels serves the maps of the coarser one: nothing is left out of either because of what
 * hides it, and the same rules draw. */
static bool
serves_coarser(const mc_overview_job *job, const mc_overview_level *finer, const mc_overview_level *coarser)
{
    const mc_style *style = job->layer->style;
    const double per_pixel = job->grid->metres_per_unit / MC_PIXEL_METRES;
    return !mc_sieve_hides(style, finer->resolution * per_pixel) &&
           !mc_sieve_hides(style, coarser->resolution * per_pixel) &&
           mc_sieve_refusal(style, finer->resolution * per_pixel, coarser->until * per_pixel, job->points) == NULL;
}

/* Which of the levels that were filled are worth their room: *all is the bytes of these. */
static void
choose_worthy_levels(bool *chosen, double *all, mc_overview_level *levels, int count, const mc_overview_job *job)
{
    mc_overview_level *finer = NULL;
    *all = 0;
    for (int i = 0; i < count; i++) {
        const bool both =
            finer != NULL && levels[i].resolution < finer->until * (1 + 1e-6) && serves_coarser(job, finer, &levels[i]);
        const double worth = both ? WORTH_OF_VERTICES : WORTH;
        chosen[i] = !levels[i].given_up && (finer == NULL || (double)levels[i].bytes <= worth * (double)finer->bytes);
        if (both && !chosen[i])
            finer->until = levels[i].until;
        if (chosen[i])
            finer = &levels[i];
        *all += chosen[i] ? (double)finer->bytes : 0;
    }
}

mc_error *
mc_overview_finish_level(mc_overview_job *job, mc_overview_level *level)
{
    double bytes;
    MC_TRY(job->store->finish(&bytes, job, level));
    job->levels++;
    mc_overview_tell_level(job, level, (int64_t)bytes, "%" APR_INT64_T_FMT " features, %.1f MB",
                           (apr_int64_t)level->kept, bytes / 1e6);
    return MC_OK;
}

mc_error *
mc_overview_build_levels(mc_overview_job *job)
{
    mc_overview_level *levels;
    int count;
    double all;
    MC_TRY(find_needed_levels(&levels, &count, job));
    bool *chosen = apr_pcalloc(job->pool, sizeof(*chosen) * (size_t)(count + 1));
    if (count > 0)
        MC_TRY(mc_overview_sift(levels, count, WORTH_OF_TABLE * job->bytes, job));
    choose_worthy_levels(chosen, &all, levels, count, job);
    for (int i = 0; i < count; i++) {
        if (chosen[i] && all > WORTH_OF_ALL * job->bytes) { /* the finest ones go */
            all -= (double)levels[i].bytes;
            chosen[i] = false;
        }
        if (!chosen[i] && !levels[i].given_up)
            mc_overview_tell_level(job, &levels[i], 0, "no level, which would not be worth its room");
        MC_TRY(chosen[i] ? mc_overview_finish_level(job, &levels[i]) : job->store->drop(job, &levels[i]));
    }
    return MC_OK;
}
