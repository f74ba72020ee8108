/*
 * A level serves maps from its resolution to nearly twice that. A feature is left out of it where it cannot be seen on
 * maps of either end: each of both has a sieve of its own. The coarser end of a level is most often the finer end of
 * the next one, and both levels have that sieve in common. A level that serves maps further away than twice its
 * resolution has a sieve for each doubling.
 */
#include "overview/overview_planes.h"

#include <math.h>
#include <string.h>

#include "base/workers.h"
#include "draw/paint/sieve.h"
#include "grid/earth.h"

/* Rows for a pixel, from which on many features cover a part of a pixel each. */
#define CROWD 4.0

/* How a feature looks in a plane. */
enum { UNSEEN, SEEN, UNREADABLE };

typedef struct plane_range {
    int finest, coarsest; /* planes */
} plane_range;

struct mc_overview_planes {
    const mc_overview_job *job;
    mc_extent area; /* of the geometry that the planes have room for */
    const mc_overview_level *levels;
    int level_count;
    plane_range *ranges; /* of each level */
    mc_overview_plane *planes;
    int plane_count;
    struct mc_workers *workers;  /* NULL: none */
    int helpers;                 /* of these that take part */
    const mc_overview_row *rows; /* the batch */
    int row_count;
    mc_extent bounds[MC_OVERVIEW_BATCH]; /* of the geometry of each, */
    bool known[MC_OVERVIEW_BATCH];       /* where they are known */
};

static apr_status_t
free_planes(void *data)
{
    mc_overview_planes *planes = data;
    for (int p = 0; p < planes->plane_count; p++) {
        mc_geometry_free(&planes->planes[p].geometry);
        if (planes->planes[p].pool != NULL)
            mc_task_pool_release(planes->planes[p].pool);
    }
    return APR_SUCCESS;
}

double
mc_overview_pixels(const mc_overview_job *job, double resolution)
{
    return (job->bounds.maxx - job->bounds.minx) / resolution * ((job->bounds.maxy - job->bounds.miny) / resolution);
}

double
mc_overview_scale(const mc_overview_job *job, double resolution)
{
    return resolution * job->grid->metres_per_unit / MC_PIXEL_METRES;
}

int
mc_overview_symbol_margin(const mc_overview_job *job, double resolution)
{
    return mc_sieve_margin(job->layer->style, mc_overview_scale(job, resolution)) + 1;
}

void
mc_overview_lattice_box(double box[4], const mc_overview_job *job, double resolution, const mc_extent *area,
                        double margin)
{
    const mc_extent first = mc_grid_tile_extent(job->grid, 0, 0, 0);
    box[0] = floor((area->minx - first.minx) / resolution) - margin;
    box[1] = floor((first.maxy - area->maxy) / resolution) - margin;
    box[2] = ceil((area->maxx - first.minx) / resolution) + margin;
    box[3] = ceil((first.maxy - area->miny) / resolution) + margin;
}

mc_extent
mc_overview_level_bounds(const mc_overview_level *level, const mc_overview_job *job, const mc_extent *bounds)
{
    const mc_extent first = mc_grid_tile_extent(job->grid, 0, 0, 0);
    const double side = level->resolution;
    return (mc_extent){ (bounds->minx - first.minx) / side, (first.maxy - bounds->maxy) / side,
                        (bounds->maxx - first.minx) / side, (first.maxy - bounds->miny) / side };
}

bool
mc_overview_plane_fits(const mc_overview_job *job, double resolution, const mc_extent *area)
{
    double box[4];
    mc_overview_lattice_box(box, job, resolution, area, mc_overview_symbol_margin(job, resolution));
    const double width = box[2] - box[0], height = box[3] - box[1];
    return mc_sieve_fits(width, height) && fmax(width, height) <= MC_SHAPE_REACH / MC_SUBPIXELS &&
           fabs(box[0]) < 1e15 && fabs(box[1]) < 1e15;
}

double
mc_overview_find_crowded(const mc_overview_job *job)
{
    const double area = (job->bounds.maxx - job->bounds.minx) * (job->bounds.maxy - job->bounds.miny);
    return sqrt(CROWD * area / fmax(job->rows, 1));
}

