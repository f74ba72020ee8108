/* From vertices to those of directed edges in the CRS of a grid: transformed, more of them where that bends the edges,
 * oriented. */
#include <apr_strings.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "seed/points.h"
#include "seed/region_private.h"
#include "vector/crs/projection.h"

/* Halvings of a line whose image is bent; vertices of a region, and lines between them: in all, and for each vertex
 * that was given, so that a short text does not become a huge region; the largest coordinate: products of them stay
 * finite.
 */
enum { HALVINGS = 12, VERTICES_MAX = 20000000, EDGES_MAX = 50000000, EDGES_FREE = 200000, EDGES_OF_VERTEX = 64 };
static const double FARTHEST = 1e30;

struct mc_region_builder {
    apr_pool_t *pool;
    mc_projection *projection; /* NULL: the coordinates are the grid's */
    mc_extent clip;            /* in the source's CRS; everything without a projection */
    double tolerance;          /* of bent lines, units of the grid */
    size_t vertices;           /* that were added */
    mc_points areal, linear;   /* as mc_region_create takes them */
    mc_points source, clipped; /* scratch, of rings that are cut */
};

static apr_status_t
free_builder(void *data)
{
    mc_region_builder *b = data;
    free(b->areal.xy);
    free(b->linear.xy);
    free(b->source.xy);
    free(b->clipped.xy);
    return APR_SUCCESS;
}

mc_error *
mc_region_begin(mc_region_builder **builder, const mc_grid *grid, int finest, const char *srs, apr_pool_t *pool)
{
    mc_region_builder *b = apr_pcalloc(pool, sizeof(*b));
    *builder = b;
    b->pool = pool;
    apr_pool_cleanup_register(pool, b, free_builder, apr_pool_cleanup_null);
    if (srs != NULL && !mc_grid_has_srs(grid, srs))
        MC_TRY(mc_projection_open(&b->projection, srs, grid->srs, pool));
    b->tolerance = grid->levels[finest].resolution / 2;
    b->clip = grid->extent;
    if (b->projection != NULL && mc_projection_box(&b->clip, b->projection, true)) {
        double margin = (b->clip.maxx - b->clip.minx + b->clip.maxy - b->clip.miny) * 0.2;
        b->clip =
            (mc_extent){ b->clip.minx - margin, b->clip.miny - margin, b->clip.maxx + margin, b->clip.maxy + margin };
    } else {
        b->clip = (mc_extent){ -INFINITY, -INFINITY, INFINITY, INFINITY };
    }
    return MC_OK;
}

/* ---- clipping, in the CRS of the source */

/* How far inside of one side of the box a point lies; below 0: outside. */
static double
depth_inside_box_side(const mc_extent *box, int side, const double *p)
{
    switch (side) {
    case 0:
        return p[0] - box->minx;
    case 1:
        return box->maxx - p[0];
    case 2:
        return p[1] - box->miny;
    default:
        return box->maxy - p[1];
    }
}

static void
push_between(mc_points *to, const double *a, const double *b, double at_a, double at_b)
{
    double t = at_a / (at_a - at_b);
    mc_points_add(to, a[0] + (b[0] - a[0]) * t, a[1] + (b[1] - a[1]) * t);
}

/* What of a ring lies on the inner side of one side of the box (Sutherland and Hodgman, 1974). */
static void
clip_ring_side(mc_points *to, const mc_points *ring, const mc_extent *box, int side)
{
    to->count = 0;
    for (size_t i = 0; i < ring->count; i++) {
        const double *a = &ring->xy[2 * i], *b = &ring->xy[2 * ((i + 1) % ring->count)];
        double at_a = depth_inside_box_side(box, side, a), at_b = depth_inside_box_side(box, side, b);
        if (at_a >= 0)
            mc_points_add(to, a[0], a[1]);
        if ((at_a >= 0) != (at_b >= 0))
            push_between(to, a, b, at_a, at_b);
    }
}

static void
clip_ring(mc_region_builder *b)
{
    for (int side = 0; side < 4; side++) {
        clip_ring_side(&b->clipped, &b->source, &b->clip, side);
        mc_points swapped = b->source;
        b->source = b->clipped;
        b->clipped = swapped;
    }
}

/* The part of a line of two points that is in the box. */
static bool
clip_region_line(double a[2], double b[2], const mc_extent *box)
{
    for (int side = 0; side < 4; side++) {
        double at_a = depth_inside_box_side(box, side, a), at_b = depth_inside_box_side(box, side, b), t;
        if (at_a < 0 && at_b < 0)
            return false;
        double *outer = at_a < 0 ? a : b;
        if (at_a >= 0 && at_b >= 0)
            continue;
        t = at_a / (at_a - at_b);
        double cut[2] = { a[0] + (b[0] - a[0]) * t, a[1] + (b[1] - a[1]) * t };
        memcpy(outer, cut, sizeof(cut));
    }
    return true;
}

