/* Which levels a source gets: those that maps need, and that are worth their room. */
#include <apr_strings.h>
#include <math.h>

#include "draw/paint/sieve.h"
#include "overview/overview_planes.h"
#include "text/text.h"
#include "vector/levels/level_blocks.h"

/* Pixels of the source for each row, or for so many bytes of vertices: where a pixel has less, a map has few rows and
 * few vertices, and needs no overview. */
#define PIXELS_FOR_ROW 16
#define BYTES_FOR_PIXEL 32
/* Where nothing is left out but vertices, the next finer level can serve the same maps: a level is kept where it has at
 * most this part of the bytes of the finer one. */
#define WORTH_OF_VERTICES 0.5
/* Against the source itself, a single level and all of them together. */
#define WORTH_OF_TABLE 0.25
#define WORTH_OF_ALL 0.4
/* A source that is read as fast as a level (a shapefile): a level has at most this part of its features, or of its
 * bytes.
 */
#define WORTH_OF_FEATURES 0.75
#define WORTH_OF_BYTES 0.0625
/* The coarsest level: the source is that many pixels wide, or more. */
#define PIXELS_LEAST 4
/* Maps have some cells of blocks in each direction. */
enum { CELL_PIXELS = 128 };
/* Bytes of the source that make a window: a map has the blocks of one window in memory at a time. */
#define WINDOW_BYTES (32 << 20)
/* Steps of a pixel that the coordinates of a level have at least: so many that a map's vertices fall into the cells of
 * its own thinning as those of the source do, and that bends below a pixel do not turn, at which strokes have mitres.
 * Where many features lie over each other in a pixel, a step between two coverages has effects on all that is laid over
 * it. */
#define PIXEL_STEPS 10000
/* The first level in which the source has fewer pixels than that serves all maps that are further away, too. */
#define PIXELS_OF_LAST 20000
/* Levels that are coarser than the grid. */
enum { COARSER_MOST = 16 };

/* Whether maps of a resolution need a level. */
static bool
needs_level(const mc_overview_job *job, double resolution)
{
    const double scale = mc_overview_scale(job, resolution);
    const double width = (job->extent.maxx - job->extent.minx) / resolution;
    const double height = (job->extent.maxy - job->extent.miny) / resolution;
    return (width >= PIXELS_LEAST || height >= PIXELS_LEAST) &&
           mc_overview_pixels(job, resolution) <= fmax(PIXELS_FOR_ROW * job->rows, job->bytes / BYTES_FOR_PIXEL) &&
           mc_vector_layer_shows(job->layer, scale) && mc_vector_layer_shows(job->layer, 2 * scale * (1 - 1e-6));
}

/* Why there cannot be a level; NULL: there can. */
static const char *
level_refusal(const mc_overview_job *job, const mc_overview_level *level)
{
    const double scale = mc_overview_scale(job, level->resolution);
    const char *refusal = mc_sieve_refusal(job->layer->style, scale, 2 * scale, job->points);
    if (refusal != NULL)
        return refusal;
    return mc_overview_plane_fits(job, level->resolution, &job->bounds) ? NULL : "it has too many pixels";
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
    level->digits = mc_twkb_digits(level->resolution / PIXEL_STEPS * 10);
    level->cell = CELL_PIXELS;
    level->window = mc_overview_find_window(job);
}

/* Up to where a level serves maps. */
static double
find_until(const mc_overview_job *job, double resolution)
{
    double until = 2 * resolution;
    while (mc_overview_pixels(job, resolution) < PIXELS_OF_LAST && needs_level(job, until) &&
           mc_sieve_refusal(job->layer->style, mc_overview_scale(job, resolution), mc_overview_scale(job, 2 * until),
                            job->points) == NULL)
        until *= 2;
    return until;
}

/* One more level, where maps of the resolution need one that the level before does not serve. */
static mc_error *
add_needed_level(mc_overview_level *levels, int *count, const mc_overview_job *job, double resolution)
{
    mc_overview_level *level = &levels[*count];
    *level = (mc_overview_level){ .resolution = resolution, .until = find_until(job, resolution) };
    if (!needs_level(job, resolution) || (*count > 0 && resolution < level[-1].until * (1 - 1e-6)))
        return MC_OK;
    mc_overview_prepare(level, job);
    const char *refusal = level_refusal(job, level);
    if (refusal != NULL) {
        mc_overview_tell_level(job, level, 0, "no level: %s", refusal);
        return MC_OK;
    }
    ++*count;
    return job->store->create(job, level);
}