bool
mc_overview_is_crowded(const mc_overview_job *job, double resolution)
{
    return resolution >= job->crowded;
}

/* `below`: rules that begin at the very scale do not apply. */
static mc_error *
make_plane(mc_overview_plane *plane, const mc_overview_planes *planes, double resolution, bool below, apr_pool_t *pool)
{
    const mc_overview_job *job = planes->job;
    const double scale = mc_overview_scale(job, resolution) * (below ? 1 - 1e-9 : 1);
    const mc_extent first = mc_grid_tile_extent(job->grid, 0, 0, 0);
    double box[4];
    if (!mc_overview_plane_fits(job, resolution, &planes->area))
        return mc_error_create(pool, MC_ERR_LIMIT, "the table is too large for a plane");
    mc_overview_lattice_box(box, job, resolution, &planes->area, mc_overview_symbol_margin(job, resolution));
    plane->width = (int)(box[2] - box[0]);
    plane->height = (int)(box[3] - box[1]);
    plane->resolution = resolution;
    plane->grid = (mc_pixel_grid){ .x0 = first.minx,
                                   .y0 = first.maxy,
                                   .per_x = 1 / resolution,
                                   .per_y = 1 / resolution,
                                   .left = (int64_t)box[0],
                                   .top = (int64_t)box[1],
                                   .thinning = MC_SIEVE_THINNING,
                                   .keep_small = true };
    plane->query = (mc_feature_query){ .pixel_grid = plane->grid, .resolution = resolution, .scale = scale };
    /* only servers, that update by themselves, have bounds */
    const int traits = (mc_overview_is_crowded(job, resolution) ? MC_SIEVE_CROWDED : 0) |
                       (job->options->bounds != NULL ? MC_SIEVE_BUDGETED : 0);
    plane->pool = mc_task_pool_acquire();
    apr_pool_create(&plane->scratch, plane->pool);
    plane->seen = apr_palloc(plane->pool, MC_OVERVIEW_BATCH);
    return mc_error_copy(
        mc_sieve_create(&plane->sieve, job->layer->style, scale, traits, plane->width, plane->height, plane->pool),
        pool);
}

bool
mc_overview_hides(const mc_overview_job *job, double resolution)
{
    return mc_sieve_hides(job->layer->style, mc_overview_scale(job, resolution));
}

/* Whether the coarser end of a level is the finer end of the next one, with the same rules. */
static bool
meets_next(const mc_overview_planes *planes, int level)
{
    const mc_overview_level *this = &planes->levels[level], *next = this + 1;
    const double per_pixel = mc_overview_scale(planes->job, 1);
    return level + 1 < planes->level_count && fabs(this->until - next->resolution) < 1e-9 * next->resolution &&
           mc_sieve_refusal(planes->job->layer->style, this->resolution * per_pixel, next->until * per_pixel,
                            planes->job->points) == NULL;
}

/* Of one level. `met`: its finest plane is the coarsest of the level before. */
static mc_error *
make_level_planes(mc_overview_planes *planes, int level, bool met, apr_pool_t *pool)
{
    const mc_overview_job *job = planes->job;
    const mc_overview_level *made = &planes->levels[level];
    plane_range *range = &planes->ranges[level];
    range->finest = met ? planes->plane_count - 1 : planes->plane_count;
    if (!met)
        MC_TRY(make_plane(&planes->planes[planes->plane_count++], planes, made->resolution, false, pool));
    for (double at = 2 * made->resolution; mc_overview_hides(job, made->resolution); at *= 2) {
        const bool last = at >= made->until * (1 - 1e-6);
        const double end = last ? made->until : at;
        MC_TRY(
            make_plane(&planes->planes[planes->plane_count++], planes, end, last && !meets_next(planes, level), pool));
        if (last)
            break;
    }
    range->coarsest = planes->plane_count - 1;
    return MC_OK;
}

static mc_error *
make_planes(mc_overview_planes *planes, apr_pool_t *pool)
{
    bool met = false;
    for (int k = 0; k < planes->level_count; k++) {
        MC_TRY(make_level_planes(planes, k, met, pool));
        met = mc_overview_hides(planes->job, planes->levels[k].resolution) && meets_next(planes, k);
    }
    return MC_OK;
}