/* ---- transforming */

static mc_error *
transform_region_vertex(double out[2], const mc_region_builder *b, const double *p, apr_pool_t *pool)
{
    out[0] = p[0];
    out[1] = p[1];
    mc_projection_points(b->projection, out, 1);
    if (fabs(out[0]) <= FARTHEST && fabs(out[1]) <= FARTHEST)
        return MC_OK;
    return mc_error_create(pool, MC_ERR_CORRUPT, "the vertex %g %g cannot be transformed to the grid", p[0], p[1]);
}

/* Whether the image of a line is farther from the line between the images of its ends than the tolerance: looked at in
 * the middle, and beside it, since a line may bend both ways. */
static mc_error *
check_line_bends(bool *bent, double middle[2], const mc_region_builder *b, const double *from, const double *to,
                 const double *image, const double *image_to, apr_pool_t *pool)
{
    *bent = false;
    for (int i = 0; i < 2; i++) {
        double t = i == 0 ? 0.3 : 0.5;
        double on_line[2] = { from[0] + (to[0] - from[0]) * t, from[1] + (to[1] - from[1]) * t };
        MC_TRY(transform_region_vertex(middle, b, on_line, pool));
        *bent = *bent || hypot(middle[0] - (image[0] + (image_to[0] - image[0]) * t),
                               middle[1] - (image[1] + (image_to[1] - image[1]) * t)) > b->tolerance;
    }
    return MC_OK;
}

/* ---- edges */

/* A line of edges that grows. */
typedef struct trail {
    mc_points *to;
    size_t begin;             /* its first vertex in `to`: there once it has an edge */
    double first[2], last[2]; /* points of it */
    double area;              /* twice, signed: relative to the first point, so that large coordinates cost no digits */
} trail;

static trail
begin_trail(mc_points *to, const double *at)
{
    return (trail){ to, to->count, { at[0], at[1] }, { at[0], at[1] }, 0 };
}

static void
step_trail(trail *t, const double *next)
{
    if (next[0] == t->last[0] && next[1] == t->last[1])
        return;
    t->area +=
        (t->last[0] - t->first[0]) * (next[1] - t->first[1]) - (t->last[1] - t->first[1]) * (next[0] - t->first[0]);
    if (t->to->count == t->begin)
        mc_points_add(t->to, t->first[0], t->first[1]);
    mc_points_add(t->to, next[0], next[1]);
    memcpy(t->last, next, sizeof(t->last));
}

/* What comes next is not joined to it. */
static void
end_trail(trail *t)
{
    if (t->to->count > t->begin)
        mc_points_add(t->to, NAN, NAN);
}

/* Its edges point the other way. */
static void
turn_trail(trail *t)
{
    double *xy = t->to->xy;
    for (size_t i = t->begin, k = t->to->count; i + 1 < k; i++) {
        double vertex[2];
        k--;
        memcpy(vertex, &xy[2 * i], sizeof(vertex));
        memcpy(&xy[2 * i], &xy[2 * k], sizeof(vertex));
        memcpy(&xy[2 * k], vertex, sizeof(vertex));
    }
}

static bool
is_too_fine(const mc_region_builder *b, const trail *t)
{
    return t->to->count > EDGES_MAX || t->to->count > EDGES_FREE + EDGES_OF_VERTEX * b->vertices;
}

/* Goes along the image of a line, of whose begin the image is where the trail is. */
static mc_error *
divide_line(mc_region_builder *b, trail *t, const double *from, const double *to, const double *image_to, int halvings,
            apr_pool_t *pool)
{
    double middle[2], halfway[2] = { from[0] / 2 + to[0] / 2, from[1] / 2 + to[1] / 2 };
    bool bent = false;
    if (halvings > 0)
        MC_TRY(check_line_bends(&bent, middle, b, from, to, t->last, image_to, pool));
    if (!bent) {
        step_trail(t, image_to);
        return !is_too_fine(b, t) ? MC_OK
                                  : mc_error_create(pool, MC_ERR_LIMIT,
                                                    "the lines of the area are too long: in the grid's CRS, at these "
                                                    "levels, they bend into more than %u pieces",
                                                    (unsigned)t->to->count);
    }
    MC_TRY(divide_line(b, t, from, halfway, middle, halvings - 1, pool));
    return divide_line(b, t, halfway, to, image_to, halvings - 1, pool);
}

/* From one point of the source to the next. */
static mc_error *
trace_region_line(mc_region_builder *b, trail *t, const double *from, const double *to, apr_pool_t *pool)
{
    double image[2];
    if (b->projection == NULL) {
        step_trail(t, to);
        return MC_OK;
    }
    MC_TRY(transform_region_vertex(image, b, to, pool));
    return divide_line(b, t, from, to, image, HALVINGS, pool);
}