/* The levels that the grid's resolutions need, and maps that are further away, the finest first. */
static mc_error *
find_needed_levels(mc_overview_level **levels, int *count, mc_overview_job *job)
{
    const mc_grid *grid = job->grid;
    *count = 0;
    *levels = apr_pcalloc(job->pool, sizeof(**levels) * (size_t)(grid->level_count + COARSER_MOST + 1));
    for (int z = grid->level_count - 1; z >= 0; z--)
        MC_TRY(add_needed_level(*levels, count, job, grid->levels[z].resolution));
    for (int further = 1; further <= COARSER_MOST; further++)
        MC_TRY(add_needed_level(*levels, count, job, ldexp(grid->levels[0].resolution, further)));
    return MC_OK;
}

/* Whether the finer of two levels serves the maps of the coarser one: nothing is left out of either because of what
 * hides it, and the same rules draw. */
static bool
serves_coarser(const mc_overview_job *job, const mc_overview_level *finer, const mc_overview_level *coarser)
{
    return !mc_overview_hides(job, finer->resolution) && !mc_overview_hides(job, coarser->resolution) &&
           mc_sieve_refusal(job->layer->style, mc_overview_scale(job, finer->resolution),
                            mc_overview_scale(job, coarser->until), job->points) == NULL;
}

/* Whether maps that read the level take less time than those that read the source. */
static bool
is_worth_reading(const mc_overview_job *job, const mc_overview_level *level)
{
    return !job->reads_fast || (double)level->kept <= WORTH_OF_FEATURES * job->rows ||
           (double)level->bytes <= WORTH_OF_BYTES * job->bytes;
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
        chosen[i] = !levels[i].given_up && is_worth_reading(job, &levels[i]) &&
                    (!both || (double)levels[i].bytes <= WORTH_OF_VERTICES * (double)finer->bytes);
        if (both && !chosen[i])
            finer->until = levels[i].until;
        if (chosen[i])
            finer = &levels[i];
        *all += chosen[i] ? (double)finer->bytes : 0;
    }
}

/* How many of the pixels that were compared differ, in words; "": none were. */
static const char *
difference_text(const mc_overview_level *level, apr_pool_t *pool)
{
    const double percent = 100 * (double)level->off / fmax((double)level->painted, 1);
    return level->painted == 0 ? "" : apr_psprintf(pool, ", %.2f %% of the pixels differ", percent);
}

mc_error *
mc_overview_finish_level(mc_overview_job *job, mc_overview_level *level)
{
    double bytes;
    MC_TRY(job->store->finish(&bytes, job, level));
    job->levels++;
    mc_overview_tell_level(job, level, (int64_t)bytes, "%" APR_INT64_T_FMT " features, %.1f MB%s",
                           (apr_int64_t)level->kept, bytes / 1e6, difference_text(level, job->pool));
    return MC_OK;
}

/* Keeps a level whose maps look as those of the source do. */
static mc_error *
finish_good_level(mc_overview_job *job, mc_overview_level *level)
{
    if (mc_overview_looks_good(level))
        return mc_overview_finish_level(job, level);
    mc_overview_tell_level(job, level, 0, "no level, whose maps would not look as those of the %s%s", job->kind,
                           difference_text(level, job->pool));
    return job->store->drop(job, level);
}

mc_error *
mc_overview_build_levels(mc_overview_job *job)
{
    mc_overview_level *levels;
    int count;
    double all;
    job->crowded = mc_overview_find_crowded(job);
    MC_TRY(find_needed_levels(&levels, &count, job));
    bool *chosen = apr_pcalloc(job->pool, sizeof(*chosen) * (size_t)(count + 1));
    if (count > 0)
        MC_TRY(mc_overview_sift(levels, count, WORTH_OF_TABLE * job->bytes, job));
    choose_worthy_levels(chosen, &all, levels, count, job);
    for (int i = 0; i < count && all > WORTH_OF_ALL * job->all_bytes; i++) { /* the finest ones go */
        all -= chosen[i] ? (double)levels[i].bytes : 0;
        chosen[i] = false;
    }
    MC_TRY(mc_overview_compare(levels, chosen, count, job));
    for (int i = 0; i < count; i++) {
        if (!chosen[i] && !levels[i].given_up)
            mc_overview_tell_level(job, &levels[i], 0, "no level, which would not be %s",
                                   is_worth_reading(job, &levels[i]) ? "worth its room" : "faster");
        MC_TRY(chosen[i] ? finish_good_level(job, &levels[i]) : job->store->drop(job, &levels[i]));
    }
    return MC_OK;
}