/* At most. */
static size_t
count_planes(const mc_overview_level *levels, int count)
{
    size_t planes = 1;
    for (int k = 0; k < count; k++)
        planes += 2 + (size_t)ceil(log2(levels[k].until / levels[k].resolution));
    return planes;
}

static mc_error *
create_planes_of(mc_overview_planes **planes, const mc_overview_level *levels, int count, const mc_extent *area,
                 const mc_overview_job *job, apr_pool_t *pool)
{
    mc_overview_planes *made = apr_pcalloc(pool, sizeof(*made));
    *made = (mc_overview_planes){ .job = job, .area = *area, .levels = levels, .level_count = count };
    made->ranges = apr_pcalloc(pool, sizeof(*made->ranges) * (size_t)(count + 1));
    made->planes = apr_pcalloc(pool, sizeof(*made->planes) * count_planes(levels, count));
    apr_pool_cleanup_register(pool, made, free_planes, apr_pool_cleanup_null);
    MC_TRY(make_planes(made, pool));
    *planes = made;
    return MC_OK;
}

mc_error *
mc_overview_planes_create(mc_overview_planes **planes, const mc_overview_level *levels, int count,
                          const mc_overview_job *job, apr_pool_t *pool)
{
    return create_planes_of(planes, levels, count, &job->bounds, job, pool);
}

void
mc_overview_planes_share(mc_overview_planes *planes, struct mc_workers *workers, int helpers)
{
    planes->workers = workers;
    planes->helpers = helpers;
}

mc_error *
mc_overview_planes_of_area(mc_overview_planes **planes, const mc_overview_level *levels, int count,
                           const mc_extent *area, const mc_overview_job *job, apr_pool_t *pool)
{
    return create_planes_of(planes, levels, count, area, job, pool);
}

bool
mc_overview_planes_serve(const mc_overview_planes *planes, int plane, int level)
{
    return planes->ranges[level].finest <= plane && plane <= planes->ranges[level].coarsest;
}

int
mc_overview_planes_count(const mc_overview_planes *planes)
{
    return planes->plane_count;
}

mc_overview_plane *
mc_overview_planes_at(mc_overview_planes *planes, int plane)
{
    return &planes->planes[plane];
}

double
mc_overview_planes_margin(const mc_overview_level *level, const mc_overview_job *job)
{
    double most = mc_overview_symbol_margin(job, level->resolution) * level->resolution;
    for (double at = 2 * level->resolution; mc_overview_hides(job, level->resolution); at *= 2) {
        const bool last = at >= level->until * (1 - 1e-6);
        const double end = last ? level->until : at;
        most = fmax(most, mc_overview_symbol_margin(job, end) * end);
        if (last)
            break;
    }
    return ceil(most / level->resolution);
}

static bool
is_needed(const mc_overview_planes *planes, int plane)
{
    for (int k = 0; k < planes->level_count; k++)
        if (!planes->levels[k].given_up && mc_overview_planes_serve(planes, plane, k))
            return true;
    return false;
}

static bool
is_seen_in_level(const mc_overview_planes *planes, int level, int row)
{
    for (int p = planes->ranges[level].finest; p <= planes->ranges[level].coarsest; p++)
        if (planes->planes[p].seen[row] == SEEN)
            return true;
    return false;
}

/* Whether all pixels that the feature can touch are hidden, by the bounds of its geometry alone. */
static bool
is_hidden_by_bounds(const mc_overview_plane *plane, const mc_extent *bounds)
{
    const mc_pixel_grid *grid = &plane->grid;
    const double at[4] = { ((bounds->minx - grid->x0) * grid->per_x - (double)grid->left) * MC_SUBPIXELS,
                           ((grid->y0 - bounds->maxy) * grid->per_y - (double)grid->top) * MC_SUBPIXELS,
                           ((bounds->maxx - grid->x0) * grid->per_x - (double)grid->left) * MC_SUBPIXELS,
                           ((grid->y0 - bounds->miny) * grid->per_y - (double)grid->top) * MC_SUBPIXELS };
    if (!(at[0] >= 0 && at[1] >= 0 && at[2] < MC_SHAPE_REACH && at[3] < MC_SHAPE_REACH))
        return false;
    const int32_t pixels[4] = { (int32_t)at[0] - 1, (int32_t)at[1] - 1, (int32_t)at[2] + 1, (int32_t)at[3] + 1 };
    return mc_sieve_hides_bounds(plane->sieve, pixels);
}