static mc_error *
begin_at(trail *t, mc_region_builder *b, mc_points *to, const double *at, apr_pool_t *pool)
{
    double image[2] = { at[0], at[1] };
    if (b->projection != NULL)
        MC_TRY(transform_region_vertex(image, b, at, pool));
    *t = begin_trail(to, image);
    return MC_OK;
}

/* An area lies to the left of its ring. */
static mc_error *
add_region_ring(mc_region_builder *b, const double *xy, size_t count, bool hole, apr_pool_t *pool)
{
    trail t;
    if (count < 3)
        return MC_OK;
    MC_TRY(begin_at(&t, b, &b->areal, xy, pool));
    for (size_t i = 0; i < count; i++)
        MC_TRY(trace_region_line(b, &t, &xy[2 * i], &xy[2 * ((i + 1) % count)], pool));
    if ((t.area < 0) != hole)
        turn_trail(&t);
    end_trail(&t);
    return MC_OK;
}

static mc_error *
add_clipped_ring(mc_region_builder *b, const double *xy, size_t count, bool hole, apr_pool_t *pool)
{
    bool within = true;
    for (size_t i = 0; i < count && within; i++)
        for (int side = 0; side < 4; side++)
            within = within && depth_inside_box_side(&b->clip, side, &xy[2 * i]) >= 0;
    if (within)
        return add_region_ring(b, xy, count, hole, pool);
    b->source.count = 0;
    for (size_t i = 0; i < count; i++)
        mc_points_add(&b->source, xy[2 * i], xy[2 * i + 1]);
    clip_ring(b);
    return add_region_ring(b, b->source.xy, b->source.count, hole, pool);
}

/* A line that has no length is a point. */
static void
end_line_trail(trail *t)
{
    for (int i = 0; i < 2 && t->to->count < t->begin + 2; i++)
        mc_points_add(t->to, t->first[0], t->first[1]);
    end_trail(t);
}

/* Pieces whose ends have been cut off are not joined. A point is a line to itself. */
static mc_error *
add_pieces(mc_region_builder *b, const double *xy, size_t count, bool line, apr_pool_t *pool)
{
    trail t;
    bool open = false;
    double end[2] = { 0, 0 }; /* of the piece before, as it was cut */
    for (size_t i = 0; i < (line && count > 1 ? count - 1 : count); i++) {
        double from[2] = { xy[2 * i], xy[2 * i + 1] }, to[2] = { from[0], from[1] };
        if (line && count > 1)
            memcpy(to, &xy[2 * i + 2], sizeof(to));
        if (!clip_region_line(from, to, &b->clip))
            continue;
        if (open && !(line && from[0] == end[0] && from[1] == end[1])) {
            end_line_trail(&t);
            open = false;
        }
        if (!open)
            MC_TRY(begin_at(&t, b, &b->linear, from, pool));
        open = true;
        MC_TRY(trace_region_line(b, &t, from, to, pool));
        memcpy(end, to, sizeof(end));
    }
    if (open)
        end_line_trail(&t);
    return MC_OK;
}

mc_error *
mc_region_add(mc_region_builder *b, mc_region_kind kind, const double *xy, size_t count, apr_pool_t *pool)
{
    if (count > VERTICES_MAX - b->vertices)
        return mc_error_create(pool, MC_ERR_LIMIT, "an area has more than %d vertices", VERTICES_MAX);
    b->vertices += count;
    for (size_t i = 0; i < 2 * count; i++)
        if (!(fabs(xy[i]) <= FARTHEST))
            return mc_error_create(pool, MC_ERR_CORRUPT, "a coordinate is no finite number");
    if (kind == MC_REGION_POINT || kind == MC_REGION_LINE)
        return add_pieces(b, xy, count, kind == MC_REGION_LINE, pool);
    if (count > 1 && xy[0] == xy[2 * count - 2] && xy[1] == xy[2 * count - 1])
        count--;
    return add_clipped_ring(b, xy, count, kind == MC_REGION_HOLE, pool);
}

mc_seed_region *
mc_region_finish(mc_region_builder *b)
{
    size_t areal = b->areal.count;
    free(b->source.xy);
    free(b->clipped.xy);
    b->source = b->clipped = (mc_points){ 0 };
    for (size_t i = 0; i < b->linear.count; i++)
        mc_points_add(&b->areal, b->linear.xy[2 * i], b->linear.xy[2 * i + 1]);
    free(b->linear.xy);
    b->linear = (mc_points){ 0 };
    return b->areal.count == 0 ? NULL : mc_region_create(b->areal.xy, areal, b->areal.count, b->pool);
}