/* A feature in a plane; what cannot be read maps leave out, too. */
static mc_error *
look_at_plane(uint8_t *seen, mc_overview_plane *plane, const mc_overview_row *row, mc_ctx *ctx)
{
    bool keeps = false;
    mc_error *error = mc_wkb_read(&plane->geometry, row->geometry, row->size, &plane->grid, plane->scratch);
    *seen = error != MC_OK ? UNREADABLE : UNSEEN;
    if (error != MC_OK)
        mc_error_ignore(error);
    if (error != MC_OK || mc_geometry_is_empty(&plane->geometry))
        return MC_OK;
    const mc_feature feature = { .geometry = &plane->geometry, .values = row->values, .query = &plane->query };
    MC_TRY(mc_sieve_keeps(&keeps, plane->sieve, &feature, ctx));
    *seen = keeps ? SEEN : UNSEEN;
    return MC_OK;
}

/* The features of the batch in one plane, the last one first: planes know nothing of each other. */
static mc_error *
sift_plane(void *baton, int index, mc_ctx *ctx)
{
    mc_overview_planes *planes = baton;
    mc_overview_plane *plane = &planes->planes[index];
    memset(plane->seen, UNSEEN, (size_t)planes->row_count);
    for (int i = planes->row_count - 1; is_needed(planes, index) && i >= 0; i--) {
        if (planes->known[i] && is_hidden_by_bounds(plane, &planes->bounds[i]))
            continue;
        MC_TRY(mc_error_copy(look_at_plane(&plane->seen[i], plane, &planes->rows[i], ctx), ctx->pool));
        apr_pool_clear(plane->scratch);
    }
    return MC_OK;
}

/* Bounds of what a plane reads; of curves and collections. */
static mc_error *
find_bounds_in_plane(mc_extent *bounds, mc_overview_plane *plane, const mc_overview_row *row)
{
    const mc_pixel_grid *grid = &plane->grid;
    int32_t at[4] = { 0 };
    MC_TRY(mc_wkb_read(&plane->geometry, row->geometry, row->size, grid, plane->scratch));
    (void)mc_geometry_bounds(&plane->geometry, &at[0], &at[1], &at[2], &at[3]);
    const double left = (double)grid->left, top = (double)grid->top, side = MC_SUBPIXELS;
    *bounds =
        (mc_extent){ grid->x0 + (left + at[0] / side) / grid->per_x, grid->y0 - (top + at[3] / side) / grid->per_y,
                     grid->x0 + (left + at[2] / side) / grid->per_x, grid->y0 - (top + at[1] / side) / grid->per_y };
    return MC_OK;
}

static void
take_row_batch(mc_overview_planes *planes, const mc_overview_row *rows, int count)
{
    planes->rows = rows;
    planes->row_count = count;
    for (int i = 0; i < count; i++)
        planes->known[i] = mc_wkb_bounds(&planes->bounds[i], rows[i].geometry, rows[i].size);
}

mc_error *
mc_overview_planes_look(mc_overview_planes *planes, const mc_overview_row *rows, int count)
{
    take_row_batch(planes, rows, count);
    return mc_workers_run(planes->workers, sift_plane, planes, planes->plane_count, planes->helpers, planes->job->ctx,
                          planes->job->pool);
}

mc_error *
mc_overview_planes_tell(bool *keeps, mc_extent *bounds, bool *unreadable, mc_overview_planes *planes, int row)
{
    *unreadable = false;
    for (int p = planes->plane_count - 1; p >= 0; p--) {
        mc_overview_plane *plane = &planes->planes[p];
        *unreadable |= plane->seen[row] == UNREADABLE;
        if (plane->seen[row] == SEEN && !planes->known[row])
            MC_TRY(mc_error_copy(find_bounds_in_plane(&planes->bounds[row], plane, &planes->rows[row]),
                                 planes->job->pool));
    }
    *bounds = planes->bounds[row];
    for (int k = 0; k < planes->level_count; k++)
        keeps[k] = !planes->levels[k].given_up && is_seen_in_level(planes, k, row);
    return MC_OK;
}
